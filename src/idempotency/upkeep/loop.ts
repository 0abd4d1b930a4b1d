// How upkeep runs: once, or again and again with a pause in between, until its signal ends it.

import { type Clock, type Duration, defined, durationMs, RepriseError, sleep, systemClock } from '../../kernel/index.js'

/** How often, and until when. */
export interface LoopOptions {
  /**
   * The pause between two passes, at least 1 ms. Default: one pass only. A pass that fails is reported and repeated
   * after the pause; where there is only one, it throws.
   */
  readonly every?: Duration
  /** Ends the work after what is under way: the promise is fulfilled with what was done. Default: none. */
  readonly signal?: AbortSignal
  /** Time. Default the domain's. */
  readonly clock?: Clock
}

/** The names of these options. */
export const loopOptionNames: readonly string[] = ['every', 'signal', 'clock']

/** How it ended. */
export interface LoopEnd {
  /** Whether the signal ended it before its last pass was through: there may be more to do. */
  readonly interrupted: boolean
}

/**
 * Runs passes. `pass` stops early by itself where the signal asks for it, and says whether it was through; `onError`
 * hears of a pass that failed.
 */
export async function inPasses(
  { every, signal, clock = systemClock }: LoopOptions,
  pass: () => Promise<boolean>,
  onError: (error: unknown) => void,
): Promise<LoopEnd> {
  const pauseMs = every === undefined ? undefined : durationMs(every, { minMs: 1, option: 'every' })
  let through = false
  while (signal?.aborted !== true) {
    try {
      through = await pass()
    } catch (error) {
      if (pauseMs === undefined) throw error
      through = false
      onError(error)
    }
    if (pauseMs === undefined || !(await paused(pauseMs, clock, signal))) break
  }
  return { interrupted: !through }
}

/** Waits; false where the signal ended it. */
export async function paused(delayMs: number, clock: Clock, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await sleep(delayMs, { clock, ...defined({ signal }) })
    return true
  } catch (error) {
    if (signal?.aborted === true) return false
    throw error
  }
}

/** A whole number between limits, or ARGUMENT_INVALID. */
export function countOf(option: string, count: number, most: number): number {
  if (Number.isInteger(count) && count >= 1 && count <= most) return count
  throw new RepriseError('ARGUMENT_INVALID', `The option ${option} must be a whole number from 1 to ${most}.`, {
    details: { option, most },
  })
}
