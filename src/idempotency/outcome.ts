// How an operation ended: as the body says it, as text in the record, and as a caller gets it.

import type { RecordOutcome } from '../atomicity/index.js'
import type { StoredKey } from '../identity/index.js'
import {
  type Clock,
  type Deadline,
  defined,
  inTime,
  isPromiseLike,
  isRepriseError,
  RepriseError,
  remainingMs,
} from '../kernel/index.js'
import { type OperationEvent, operationMisjudged } from '../telemetry/index.js'
import { parseJson, printJson } from './codecs/json.js'

const brand: unique symbol = Symbol.for('reprise.failure') as never

/** A final failure, as data. */
export interface Failure<Code extends string = string, Data = unknown> {
  /** The mark by which it is told from a result. */
  readonly [brand]: true
  /** One of the codes that the operation registers. */
  readonly code: Code
  /** What belongs to it; anything JSON can hold. Undefined: nothing. */
  readonly data: Data
}

/**
 * A final failure: it is stored, and every repeat gets the same one, by its code and data. Returned from a body, it is
 * stored together with what the body wrote. Thrown (as it is, or inside {@link OperationFailedError}), or made of a
 * thrown error by the definition's `terminal`, what the body wrote is rolled back and the failure is stored.
 *
 * @example
 * ```ts
 * import { mintKey, scope } from 'reprise/identity'
 * import { fail } from 'reprise/idempotency'
 * import { memory } from 'reprise/stores/memory'
 *
 * const pay = memory({ name: 'shop' }).operation('pay', {
 *   scope: () => scope('shop'), key: () => mintKey(), window: '24h', failures: ['declined'],
 *   run: (_tx, amount: number) => (amount > 100 ? fail('declined', { most: 100 }) : amount),
 * })
 * ```
 */
export function fail<const Code extends string>(code: Code): Failure<Code, undefined>
export function fail<const Code extends string, Data>(code: Code, data: Data): Failure<Code, Data>
export function fail(code: string, data?: unknown): Failure {
  if (typeof code !== 'string' || !/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(code)) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'The code of a failure has 1 to 64 letters, digits, dots, dashes or underscores.',
    )
  }
  return Object.freeze({ [brand]: true as const, code, data })
}

/** Whether a value is a final failure, also one made by another copy of the package. */
export function isFailure(value: unknown): value is Failure {
  return typeof value === 'object' && value !== null && (value as { [brand]?: unknown })[brand] === true
}

/** The operation failed for good. The first caller and every repeat get it with the same code and data. */
export class OperationFailedError<Code extends string = string, Data = unknown> extends RepriseError {
  override readonly name: string = 'OperationFailedError'
  /** The failure: its registered code, and its data. */
  readonly failure: Failure<Code, Data>
  /** Whether it was handed out from memory. */
  readonly replayed: boolean

  constructor(failure: Failure<Code, Data>, options: { readonly replayed?: boolean; readonly cause?: unknown } = {}) {
    const message = 'The operation failed for good; its failure says how.'
    super('OPERATION_FAILED', message, 'cause' in options ? { cause: options.cause } : {})
    this.failure = failure
    this.replayed = options.replayed ?? false
  }
}

/** How a call ended, as data. */
export type Outcome<Result, Code extends string = string> =
  | { readonly outcome: 'succeeded'; readonly value: Result; readonly replayed: boolean }
  | {
      readonly outcome: 'failed'
      readonly failure: Failure<Code>
      readonly replayed: boolean
      /** What the body threw, where that became the failure; only the call whose body it was has it. */
      readonly cause?: unknown
    }

/** How the operation of a call ended: what its record holds, and what only this process knows of it. */
export interface Ending extends RecordOutcome {
  /** What the record is bound to; undefined: nothing is compared. */
  readonly fingerprint: string | undefined
  /** Whether this very call brought it about. */
  readonly own: boolean
  /** What the first caller gets as it is: the store has a tombstone only, or the codec is faithful. */
  readonly whole?: { readonly value: unknown } | undefined
  /** What was thrown, where a thrown error became a final failure. */
  readonly cause?: unknown
}

/** What a codec may bind a text to: swapped between rows, it must not be readable any more. */
export interface CodecContext {
  /** The record's name; the associated data of an encryption. */
  readonly id: StoredKey
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
   * What `decode` gives equals what was encoded. The first caller then gets the value itself that the body returned,
   * and nothing is decoded for it. Default: the first caller gets a decoded copy.
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
   * Called with a value that was to be encoded and that nobody will get: its transaction did not commit, a later run
   * took its place, or somebody else's outcome was replayed. For values that hold something open, such as a stream.
   * What it throws is ignored. Default: nothing is done.
   */
  discard?(value: Result): void
}

/** How the outcomes of an operation are stored. */
export interface OutcomeStorage {
  /** By the name in the record: the codec in use, and earlier ones. */
  readonly codecs: ReadonlyMap<string, ValueCodec<unknown>>
  /** The one in use; undefined: JSON. */
  readonly codec: ValueCodec<unknown> | undefined
  /** The most bytes of text. */
  readonly largestBytes: number
  /** The registered codes of failures. */
  readonly failures: ReadonlySet<string>
  /** How long an outcome is remembered, in ms. */
  readonly rememberedMs: number
}

