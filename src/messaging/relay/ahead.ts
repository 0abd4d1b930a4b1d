// The claim that comes next, made while the messages of the one before are published: the store works while we do.

import type { Claims } from '../claims.js'
import type { ClaimedLane } from '../lanes.js'
import type { ClaimShape } from './machine.js'

/** Lanes that were claimed together. */
export interface ClaimedBatch {
  readonly lanes: readonly ClaimedLane[]
  readonly nextDueMs: number | undefined
  /** Since when the lease counts, in ms of monotonic time. */
  readonly sinceMs: number
  readonly shape: ClaimShape
}

/** Whether more lanes than those of a claim are due now, so that the next claim will not be in vain. */
export function isMoreDue({ lanes, nextDueMs, shape }: ClaimedBatch): boolean {
  return nextDueMs === 0 && lanes.length === shape.lanes
}

/** At most one claim that was made ahead. */
export class ClaimAhead {
  readonly #claims: Pick<Claims, 'release'>
  #coming: Promise<ClaimedBatch> | undefined

  constructor(claims: Pick<Claims, 'release'>) {
    this.#claims = claims
  }

  /** Whether there is one, or one is on its way. */
  get isThere(): boolean {
    return this.#coming !== undefined
  }

  /** Begins a claim. */
  begin(claim: () => Promise<ClaimedBatch>): void {
    this.#coming = claim()
    // Whoever takes it hears of its error.
    this.#coming.catch(() => undefined)
  }

  /** The claim; undefined: none was begun. Rejected where it failed. */
  async take(): Promise<ClaimedBatch | undefined> {
    const coming = this.#coming
    this.#coming = undefined
    return coming
  }

  /** Owes the store that the lanes are free again. Never rejected: what was not claimed is not given back. */
  async giveBack(): Promise<void> {
    const batch = await this.take().catch(() => undefined)
    for (const lane of batch?.lanes ?? []) this.#claims.release(lane)
  }
}
