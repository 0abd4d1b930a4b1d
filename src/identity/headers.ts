// The headers Reprise reads and writes, as codecs. A value of ours that is unknown or malformed is ignored, never an
// error: a header must not be able to break a request. Only the key itself is refused when it is bad.
//
// The key's field is a structured-field String (RFC 8941, 3.3.3), or the bare form most clients send. Both forms of one
// key must become one key. What could be read in two ways is refused, each shape with its own code.

import { maxDurationMs, RepriseError } from '../kernel/index.js'
import { parseHttpDate } from './http-date.js'
import { checkKeyLimits, type Key, type KeyLimits, parseKey } from './key.js'
import { skipParameters } from './parameters.js'

/** The value of a field as frameworks hand it over: absent, one value, or several. */
export type FieldValue = string | readonly string[] | null | undefined

/** How one header is read and written. */
export interface HeaderCodec<Value> {
  /** The field's name as it is written; fields are compared without regard to case. */
  readonly name: string
  /** The meaning of a field, or undefined when it is absent, repeated or malformed. */
  read(field: FieldValue): Value | undefined
  /** The field's text. Refuses a value that the field cannot carry with ARGUMENT_INVALID. */
  write(value: Value): string
}

/** How the key's header is read and written. */
export interface KeyHeaderCodec {
  /** The field's name as it is written. */
  readonly name: string
  /** The key, or a refusal that says what is wrong with the field: see {@link parseKeyField}. */
  read(field: FieldValue, options?: KeyFieldOptions): Key
  /** The field's text, quoted as the standard says. */
  write(key: Key): string
}

/** `Idempotency-Key`: which intent this is. Unlike the others it is refused when malformed. */
export const keyHeader: KeyHeaderCodec = { name: 'Idempotency-Key', read: parseKeyField, write: printKeyField }

/** `Idempotent-Replayed: true`: the answer comes from memory. */
export const replayedHeader: HeaderCodec<true> = {
  name: 'Idempotent-Replayed',
  read: (field) => (single(field) === 'true' ? true : undefined),
  write: () => 'true',
}

/** `Reprise-Attempt: 2`: which call of the intent this is; the first is 1. */
export const attemptHeader: HeaderCodec<number> = {
  name: 'Reprise-Attempt',
  read: /* @__PURE__ */ numberReader(1),
  write: (attempt) => printWholeNumber('The attempt', attempt, 1),
}

/**
 * `Reprise-Deadline-Ms: 1500`: how long the caller still waits, in ms. Relative, since clocks differ. More than ten
 * years is ignored, so that what is read is always a duration.
 */
export const deadlineHeader: HeaderCodec<number> = {
  name: 'Reprise-Deadline-Ms',
  read: /* @__PURE__ */ numberReader(0, maxDurationMs),
  // Rounded down: a receiver must not believe in time that the caller does not have.
  write: (remainingMs) => printWholeNumber('The remaining time', Math.floor(remainingMs), 0),
}

/**
 * `Reprise-Retry-Owner: caller`: somebody above repeats, so nobody below should. Believed from trusted callers only.
 */
export const retryOwnerHeader: HeaderCodec<'caller'> = {
  name: 'Reprise-Retry-Owner',
  read: (field) => (single(field) === 'caller' ? 'caller' : undefined),
  write: () => 'caller',
}

/** How `Retry-After` is read and written. */
export interface RetryAfterCodec {
  /** The field's name as it is written. */
  readonly name: string
  /** The wait that is asked for, in ms: see {@link readRetryAfter}. */
  read(field: FieldValue, nowMs: number): number | undefined
  /** A wait in ms as whole seconds, rounded up. */
  write(delayMs: number): string
}

/** `Retry-After` (RFC 9110, 10.2.3): how long to wait before the next attempt. */
export const retryAfterHeader: RetryAfterCodec = {
  name: 'Retry-After',
  read: readRetryAfter,
  // Rounded up: seconds are all it can say, and a repeat that comes early is refused again.
  write: (delayMs) => printWholeNumber('The delay', Math.ceil(delayMs / 1_000), 0),
}