// What stands in a record in the place of a codec's name where the outcome was too large to keep, and where it was none
// that could be encoded.
const tombstone = 'tombstone'
const unencoded = 'unencoded'
const codecName = /^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$/

/** Checks the codecs of a definition. Refuses with OPERATION_INVALID. */
export function checkedCodecs(codec: unknown, earlier: unknown): Pick<OutcomeStorage, 'codec' | 'codecs'> {
  const codecs = new Map<string, ValueCodec<unknown>>()
  const add = (one: unknown, option: string): void => {
    const { name, encode, decode, discard = encode } = Object(one) as Partial<ValueCodec<unknown>>
    const named = typeof name === 'string' && codecName.test(name) && name !== tombstone && name !== unencoded
    if (!named || codecs.has(name) || [encode, decode, discard].some((part) => typeof part !== 'function')) {
      throw invalidCodec(option)
    }
    codecs.set(name, one as ValueCodec<unknown>)
  }
  if (!Array.isArray(earlier)) throw invalidCodec('earlierCodecs')
  if (codec !== undefined) add(codec, 'codec')
  for (const one of earlier) add(one, 'earlierCodecs')
  return { codecs, codec: codec as ValueCodec<unknown> | undefined }
}

function invalidCodec(option: string): RepriseError {
  const message = `The option ${option} is not valid. A codec has a name of its own, of 1 to 64 letters, digits, dots or dashes, encode and decode.`
  return new RepriseError('OPERATION_INVALID', message, { details: { option } })
}

/**
 * The ending of a call whose body returned something, or failed for good. Refuses a failure with a code that is not
 * registered with FAILURE_UNREGISTERED, and with the codes of JSON what would not come back as it is. What is too large
 * becomes a tombstone. A promise only where the codec makes one.
 *
 * @param fingerprint What the record is bound to.
 * @param cause What was thrown, where that became the failure.
 */
export function encodeOutcome(
  storage: OutcomeStorage,
  returned: unknown,
  context: CodecContext,
  fingerprint?: string,
  cause?: unknown,
): Ending | Promise<Ending> {
  const failed = isFailure(returned)
  if (failed) checkRegistered(storage, returned, cause)
  const codec = failed && storage.codec?.failures !== true ? undefined : storage.codec
  const value: unknown = failed ? plainFailure(returned) : returned
  const { largestBytes, rememberedMs } = storage
  const stored = (text: unknown): Ending => {
    if (codec !== undefined && typeof text !== 'string') {
      const message = 'A codec encoded an outcome as something other than text.'
      throw new RepriseError('OPERATION_INVALID', message, { details: { option: 'codec' } })
    }
    // A UTF-16 unit is at most three bytes of UTF-8, so most texts need not be measured.
    const fits =
      typeof text === 'string' &&
      (text.length * 3 <= largestBytes || (text.length <= largestBytes && Buffer.byteLength(text) <= largestBytes))
    return {
      state: failed ? 'failed' : 'succeeded',
      codec: fits ? codec?.name : tombstone,
      value: fits ? text : undefined,
      rememberedMs,
      fingerprint,
      own: true,
      whole: fits && codec?.faithful !== true ? undefined : { value: returned },
      cause,
    }
  }
  if (codec === undefined) return stored(printJson(value, largestBytes))
  const encoding = codec.encode(value, context)
  return isPromiseLike(encoding) ? Promise.resolve(encoding).then(stored) : stored(encoding)
}

/**
 * The ending with an outcome that JSON cannot give back, where its effect cannot be undone any more: that it is done is
 * stored. The call that has it gets the whole of it, a repeat is refused with OUTCOME_UNREADABLE, and nothing is
 * executed again. Undefined where the error says something else: a codec may be luckier another time.
 */
export function unencodedOutcome(
  { rememberedMs }: OutcomeStorage,
  returned: unknown,
  fingerprint: string | undefined,
  error: unknown,
): Ending | undefined {
  if (!isRepriseError(error) || !error.code.startsWith('JSON_')) return undefined
  const state = isFailure(returned) ? 'failed' : 'succeeded'
  const whole = { value: returned }
  return { state, codec: unencoded, value: undefined, rememberedMs, fingerprint, own: true, whole }
}

/** Whether only that it is done is stored, since the outcome could not be encoded. */
export function isUnencoded({ codec }: RecordOutcome): boolean {
  return codec === unencoded
}

/** Tells the codec that nobody will get a value that a body returned, or a failure that it threw. */
export function discardReturned({ codec }: OutcomeStorage, returned: unknown): void {
  const failed = isFailure(returned)
  if (codec?.discard === undefined || (failed && codec.failures !== true)) return
  try {
    codec.discard(failed ? plainFailure(returned) : returned)
  } catch {
    // How the call ends is decided already.
  }
}

