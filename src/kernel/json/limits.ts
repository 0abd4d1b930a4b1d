// How much JSON is too much: every document is bounded in bytes and in depth before any work is done on it.

import { RepriseError } from '../errors.js'

/** Bounds on one JSON document. */
export interface JsonLimits {
  /**
   * The largest document, in bytes of UTF-8: of the source for {@link canonicalJson}, of the canonical text for
   * {@link canonicalJsonOf}, where a bigint counts with all its digits. From 0 to 64 MiB. Default: 1 MiB (1,048,576).
   */
  readonly maxBytes?: number
  /** How many arrays and objects may lie inside each other; a bare number has depth 0. From 0 to 1,000. Default: 128. */
  readonly maxDepth?: number
}

const defaultMaxBytes = 1_048_576
const defaultMaxDepth = 128
// A number can grow when it is written out (1e20 has 4 bytes, its canonical text 21), and a string of V8 ends at
// 512 MiB: sources up to 64 MiB always fit.
const largestMaxBytes = 67_108_864
const largestMaxDepth = 1_000

/** The limits with their defaults; refuses nonsense with ARGUMENT_INVALID. */
export function resolveLimits(limits: JsonLimits = {}): Required<JsonLimits> {
  if (typeof limits !== 'object' || limits === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'Limits have to be an object.', { details: { argument: 'limits' } })
  }
  return {
    maxBytes: whole('maxBytes', limits.maxBytes ?? defaultMaxBytes, largestMaxBytes),
    maxDepth: whole('maxDepth', limits.maxDepth ?? defaultMaxDepth, largestMaxDepth),
  }
}

function whole(argument: string, value: number, largest: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= largest) return value
  const message = `${argument} has to be a whole number from 0 to ${largest}.`
  throw new RepriseError('ARGUMENT_INVALID', message, { details: { argument, largest } })
}

/** The refusal of a document that has more bytes than allowed. */
export function tooLarge(maxBytes: number): RepriseError {
  return new RepriseError('JSON_TOO_LARGE', `The JSON has more than ${maxBytes} bytes.`, { details: { maxBytes } })
}

/** The refusal of a document that is nested deeper than allowed. */
export function tooDeep(maxDepth: number, details: { readonly offset?: number } = {}): RepriseError {
  return new RepriseError('JSON_TOO_DEEP', `The JSON is nested more than ${maxDepth} levels deep.`, {
    details: { maxDepth, ...details },
  })
}
