// One pass over one text: where it reads, where it writes, and how it stops.
//
// The source is a copy of ours that ends in zero bytes. A zero is legal nowhere in JSON, so the loops need no check
// for the end, and nobody can change the bytes while they are read.

import { type ErrorCode, RepriseError } from '../errors.js'

/** The state of a pass. Its parts move `at` and `outAt` forward and never back. */
export interface Pass {
  /** The bytes to read, followed by at least {@link padding} zero bytes. */
  source: Uint8Array
  /** How many bytes of `source` are the document. */
  end: number
  /** Whether the caller gave a string, so that offsets count UTF-16 code units instead of bytes. */
  fromString: boolean
  /** The next byte to read. */
  at: number
  /** The canonical text so far, members still in source order. Always has room for the rest of the source as it is. */
  out: Uint8Array
  /** The next byte to write. */
  outAt: number
}

/** How many zero bytes follow the document: more than any part reads ahead. */
export const padding = 8

/** A refusal at a place in the source, in the units that the caller knows: bytes, or UTF-16 code units of a string. */
export function faultAt(pass: Pass, code: ErrorCode, what: string, at: number): RepriseError {
  const offset = callerOffset(pass, at)
  return new RepriseError(code, `${what} at offset ${offset}.`, { details: { offset } })
}

/** The refusal of a byte that cannot stand where it stands. */
export function unexpectedAt(pass: Pass, at: number): RepriseError {
  if (at >= pass.end) return faultAt(pass, 'JSON_SYNTAX', 'The JSON ends too early', pass.end)
  if ((pass.source[at] as number) >= 0x80 && sequenceLength(pass.source, at) === 0) return encodingAt(pass, at)
  return faultAt(pass, 'JSON_SYNTAX', 'The text is not JSON: unexpected character', at)
}

/** The refusal of bytes that are not UTF-8. */
export function encodingAt(pass: Pass, at: number): RepriseError {
  return faultAt(pass, 'JSON_ENCODING', 'The bytes are not UTF-8', at)
}

/** An offset of a byte, in the caller's units. */
export function callerOffset(pass: Pass, at: number): number {
  if (!pass.fromString) return at
  let units = 0
  for (let index = 0; index < at; index++) {
    const byte = pass.source[index] as number
    if (byte >= 0xf0) units += 2
    else if (byte < 0x80 || byte >= 0xc0) units += 1
  }
  return units
}

/**
 * How many bytes the well-formed UTF-8 sequence has that starts with a byte of 0x80 or more; 0 where it is ill-formed.
 * Unicode 15, table 3-7: overlong forms, surrogates and values past U+10FFFF are ill-formed.
 */
export function sequenceLength(source: Uint8Array, at: number): 0 | 2 | 3 | 4 {
  const lead = source[at] as number
  const second = source[at + 1] as number
  if (lead < 0xc2 || lead > 0xf4) return 0
  if (lead < 0xe0) return isContinuation(second) ? 2 : 0
  if (!isContinuation(second)) return 0
  if (lead < 0xf0) {
    if ((lead === 0xe0 && second < 0xa0) || (lead === 0xed && second > 0x9f)) return 0
    return isContinuation(source[at + 2] as number) ? 3 : 0
  }
  if ((lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f)) return 0
  return isContinuation(source[at + 2] as number) && isContinuation(source[at + 3] as number) ? 4 : 0
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

/** Makes room for `size` bytes beside what the rest of the source may need. Doubles, so that all growth is linear. */
export function reserve(pass: Pass, size: number): void {
  const needed = pass.outAt + size + (pass.end - pass.at) + padding
  if (needed <= pass.out.length) return
  const larger = new Uint8Array(Math.max(needed, pass.out.length * 2))
  larger.set(pass.out.subarray(0, pass.outAt))
  pass.out = larger
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
