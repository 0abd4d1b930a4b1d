// A store under the conformance suite: how to make a fresh world of it, and how to take it down.

import type { StoreWorld } from '../../../src/testing/index.js'

/** A world, and how to end it. */
export interface OpenWorld extends StoreWorld {
  close(): Promise<void>
}

/** A store with one of its drivers. */
export interface StoreUnderTest {
  /** The head of its column, such as `sqlite (libsql)`. */
  readonly name: string
  /** Makes a fresh, empty world. */
  open(): Promise<OpenWorld>
}
