// Values inside a statement's text, for statements that share a message with BEGIN or COMMIT: a message of several
// statements takes no parameters.

import { RepriseError } from '../../../kernel/index.js'

/**
 * A text as a literal of PostgreSQL that means the same whatever the settings of the session are: `E'…'` does not
 * depend on standard_conforming_strings, and only ASCII is sent, so that no client_encoding can move its end. Half a
 * surrogate pair becomes U+FFFD, as it does in a parameter. Refuses NUL, which PostgreSQL cannot hold, with
 * ARGUMENT_INVALID.
 */
export function literal(text: string): string {
  if (text.includes('\0')) throw new RepriseError('ARGUMENT_INVALID', 'A text with NUL cannot be stored in PostgreSQL.')
  // Also a line break is escaped: nothing that reads statements line by line can take what follows for one.
  return plain.test(text) ? `E'${text}'` : `E'${text.replace(special, escaped)}'`
}

const plain = /^[\x20-\x26\x28-\x5b\x5d-\x7e]*$/
// By code points, so that a pair is one match.
const special = /[^\x20-\x26\x28-\x5b\x5d-\x7e]/gu

function escaped(character: string): string {
  if (character === "'") return "''"
  if (character === '\\') return '\\\\'
  const point = character.codePointAt(0) ?? 0
  if (point >= 0xd800 && point <= 0xdfff) return '\\ufffd'
  const hex = point.toString(16)
  return point > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`
}