/**
 * The wait that a `Retry-After` field asks for, in ms: whole seconds, or an HTTP date in any of its three forms (a past
 * one is 0). Undefined for anything else. A number too long to be one is Infinity. The wait is never shortened here,
 * however long it is: a caller that will not wait that long stops instead of coming back early.
 *
 * @param nowMs Wall time in ms since 1970, to which a date is compared; refused with ARGUMENT_INVALID when it is no
 *   number.
 */
export function readRetryAfter(field: FieldValue, nowMs: number): number | undefined {
  if (!Number.isFinite(nowMs)) throw new RepriseError('ARGUMENT_INVALID', 'The time to compare a date with is missing.')
  const text = single(field)
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1_000
  const atMs = parseHttpDate(text, nowMs)
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs)
}

function single(field: FieldValue): string | undefined {
  if (typeof field === 'string') return field.trim()
  if (Array.isArray(field) && field.length === 1 && typeof field[0] === 'string') return field[0].trim()
  return undefined
}

// Fifteen digits are far beyond any real count or time, and still exact.
function numberReader(least: number, most = Number.POSITIVE_INFINITY): (field: FieldValue) => number | undefined {
  return (field) => {
    const text = single(field)
    if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined
    const number = Number(text)
    return number >= least && number <= most ? number : undefined
  }
}

function printWholeNumber(what: string, number: number, least: number): string {
  if (!Number.isSafeInteger(number) || number < least || number >= 1e15) {
    throw new RepriseError('ARGUMENT_INVALID', `${what} must be a whole number of at least ${least}.`)
  }
  return String(number)
}

/** How strictly the field is read. */
export interface KeyFieldOptions extends KeyLimits {
  /** Which forms are accepted: `'any'` (quoted or bare, the default) or `'quoted'` (what the standard says). */
  readonly form?: 'any' | 'quoted'
  /** Parameters after a quoted key (`"k";v=1`): `'ignore'` (default, as structured fields ask) or `'refuse'`. */
  readonly parameters?: 'ignore' | 'refuse'
}

// No escaped key of 255 characters is longer than twice that; the rest is room for parameters.
const maxFieldLength = 1_024
const quote = 0x22
const backslash = 0x5c
const space = 0x20
const comma = 0x2c

/**
 * Reads the key from the value, or the values, of the `Idempotency-Key` field. Give it every value that arrived
 * (`request.headersDistinct` in Node): two fields are an error, also when something on the way joined them by a comma.
 *
 * Refuses with KEY_MISSING, KEY_FIELD_REPEATED, KEY_FIELD_UNQUOTED, KEY_FIELD_UNTERMINATED, KEY_FIELD_ESCAPE,
 * KEY_FIELD_TRAILING, KEY_FIELD_PARAMETER, KEY_EMPTY, KEY_TOO_SHORT, KEY_TOO_LONG or KEY_CHARACTER.
 *
 * @example
 * ```ts
 * import { parseKeyField } from 'reprise/identity'
 *
 * const quoted = parseKeyField('"8e03978e-40d5-43dd-bc93-6894a57f9324"')
 * const bare = parseKeyField(['8e03978e-40d5-43dd-bc93-6894a57f9324'], { minLength: 16 })
 * console.log(quoted === bare)
 * ```
 * ```text
 * true
 * ```
 */
