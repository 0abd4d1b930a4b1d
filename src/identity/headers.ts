// The headers Reprise reads and writes, as codecs. A value of ours that is unknown or malformed is ignored, never an
// error: a header must not be able to break a request. Only the key itself is refused when it is bad.

import { maxDurationMs, RepriseError } from '../kernel/index.js'
import { parseHttpDate } from './http-date.js'
import type { Key } from './key.js'
import { type KeyFieldOptions, parseKeyField, printKeyField } from './key-field.js'

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
  read: (field) => wholeNumber(single(field), 1, Number.MAX_SAFE_INTEGER),
  write: (attempt) => printWholeNumber('The attempt', attempt, 1),
}

/**
 * `Reprise-Deadline-Ms: 1500`: how long the caller still waits, in ms. Relative, since clocks differ. More than ten years is
 * ignored, so that what is read is always a duration.
 */
export const deadlineHeader: HeaderCodec<number> = {
  name: 'Reprise-Deadline-Ms',
  read: (field) => wholeNumber(single(field), 0, maxDurationMs),
  // Rounded down: a receiver must not believe in time that the caller does not have.
  write: (remainingMs) => printWholeNumber('The remaining time', Math.floor(remainingMs), 0),
}

/** `Reprise-Retry-Owner: caller`: somebody above repeats, so nobody below should. Believed from trusted callers only. */
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
 * The wait that a `Retry-After` field asks for, in ms: whole seconds, or an HTTP date in any of its three forms (a past one is
 * 0). Undefined for anything else. A number too long to be one is Infinity. The wait is never shortened here, however
 * long it is: a caller that will not wait that long stops instead of coming back early.
 *
 * @param nowMs Wall time in ms since 1970, to which a date is compared; refused with ARGUMENT_INVALID when it is no number.
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
function wholeNumber(text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined
  const number = Number(text)
  return number >= least && number <= most ? number : undefined
}

function printWholeNumber(what: string, number: number, least: number): string {
  if (!Number.isSafeInteger(number) || number < least || number >= 1e15) {
    throw new RepriseError('ARGUMENT_INVALID', `${what} must be a whole number of at least ${least}.`)
  }
  return String(number)
}
