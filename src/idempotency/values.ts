// Outcomes as text: what is stored of a result or a failure, and what a repeat gets back.

import type { StoredRecord } from '../atomicity/index.js'
import { isPromiseLike, isRepriseError, RepriseError } from '../kernel/index.js'
import type { CodecContext, ValueCodec } from './codec.js'
import { parseJson, printJson } from './codecs/json.js'
import { type Failure, fail, isFailure } from './failure.js'

/** What stands in a record in the place of a codec's name where the outcome was too large to keep. */
const tombstone = 'tombstone'
/** The same where the outcome was none that could be encoded. */
const unencoded = 'unencoded'

/** How the outcomes of an operation are stored. */
export interface OutcomeValues {
  /** By the name in the record: the codec in use, and earlier ones. */
  readonly codecs: ReadonlyMap<string, ValueCodec<unknown>>
  /** The one in use; undefined: JSON. */
  readonly codec: ValueCodec<unknown> | undefined
  /** The most bytes of text. */
  readonly largestBytes: number
  /** The registered codes of failures. */
  readonly failures: ReadonlySet<string>
}

/** An outcome as a record holds it. */
export type StoredOutcome = Pick<StoredRecord, 'codec' | 'value'> & { readonly state: 'succeeded' | 'failed' }

/** An outcome that is to be stored; the whole of it, where only a tombstone is. */
export interface EncodedOutcome extends StoredOutcome {
  /** What the first caller gets as it is: the store has a tombstone only, or the codec is faithful. */
  readonly whole?: { readonly value: unknown } | undefined
}

/** An outcome that was read. */
export type DecodedOutcome =
  | { readonly outcome: 'succeeded'; readonly value: unknown }
  | { readonly outcome: 'failed'; readonly failure: Failure }

const reserved: readonly string[] = [tombstone, unencoded]
const codecName = /^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$/

/** Checks the codecs of a definition. Refuses with OPERATION_INVALID. */
export function outcomeValues(given: {
  readonly codec: unknown
  readonly earlier: unknown
  readonly largestBytes: number
  readonly failures: ReadonlySet<string>
}): OutcomeValues {
  const { codec, earlier, largestBytes, failures } = given
  const codecs = new Map<string, ValueCodec<unknown>>()
  if (!Array.isArray(earlier)) throw invalidCodec('earlierCodecs')
  if (codec !== undefined) add(codecs, codec, 'codec')
  for (const one of earlier) add(codecs, one, 'earlierCodecs')
  return { codecs, codec: codec as ValueCodec<unknown> | undefined, largestBytes, failures }
}

function add(codecs: Map<string, ValueCodec<unknown>>, codec: unknown, option: string): void {
  const { name, encode, decode, discard = encode } = Object(codec) as Partial<ValueCodec<unknown>>
  const sound = typeof name === 'string' && codecName.test(name) && !reserved.includes(name) && !codecs.has(name)
  if (!sound || [encode, decode, discard].some((part) => typeof part !== 'function')) throw invalidCodec(option)
  codecs.set(name, codec as ValueCodec<unknown>)
}

function invalidCodec(option: string): RepriseError {
  const message = `The option ${option} is not valid. A codec has a name of its own, of 1 to 64 letters, digits, dots or dashes, encode and decode.`
  return new RepriseError('OPERATION_INVALID', message, { details: { option } })
}

/**
 * What is stored of what a body returned. Refuses a failure with a code that is not registered with FAILURE_UNREGISTERED, and with the codes of JSON what would not come
 * back as it is. One that is too large becomes a tombstone.
 */
export function encodeOutcome(
  values: OutcomeValues,
  returned: unknown,
  context: CodecContext,
): EncodedOutcome | Promise<EncodedOutcome> {
  const failed = isFailure(returned)
  if (failed) checkRegistered(values, returned)
  const codec = failed && values.codec?.failures !== true ? undefined : values.codec
  const value: unknown = failed ? plainFailure(returned) : returned
  if (codec !== undefined) return encodeBy(codec, values, { returned, value }, context)
  // JSON is printed at once, and needs no promise.
  const text = printJson(value, values.largestBytes)
  return text === undefined
    ? tombstoneOf(returned)
    : { state: failed ? 'failed' : 'succeeded', codec: undefined, value: text }
}

// A promise only where the codec has one, here and below.
function encodeBy(
  codec: ValueCodec<unknown>,
  { largestBytes }: OutcomeValues,
  { returned, value }: { readonly returned: unknown; readonly value: unknown },
  context: CodecContext,
): EncodedOutcome | Promise<EncodedOutcome> {
  const outcomeOf = (text: unknown): EncodedOutcome => {
    if (typeof text !== 'string') {
      throw new RepriseError('OPERATION_INVALID', 'A codec encoded an outcome as something other than text.', {
        details: { option: 'codec' },
      })
    }
    if (isLarger(text, largestBytes)) return tombstoneOf(returned)
    const whole = codec.faithful === true ? { value: returned } : undefined
    return { state: isFailure(returned) ? 'failed' : 'succeeded', codec: codec.name, value: text, whole }
  }
  const encoding = codec.encode(value, context)
  return isPromiseLike(encoding) ? Promise.resolve(encoding).then(outcomeOf) : outcomeOf(encoding)
}

