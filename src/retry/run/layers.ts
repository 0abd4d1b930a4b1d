// One layer repeats. A retry inside a retry of the same intent multiplies, so the inner one makes a single attempt, except
// for failures that provably had no effect, and unless it is told to repeat on its own.

import { scopeKind } from '../../kernel/index.js'
import { retryLayers } from '../../telemetry/index.js'

/** The layers that repeat around some code. */
interface Layers {
  /** How many there are. */
  readonly depth: number
  /** The calls they would make at most if each repeated: the product of their attempts. */
  readonly declared: number
}

const layers = scopeKind<Layers>('reprise.retry')

// Entering async context has a price, so a process with a single policy, in which nobody could look, does not pay it.
let known = 0

/** Makes layers known: policies that repeat, or a caller that does. */
export function registerLayer(layers = 1): void {
  known += layers
}

/** Whether there is more than one layer, so that they must see each other. */
export function layersMatter(): boolean {
  return known > 1
}

/** Runs a function that makes policies of one layer, so that together they count as one that is already known. */
export function sameLayer<Made>(make: () => Made): Made {
  const before = known
  try {
    return make()
  } finally {
    known = before
  }
}

/** Whether a layer around this code repeats, and this one therefore does not; says so to whoever listens. */
export function ownedAbove(policy: string, attempts: number, layer: 'inherit' | 'own'): boolean {
  const around = layers.current()
  if (around === undefined) return false
  const owned = layer === 'inherit'
  if (retryLayers.hasSubscribers) {
    const allowed = owned ? 1 : attempts
    retryLayers.publish({ policy, depth: around.depth + 1, declared: around.declared * attempts, allowed })
  }
  return owned
}

/** Runs the body of a policy as a layer, for what is called inside. */
export function asLayer<Result>(attempts: number, work: () => Result): Result {
  const around = layers.current()
  return layers.run({ depth: (around?.depth ?? 0) + 1, declared: (around?.declared ?? 1) * attempts }, work)
}

/**
 * Runs work whose repeats belong to a caller in another process: policies inside make one attempt, except for failures
 * that provably had no effect. For servers that were told so (`Reprise-Retry-Owner: caller`) by a caller they trust.
 *
 * @param declared How many calls the caller makes at most, if it said so. Default 1: not known.
 */
export function ownedByCaller<Result>(work: () => Result, declared = 1): Result {
  if (known < 2) known = 2
  return asLayer(declared, work)
}
