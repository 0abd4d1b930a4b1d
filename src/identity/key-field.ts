// The `Idempotency-Key` field: a structured-field String (RFC 8941, 3.3.3), or the bare form most clients send.
//
// Both forms of one key must become one key. What could be read in two ways is refused, each shape with its own code.

import { RepriseError } from '../kernel/index.js'
import { checkKeyLimits, type Key, type KeyLimits, parseKey } from './key.js'
import { skipParameters } from './parameters.js'

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
 */
export function parseKeyField(
  field: string | readonly string[] | null | undefined,
  options: KeyFieldOptions = {},
): Key {
  checkKeyLimits(options)
  checkWord('form', options.form, ['any', 'quoted'])
  checkWord('parameters', options.parameters, ['ignore', 'refuse'])
  const value = trimSpaces(onlyValue(field))
  if (value.length > maxFieldLength) {
    throw new RepriseError(
      'KEY_TOO_LONG',
      `The field has ${value.length} characters; the limit is ${maxFieldLength}.`,
      {
        details: { length: value.length, limit: maxFieldLength },
      },
    )
  }
  return value.charCodeAt(0) === quote ? quotedKey(value, options) : bareKey(value, options)
}

/** Writes a key as the value of the `Idempotency-Key` field, quoted as the standard says. */
export function printKeyField(key: Key): string {
  return `"${parseKey(key).replace(/["\\]/g, '\\$&')}"`
}

// A misspelt option must not quietly mean the lenient form.
function checkWord(option: string, word: string | undefined, words: readonly string[]): void {
  if (word === undefined || words.includes(word)) return
  throw new RepriseError('ARGUMENT_INVALID', `The option ${option} is one of ${words.join(', ')}.`)
}

function onlyValue(field: string | readonly string[] | null | undefined): string {
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
  return value
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
  const next = skipSpaces(value, end ?? start)
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

// A comma, a quote or a semicolon in a bare key could be a joined field, a broken string or a parameter.
function bareKey(value: string, options: KeyFieldOptions): Key {
  if (value.length === 0) throw new RepriseError('KEY_EMPTY', 'The Idempotency-Key field is empty.')
  if (value.includes(',')) {
    throw new RepriseError('KEY_FIELD_REPEATED', 'A bare key holds a comma: two fields may have been joined into one.')
  }
  if (options.form === 'quoted') {
    throw new RepriseError('KEY_FIELD_UNQUOTED', 'The key is not a quoted string, such as "8e03978e".')
  }
  const odd = value.search(/[";]/)
  if (odd >= 0) {
    const details = { position: odd }
    throw new RepriseError('KEY_FIELD_TRAILING', `A bare key ends at position ${odd}, and more text follows.`, {
      details,
    })
  }
  return parseKey(value, options)
}

// RFC 8941, 4.2: only spaces are stripped; a tab is not a space.
function trimSpaces(value: string): string {
  const start = skipSpaces(value, 0)
  let end = value.length
  while (end > start && value.charCodeAt(end - 1) === space) end--
  return value.slice(start, end)
}

function skipSpaces(value: string, start: number): number {
  let position = start
  while (value.charCodeAt(position) === space) position++
  return position
}
