// What a layer did out of sight of the one around it: the repeats it made, and its key. It is found through what came
// of it: the error that the inner layer threw, or an error that names it as its cause.

import type { RetryLayersEvent } from '../../telemetry/index.js'
import { type Allowance, noteRepeat, type OpenLayer, tellLayers } from './layers.js'

/** What a layer had spent when it ended, and under which key. */
export interface Spending {
  /** The name of the layer in events. */
  readonly name: string
  readonly kind: RetryLayersEvent['kind']
  /** How often it could call what is inside. */
  readonly attempts: number
  readonly depth: number
  readonly declared: number
  readonly allowance: Allowance
  /** The key of its call, which must be the same in every attempt of a layer around it; absent: it has none. */
  readonly key?: string | undefined
  /** Which call of a policy it was, counted over the process; `Infinity`: its errors are never thrown twice. */
  readonly call: number
}

const spendings = new WeakMap<object, Spending>()

/** Whether anything is kept so far: until then no failure need be searched for it. */
export const spentSoFar: { any: boolean } = { any: false }

// An error is input: its chain of causes may be a circle, and its members may have members.
const mostErrors = 64

/** Keeps what was spent beside the error, or the value, that a layer ended with. */
export function markSpent(ended: unknown, spending: Spending): void {
  if ((spending.allowance.spent === 0 && spending.key === undefined) || !isObject(ended)) return
  spentSoFar.any = true
  // Layers that see each other hand the error outwards: the innermost one knows the product of all of them.
  if (spendings.get(ended)?.allowance !== spending.allowance) spendings.set(ended, spending)
}

/**
 * Counts for this layer what layers inside have spent without seeing it, and says so to whoever listens.
 *
 * @param call Which call of a policy this is, counted over the process: a layer that began before it was not inside,
 *   but ended with the same error object.
 */
export function joinSpent(ended: unknown, outer: OpenLayer, call: number): void {
  const { allowance } = outer
  for (const inner of spendingsAlong(ended)) {
    const { spent } = inner.allowance
    if (inner.allowance === allowance || inner.call < call) continue
    if (inner.key !== undefined) outer.sends?.(undefined, inner.key)
    if (spent === 0) continue
    allowance.spent += spent
    allowance.attempts = Math.max(allowance.attempts, inner.allowance.attempts)
    // Counted once, however often the error comes by.
    inner.allowance.spent = 0
    noteRepeat()
    tellLayers(inner, outer, allowance)
  }
}

function spendingsAlong(ended: unknown): Spending[] {
  const found: Spending[] = []
  const errors: unknown[] = [ended]
  for (let index = 0; index < errors.length && index < mostErrors; index += 1) {
    const error = errors[index]
    if (!isObject(error)) continue
    const spending = spendings.get(error)
    if (spending !== undefined) found.push(spending)
    try {
      const { cause, errors: members } = error as AggregateError
      errors.push(cause)
      if (Array.isArray(members)) errors.push(...members.slice(0, mostErrors))
    } catch {
      // A getter that throws tells nothing.
    }
  }
  return found
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
