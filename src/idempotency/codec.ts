// How an outcome becomes the text that is stored, and how it comes back.

import type { StoredKey } from '../identity/index.js'

/** What a codec may bind a text to: swapped between rows, it must not be readable any more. */
export interface CodecContext {
  /** The record's name; the associated data of an encryption. */
  readonly id: StoredKey
  /** The operation's name. */
  readonly operation: string
}

/**
 * Turns an operation's result into text and back. The first caller gets what `decode` makes of the stored text too,
 * after the commit, so that first and repeated answers are alike; a codec that is `faithful` spares it that. Where
 * `decode` throws, the caller gets OUTCOME_UNREADABLE, and nothing is executed again.
 */
export interface ValueCodec<Result> {
  /**
   * Names the codec in the record, with a version: `aes-gcm-2`. It is what `decode` is chosen by; 1 to 64 letters,
   * digits, dots, dashes.
   */
  readonly name: string
  /**
   * Whether final failures go through it too, as `{ code, data }`: what encrypts wants that, what knows one type of
   * results does not. Default false: failures are JSON.
   */
  readonly failures?: boolean
  /**
   * What `decode` gives equals what was encoded. The first caller then gets the value itself that the body returned, and
   * nothing is decoded for it. Default: the first caller gets a decoded copy.
   */
  readonly faithful?: true
  /** The text to store. */
  encode(value: Result, context: CodecContext): string | PromiseLike<string>
  /**
   * The value of a stored text. May look things up: a reference is rehydrated here.
   *
   * @param state How the operation ended. `'failed'` only where `failures` is true: then it gives `{ code, data }`.
   */
  decode(text: string, context: CodecContext, state?: 'succeeded' | 'failed'): Result | PromiseLike<Result>
  /**
   * Called with a value that was to be encoded and that nobody will get: its transaction did not commit, a later run took
   * its place, or somebody else's outcome was replayed. For values that hold something open, such as a stream. What it
   * throws is ignored. Default: nothing is done.
   */
  discard?(value: Result): void
}
