// The port of a dedupe window to a store: which ids were accepted last. The store numbers what it is given, so that the
// count is exact for all processes together, and its clock decides what is too old.

import type { RecordLimits } from '../../atomicity/index.js'
import type { Pepper, StoredKey } from '../../identity/index.js'

/** A window in a store. All processes that use one give the same bounds. */
export interface WindowBounds {
  /** Names it in the store. */
  readonly name: string
  /** How long an id is remembered, in whole ms. */
  readonly withinMs: number
  /** How many ids are remembered. */
  readonly most: number
}

/** An id that was accepted. */
export interface Mark {
  /** A digest of the window's name and the id, under the store's pepper. */
  readonly id: StoredKey
  /** How long ago it was accepted, in whole ms. */
  readonly agoMs: number
}

/**
 * What a store remembers for windows. An id is remembered while fewer than `most` were marked after it and it was
 * accepted less than `withinMs` ago by the store's clock; whether its row is still there does not matter. All methods
 * refuse a window that is kept under another pepper with PEPPER_MISMATCH, and end with their limits.
 */
export interface SeenStore {
  /** Which of the ids are remembered, in any order. */
  seen(window: WindowBounds, ids: readonly StoredKey[], limits: RecordLimits): Promise<readonly StoredKey[]>
  /**
   * Remembers ids, no two of them equal, in their order and in one commit, and forgets a few rows that are not
   * remembered any more. A call that fails may have happened.
   */
  mark(window: WindowBounds, marks: readonly Mark[], limits: RecordLimits): Promise<void>
  /**
   * Removes rows of ids that are not remembered any more, at most so many in one commit, and all that is kept of a
   * window without rows; how many rows it were.
   */
  forget(window: WindowBounds, mostRows: number, limits: RecordLimits): Promise<number>
  /** Under which ids are stored. Undefined: there is none. */
  readonly pepper?: Pepper | undefined
}

/** What has such a memory: every domain. */
export interface WindowStore {
  /** Its name, in events. */
  readonly name: string
  /** What it remembers for dedupe windows. */
  readonly seen: SeenStore
}
