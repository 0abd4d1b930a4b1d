// Waiting for the lock of a file of SQLite: it is not held while one waits, so each try is a transaction of its own.

import { type Clock, sleep } from '../../../kernel/index.js'
import { signsOf } from '../classification.js'

/** How long to wait. */
export interface FileLockLimits {
  /** The longest wait, in ms. */
  readonly waitMs: number
  readonly clock: Clock
}

const longestPauseMs = 50

/**
 * Does the work, again with growing pauses while it fails because somebody else writes; ends with SQLite's own error.
 */
export async function whileBusy<Result>(limits: FileLockLimits, work: () => Promise<Result>): Promise<Result> {
  const { clock, waitMs } = limits
  const endMs = clock.monotonicMs() + waitMs
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await work()
    } catch (error) {
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0 || !isBusy(error)) throw error
      await sleep(Math.min(pauseMs, Math.ceil(leftMs)), { clock })
    }
  }
}

/** Whether somebody else has the lock of the file. */
export function isBusy(error: unknown): boolean {
  return signsOf(error).some((sign) => sign.startsWith('SQLITE_BUSY'))
}
