// What a dedupe window promises: how it is made, what a message goes through, and what is counted.

import type { Clock, Deadline, Duration } from '../../kernel/index.js'
import type { WindowStore } from './seen-store.js'

/**
 * What tells one message from another: a text, or a tuple of texts such as source and id. Tuples never collide,
 * whatever is in their parts; a text is the same as the tuple of it alone.
 */
export type WindowId = string | readonly [string, ...string[]]

/** How a window works. */
export interface DedupeWindowOptions {
  /** Its name, in events, and in the store, where it needs one: 1 to 200 characters. Default `'window'`. */
  readonly name?: string
  /** How long an id is remembered from its acceptance on, at least 1 ms. A duplicate does not extend that. */
  readonly within: Duration
  /** How many ids are remembered, 1 to 10,000,000; for one more the oldest is forgotten. */
  readonly most: number
  /** A domain that remembers ids over restarts and for all processes. Default: this process alone remembers. */
  readonly store?: WindowStore
  /**
   * What a call does that the store does not answer. `'stop'`: it is refused with WINDOW_STORE_AWAY before the sink is
   * called, so that the producer repeats it. `'pass'`: it goes by what this process remembers. Default `'stop'`.
   */
  readonly storeAway?: 'stop' | 'pass'
  /**
   * The longest that a message waits for the store, before and after the sink together. Under `'pass'` the wait before
   * the sink also ends when half of what is left of the call's deadline is over. Default `'2s'`.
   */
  readonly storeLimit?: Duration
  /** How many duplicates may wait for ids in flight, all together; more are refused with QUEUE_FULL. Default 1,000. */
  readonly mostHeld?: number
  /** What time is measured by. Default: the system's clock. */
  readonly clock?: Clock
}

/** How one call goes through. */
export interface PassOptions {
  /** Ends the wait for a duplicate and for the store's answer, with its reason. The sink gets it too. Default: none. */
  readonly signal?: AbortSignal
  /** The longest that the call waits before the sink is called, or when that is over. Default `'10s'`. */
  readonly deadline?: Duration | Deadline
}

/** What the sink may want to know. */
export interface PassCall {
  /** The call's deadline; whether the sink keeps to it is up to the sink. */
  readonly deadline: Deadline
  /** The call's signal. */
  readonly signal: AbortSignal | undefined
}

/** Takes a message. To return is to accept; to throw is to refuse, and then nothing is remembered. */
export type Sink<Value> = (call: PassCall) => Value | PromiseLike<Value>

/** What became of a message. */
export type Passed<Value> =
  | {
      readonly accepted: true
      /** What the sink returned. */
      readonly value: Value
      /**
       * Who remembers it. `'process'`, in a window with a store: the mark could not be written, and leaves with the
       * next one.
       */
      readonly remembered: 'store' | 'process'
    }
  | { readonly accepted: false; readonly because: 'duplicate' }

/** What a window did so far. */
export interface WindowCounts {
  /** Messages that the sink accepted. */
  readonly accepted: number
  /** Duplicates that were dropped. */
  readonly duplicates: number
  /** Calls of the sink that it refused. */
  readonly failed: number
  /** Ids that this process has forgotten because `within` was over. */
  readonly evictedByAge: number
  /** Ids that this process has forgotten although `within` was not over: `most` came after them. */
  readonly evictedByCount: number
  /** Questions that the store did not answer: refused under `'stop'`, let through under `'pass'`. */
  readonly unchecked: number
  /** Accepted messages whose mark was not in the store when their call ended. */
  readonly unremembered: number
  /** Duplicates that wait at this moment. */
  readonly held: number
}

/** Drops duplicates between a producer and a sink. */
export interface DedupeWindow {
  readonly name: string
  /**
   * Hands a message to the sink, unless its id was accepted before. While one with the same id is with the sink in
   * this process, also by another window of the same name, store and clock, it waits: if that one is accepted it is a
   * duplicate, and if it is refused exactly one of those who wait is next. Rejects with what the sink threw, and
   * refuses with WINDOW_STORE_AWAY, WINDOW_REENTERED (from inside the sink that has the id), QUEUE_FULL,
   * DEADLINE_EXCEEDED, TRANSACTION_NESTED (with a store) and ARGUMENT_INVALID before the sink is called.
   */
  pass<Value>(id: WindowId, sink: Sink<Value>, options?: PassOptions): Promise<Passed<Value>>
  /** What it did so far, in this process. */
  readonly counts: WindowCounts
  /**
   * Removes from the store what the window has forgotten, in small commits, and all that is kept of it where nothing
   * is left; how many ids it were. A window that is used removes what it forgets as it marks. One that nobody uses any
   * more keeps its rows until somebody purges it: make it once more, by its name, and with `within: 1` to be rid of
   * all.
   */
  purge(): Promise<number>
}