/** Refuses with FAILURE_UNREGISTERED. */
export function checkRegistered({ failures }: OutcomeStorage, failure: Failure, cause?: unknown): void {
  if (failures.has(failure.code)) return
  throw new RepriseError(
    'FAILURE_UNREGISTERED',
    'A final failure has a code that the operation does not list in its failures; nothing was stored.',
    defined({ cause }),
  )
}

/**
 * The final failure in what a body threw, or what the definition's `terminal` makes of it; undefined: it is none. A
 * `terminal` that throws, or returns something else, says nothing: what the body threw decides, and the mistake is told
 * as an event.
 */
export function finalFailureIn(
  error: unknown,
  terminal: ((error: unknown) => unknown) | undefined,
  event: () => OperationEvent,
): Failure | undefined {
  // Thrown as it is, it means the same as inside its error.
  if (isFailure(error)) return error
  if (isRepriseError(error, 'OPERATION_FAILED')) {
    const { failure } = error as Partial<OperationFailedError>
    if (isFailure(failure)) return failure
  }
  let failure: unknown
  try {
    failure = terminal?.(error)
  } catch (mistake) {
    if (operationMisjudged.hasSubscribers) operationMisjudged.publish({ ...event(), because: 'threw', error: mistake })
    return undefined
  }
  if (failure === undefined || isFailure(failure)) return failure
  // Nobody waits for a promise here: one that fails would end the process.
  if (failure instanceof Promise) failure.catch(() => undefined)
  if (operationMisjudged.hasSubscribers) operationMisjudged.publish({ ...event(), because: 'no-failure' })
  return undefined
}

/** How long a caller waits for its outcome to be decoded. */
export interface DecodeLimits {
  readonly deadline: Deadline
  readonly signal?: AbortSignal | undefined
  readonly clock: Clock
}

// What a call has brought about itself is not lost to a deadline that has just passed.
const ownDecodeMs = 1_000

/**
 * What a caller gets: the whole value where it is at hand, otherwise what the stored text decodes to. Refuses with
 * OUTCOME_TOO_LARGE or OUTCOME_UNREADABLE; never reads less than was stored. A codec that takes longer than the call
 * may ends it with DEADLINE_EXCEEDED, or the signal's reason: the outcome stays stored, and a repeat gets it.
 */
export function decodeOutcome(
  { codecs }: Pick<OutcomeStorage, 'codecs'>,
  ending: Pick<Ending, 'state' | 'codec' | 'value' | 'own' | 'whole' | 'cause'>,
  context: CodecContext,
  limits: DecodeLimits,
): Outcome<unknown> | Promise<Outcome<unknown>> {
  const { state, codec: name, value: text, own, whole } = ending
  if (whole !== undefined) return outcomeOf(ending, whole.value)
  if (name === tombstone) {
    const message = 'The operation is done, and its outcome was too large to keep.'
    throw new RepriseError('OUTCOME_TOO_LARGE', message, { details: { outcome: state } })
  }
  if (name === unencoded) {
    const message = 'The operation is done; its outcome was none that could be stored.'
    throw new RepriseError('OUTCOME_UNREADABLE', message, { details: { outcome: state, because: unencoded } })
  }
  const codec = name === undefined ? undefined : codecs.get(name)
  if (text === undefined || (name !== undefined && codec === undefined)) throw unreadable(ending)
  let decoding: unknown
  try {
    decoding = codec === undefined ? parseJson(text) : codec.decode(text, context, state)
    if (!isPromiseLike(decoding)) return outcomeOf(ending, decoding)
  } catch (cause) {
    throw unreadable(ending, cause)
  }
  const decoded = decoding
    .then((value) => outcomeOf(ending, value))
    .then(undefined, (cause) => {
      throw unreadable(ending, cause)
    })
  const { clock, signal, deadline } = limits
  const limitMs = Math.max(own ? ownDecodeMs : 0, remainingMs(deadline, clock))
  return inTime({ clock, limitMs, signal, expired: notDecoded }, decoded)
}

function outcomeOf({ state, own, cause }: Pick<Ending, 'state' | 'own' | 'cause'>, value: unknown): Outcome<unknown> {
  if (state === 'succeeded') return { outcome: 'succeeded', value, replayed: !own }
  const { code, data } = value as Failure
  const failure = isFailure(value) ? value : fail(code, data)
  const failed = { outcome: 'failed', failure, replayed: !own } as const
  return cause === undefined ? failed : { ...failed, cause }
}

function unreadable({ state, codec }: Pick<Ending, 'state' | 'codec'>, cause?: unknown): RepriseError {
  const message =
    'The operation is done; its outcome was written by a codec that is not named here, or cannot be decoded.'
  return new RepriseError('OUTCOME_UNREADABLE', message, {
    details: { outcome: state, ...defined({ codec }) },
    ...defined({ cause }),
  })
}

function notDecoded(): RepriseError {
  const message = 'The operation is done; its outcome was not decoded before the deadline.'
  return new RepriseError('DEADLINE_EXCEEDED', message)
}

function plainFailure({ code, data }: Failure): { readonly code: string; readonly data?: unknown } {
  return data === undefined ? { code } : { code, data }
}