export function parseKeyField(field: FieldValue, options: KeyFieldOptions = {}): Key {
  const { form = 'any', parameters = 'ignore' } = options
  checkKeyLimits(options)
  // A misspelt option must not quietly mean the lenient form.
  if (form !== 'any' && form !== 'quoted') {
    throw new RepriseError('ARGUMENT_INVALID', 'The option form is one of any, quoted.')
  }
  if (parameters !== 'ignore' && parameters !== 'refuse') {
    throw new RepriseError('ARGUMENT_INVALID', 'The option parameters is one of ignore, refuse.')
  }
  const value = onlyValue(field)
  const { length } = value
  if (length > maxFieldLength) {
    throw new RepriseError('KEY_TOO_LONG', `The field has ${length} characters; the limit is ${maxFieldLength}.`, {
      details: { length, limit: maxFieldLength },
    })
  }
  if (value.charCodeAt(0) === quote) return quotedKey(value, options)
  if (length === 0) throw new RepriseError('KEY_EMPTY', 'The Idempotency-Key field is empty.')
  // A comma, a quote or a semicolon in a bare key could be a joined field, a broken string or a parameter.
  const odd = value.search(/[,;"]/)
  if (odd >= 0 || form === 'quoted') throw unfitBareKey(value, odd, form)
  return parseKey(value, options)
}

/** Writes a key as the value of the `Idempotency-Key` field, quoted as the standard says. */
export function printKeyField(key: Key): string {
  return `"${parseKey(key).replace(/["\\]/g, '\\$&')}"`
}

// The one value of a field, without the spaces around it. RFC 8941, 4.2: only spaces are stripped; a tab is not a
// space.
function onlyValue(field: FieldValue): string {
  const values = field === undefined || field === null ? [] : typeof field === 'string' ? [field] : field
  if (!Array.isArray(values)) throw new RepriseError('ARGUMENT_INVALID', 'A field is text, or a list of texts.')
  if (values.length > 1) {
    const details = { fields: values.length }
    throw new RepriseError('KEY_FIELD_REPEATED', `The field arrived ${values.length} times.`, { details })
  }
  const value = values[0]
  if (value === undefined) throw new RepriseError('KEY_MISSING', 'The Idempotency-Key field is absent.')
  if (typeof value !== 'string') {
    throw new RepriseError('ARGUMENT_INVALID', `A field value is a string, not ${typeof value}.`)
  }
  let start = 0
  let end = value.length
  while (value.charCodeAt(start) === space) start += 1
  while (end > start && value.charCodeAt(end - 1) === space) end -= 1
  return value.slice(start, end)
}

function quotedKey(value: string, options: KeyFieldOptions): Key {
  let text = ''
  let position = 1
  for (;;) {
    const unit = value.charCodeAt(position)
    if (Number.isNaN(unit)) throw new RepriseError('KEY_FIELD_UNTERMINATED', 'The quoted key has no closing quote.')
    if (unit === quote) break
    if (unit === backslash) {
      position++
      const escaped = value.charCodeAt(position)
      if (escaped !== quote && escaped !== backslash) {
        const details = { position }
        throw new RepriseError('KEY_FIELD_ESCAPE', `The backslash before position ${position} escapes nothing.`, {
          details,
        })
      }
    }
    text += value[position]
    position++
  }
  checkAfterQuotedKey(value, position + 1, options)
  return parseKey(text, options)
}

function checkAfterQuotedKey(value: string, start: number, options: KeyFieldOptions): void {
  if (start === value.length) return
  const end = skipParameters(value, start)
  let next = end ?? start
  while (value.charCodeAt(next) === space) next += 1
  if (value.charCodeAt(next) === comma) {
    throw new RepriseError('KEY_FIELD_REPEATED', 'A comma follows the key: two fields were joined into one.')
  }
  if (end === undefined || (end > start && options.parameters === 'refuse')) {
    const why = end === undefined ? 'are malformed' : 'are not allowed here'
    throw new RepriseError('KEY_FIELD_PARAMETER', `The parameters after the key ${why}.`, {
      details: { position: start },
    })
  }
  if (next !== value.length) {
    const details = { position: next }
    throw new RepriseError('KEY_FIELD_TRAILING', `Unexpected text at position ${next}, after the key.`, { details })
  }
}

function unfitBareKey(value: string, odd: number, form: 'any' | 'quoted'): RepriseError {
  if (value.includes(',')) {
    return new RepriseError('KEY_FIELD_REPEATED', 'A bare key holds a comma: two fields may have been joined into one.')
  }
  if (form === 'quoted') {
    return new RepriseError('KEY_FIELD_UNQUOTED', 'The key is not a quoted string, such as "8e03978e".')
  }
  return new RepriseError('KEY_FIELD_TRAILING', `A bare key ends at position ${odd}, and more text follows.`, {
    details: { position: odd },
  })
}
