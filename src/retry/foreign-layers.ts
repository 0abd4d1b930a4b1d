// Layers that are not ours, and repeat out of sight: a load balancer, a driver, an SDK, a gateway. Whoever knows of
// them declares them, so that they count in the product that is reported.

import type { Layers } from './run/layers.js'

/** A layer that is not ours. */
export interface ForeignLayer {
  /** What it is called in reports, such as `'envoy'`. */
  readonly name: string
  /** How many calls it makes of one at most, the first included; 1 to 100. */
  readonly attempts: number
}

const mostLayers = 20
const mostAttempts = 100

/** Whether something lists layers, at most 20 of them, each with a name and its attempts. */
export function areForeignLayers(value: unknown): value is readonly ForeignLayer[] {
  return Array.isArray(value) && value.length <= mostLayers && value.every(isForeignLayer)
}

function isForeignLayer(value: unknown): boolean {
  const { name, attempts, ...more } = Object(value) as Partial<ForeignLayer>
  const isNamed = typeof name === 'string' && name !== '' && name.length <= 200
  const isCounted = Number.isInteger(attempts) && (attempts as number) >= 1 && (attempts as number) <= mostAttempts
  return isNamed && isCounted && Object.keys(more).length === 0
}

/** One layer of ours, together with those that were declared. */
export function layersWith(attempts: number, foreign: readonly ForeignLayer[] = []): Layers {
  const declared = foreign.reduce((product, layer) => product * layer.attempts, attempts)
  return { depth: 1 + foreign.length, declared }
}
