// Several texts as one, so that no crafted separator can make two different lists look alike.

import { RepriseError } from '../errors.js'
import { utf8Length } from './well-formed.js'

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
