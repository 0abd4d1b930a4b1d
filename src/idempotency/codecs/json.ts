// Outcomes as JSON, the default: what is stored is what a repeat gets, byte by byte, and what the first caller got.

import { isRepriseError, readableJsonOf } from '../../kernel/index.js'

// A body that returns nothing stores nothing; no JSON text is empty.
const nothing = ''

/**
 * The value as canonical JSON; undefined where it is larger than the limit. Refuses with JSON_VALUE_UNSUPPORTED what
 * JSON would not give back (dates, bigints, buffers, maps, instances of classes), before anything is committed; members
 * that are undefined are left out.
 */
export function printJson(value: unknown, largestBytes: number): string | undefined {
  if (value === undefined) return nothing
  try {
    return readableJsonOf(value, { maxBytes: largestBytes })
  } catch (error) {
    if (isRepriseError(error, 'JSON_TOO_LARGE')) return undefined
    throw error
  }
}

/** The value of a text that {@link printJson} made. */
export function parseJson(text: string): unknown {
  return text === nothing ? undefined : JSON.parse(text)
}