function tombstoneOf(returned: unknown, codec: string = tombstone): EncodedOutcome {
  const state = isFailure(returned) ? 'failed' : 'succeeded'
  return { state, codec, value: undefined, whole: { value: returned } }
}

/**
 * What is stored of an outcome that JSON cannot give back, where its effect cannot be undone any more: that it is done. The call that has it gets the whole of it, a repeat is refused with
 * OUTCOME_UNREADABLE, and nothing is executed again. Undefined where an error does not say so: a codec may be luckier another time.
 */
export function unencodedOutcome(returned: unknown, error: unknown): EncodedOutcome | undefined {
  const hopeless = isRepriseError(error) && error.code.startsWith('JSON_')
  return hopeless ? tombstoneOf(returned, unencoded) : undefined
}

/** Whether only that it is done is stored, since the outcome could not be encoded. */
export function isUnencoded({ codec }: EncodedOutcome): boolean {
  return codec === unencoded
}

/** Tells the codec that nobody will get a value that a body returned, or a failure that it threw. */
export function discardReturned({ codec }: OutcomeValues, returned: unknown): void {
  const failed = isFailure(returned)
  if (codec?.discard === undefined || (failed && codec.failures !== true)) return
  try {
    codec.discard(failed ? plainFailure(returned) : returned)
  } catch {
    // How the call ends is decided already.
  }
}

/** Refuses with FAILURE_UNREGISTERED. */
export function checkRegistered({ failures }: OutcomeValues, failure: Failure, cause?: unknown): void {
  if (failures.has(failure.code)) return
  throw new RepriseError(
    'FAILURE_UNREGISTERED',
    'A final failure has a code that the operation does not list in its failures; nothing was stored.',
    cause === undefined ? {} : { cause },
  )
}

/** The outcome of a stored text. Refuses with OUTCOME_TOO_LARGE or OUTCOME_UNREADABLE; never reads less than was stored. */
export function decodeOutcome(
  { codecs }: OutcomeValues,
  stored: StoredOutcome,
  context: CodecContext,
): DecodedOutcome | Promise<DecodedOutcome> {
  const { state, codec: name, value: text } = stored
  if (name === tombstone) {
    throw new RepriseError('OUTCOME_TOO_LARGE', 'The operation is done, and its outcome was too large to keep.', {
      details: { outcome: state },
    })
  }
  if (name === unencoded) {
    const message = 'The operation is done; its outcome was none that could be stored.'
    throw new RepriseError('OUTCOME_UNREADABLE', message, { details: { outcome: state, because: unencoded } })
  }
  const codec = name === undefined ? undefined : codecs.get(name)
  if (text === undefined || (name !== undefined && codec === undefined)) throw unreadable(state)
  if (codec !== undefined) return decodeBy(codec, text, state, context)
  try {
    return decoded(state, parseJson(text))
  } catch (cause) {
    throw unreadable(state, cause)
  }
}

function decodeBy(
  codec: ValueCodec<unknown>,
  text: string,
  state: StoredOutcome['state'],
  context: CodecContext,
): DecodedOutcome | Promise<DecodedOutcome> {
  const failed = (cause: unknown): never => {
    throw unreadable(state, cause)
  }
  try {
    const decoding = codec.decode(text, context, state)
    if (!isPromiseLike(decoding)) return decoded(state, decoding)
    return Promise.resolve(decoding)
      .then((value) => decoded(state, value))
      .catch(failed)
  } catch (cause) {
    return failed(cause)
  }
}

function decoded(state: StoredOutcome['state'], value: unknown): DecodedOutcome {
  return state === 'failed' ? { outcome: state, failure: failureOf(value) } : { outcome: state, value }
}

function unreadable(state: string, cause?: unknown): RepriseError {
  const message =
    'The operation is done; its outcome was written by a codec that is not named here, or cannot be decoded.'
  return new RepriseError('OUTCOME_UNREADABLE', message, {
    details: { outcome: state },
    ...(cause === undefined ? {} : { cause }),
  })
}

function plainFailure({ code, data }: Failure): { readonly code: string; readonly data?: unknown } {
  return data === undefined ? { code } : { code, data }
}

function failureOf(value: unknown): Failure {
  const { code, data } = value as { readonly code: string; readonly data?: unknown }
  return fail(code, data)
}

function isLarger(text: string, largestBytes: number): boolean {
  // A UTF-16 unit is at most three bytes of UTF-8.
  if (text.length * 3 <= largestBytes) return false
  return text.length > largestBytes || Buffer.byteLength(text) > largestBytes
}
