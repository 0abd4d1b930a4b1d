// Several texts as one, so that no crafted separator can make two different lists look alike.

import { RepriseError } from './errors.js'

/**
 * The parts one after another, each preceded by its length in UTF-8 bytes and a colon: `['a', '']` gives `1:a0:`.
 * Different lists never give the same text, whatever the parts hold, and the empty list gives the empty text.
 * Refuses a part that is not well-formed text with `TUPLE_INVALID`: as UTF-8, all lone surrogates are the same.
 * The lengths follow the idea of netstrings (D. J. Bernstein, 1997), without their closing comma.
 */
export function encodeTuple(parts: readonly string[]): string {
  if (!Array.isArray(parts)) throw new RepriseError('TUPLE_INVALID', 'A tuple is a list of texts.')
  let encoded = ''
  // By index, since iteration of a list with holes by `map` or `forEach` would leave the holes out.
  for (let index = 0; index < parts.length; index += 1) {
    const part: unknown = parts[index]
    const bytes = typeof part === 'string' ? utf8Length(part) : undefined
    if (bytes === undefined) {
      const message = `Part ${index} of the tuple is not well-formed text.`
      throw new RepriseError('TUPLE_INVALID', message, { details: { index } })
    }
    encoded += `${bytes}:${part}`
  }
  return encoded
}

// The length in UTF-8 bytes, or undefined where a surrogate stands alone.
function utf8Length(text: string): number | undefined {
  let bytes = text.length
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) {
      bytes += 1
      continue
    }
    bytes += 2
    if (unit < 0xd800 || unit > 0xdfff) continue
    // A pair is two units and four bytes, so its second unit adds nothing beyond the two counted here.
    index += 1
    const next = text.charCodeAt(index) // NaN past the end, which fails both comparisons
    if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return undefined
  }
  return bytes
}
