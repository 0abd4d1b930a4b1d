// What one call of an operation is told, checked, and the limits it sets to what still has to be done when the outcome is known.

import { type Clock, type Deadline, demandKnown, RepriseError, remainingMs, whenAborted } from '../../kernel/index.js'
import type { CallOptions } from '../definition.js'

const names = ['deadline', 'signal']

/** Refuses with ARGUMENT_INVALID what a call cannot be told. */
export function checkCall(options: CallOptions): void {
  demandKnown(options, names, 'call options')
  const { signal } = options
  if (signal === undefined || typeof signal?.addEventListener === 'function') return
  throw new RepriseError('ARGUMENT_INVALID', 'The option signal is not valid.', { details: { option: 'signal' } })
}

/** How long somebody waits. */
export interface WaitLimits {
  /** Until when. */
  readonly deadline: Deadline
  /** What ends it before. */
  readonly signal?: AbortSignal | undefined
  /** Time. */
  readonly clock: Clock
  /** How much time is left in any case, in ms: what a call has done itself is not lost to a deadline that has just passed. Default 0. */
  readonly leastMs?: number
}

/** Time for a value to be decoded that a call has brought about itself, in ms. */
export const leastDecodeMs = 1_000

/** Waits for a value to be decoded, but not beyond the call: then DEADLINE_EXCEEDED, or the signal's reason. The outcome stays stored, and a repeat gets it. */
export function decodedInTime<Value>(
  decoding: Value | Promise<Value>,
  { deadline, signal, clock, leastMs = 0 }: WaitLimits,
): Value | Promise<Value> {
  if (!(decoding instanceof Promise)) return decoding
  return new Promise((resolve, reject) => {
    const end = (): void => {
      cancel()
      leave?.()
    }
    const giveUp = (reason: unknown): void => {
      end()
      reject(reason)
    }
    const leave = signal === undefined ? undefined : whenAborted(signal, () => giveUp(signal.reason))
    const cancel = clock.setTimer(Math.max(leastMs, remainingMs(deadline, clock)), () => {
      const message = 'The operation is done; its outcome was not decoded before the deadline.'
      giveUp(new RepriseError('DEADLINE_EXCEEDED', message))
    })
    decoding.then(resolve, reject).finally(end)
  })
}
