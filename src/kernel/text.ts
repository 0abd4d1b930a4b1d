// Text and bytes as the rest of the kernel needs them: text that has a UTF-8 form, with no half of a surrogate pair
// standing alone; several texts as one; and bytes that are there.

import { RepriseError } from './errors.js'

/** Whether every surrogate in the text is part of a pair; other text has no UTF-8 form of its own. */
export function isWellFormed(text: string): boolean {
  // ES2024 and far faster; runtimes older than it fall back to a search.
  const native = (text as { readonly isWellFormed?: () => boolean }).isWellFormed
  return typeof native === 'function' ? native.call(text) : !/\p{Surrogate}/u.test(text)
}

/**
 * The beginning of a text, as every store can keep it. NUL and halves of surrogate pairs, which were there or which the
 * cut has made, are replaced by U+FFFD.
 */
export function keepableText(text: string, most: number): string {
  const unkeepable = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
  return text.slice(0, most).replace(unkeepable, '\ufffd')
}

/** The length of a text in bytes of UTF-8, or undefined where it has none: half of a surrogate pair stands alone. */
export function utf8Length(text: string): number | undefined {
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

// What an array of bytes says of itself can be overridden. What the engine keeps of it is read through the getters that
// all typed arrays share (ECMA-262 section 23.2.3), which look past names, classes and realms.
const typedArrays = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array
const nameOf = getterOf(Symbol.toStringTag)
const lengthOf = getterOf('length')
const elementAt = typedArrays.at

function getterOf(name: string | symbol): () => unknown {
  return Object.getOwnPropertyDescriptor(typedArrays, name)?.get as () => unknown
}

/** Whether this is a `Uint8Array`: a `Buffer` and one of another realm too, whatever it calls itself. */
export function isBytes(value: unknown): value is Uint8Array {
  return Reflect.apply(nameOf, value, []) === 'Uint8Array'
}

/**
 * How many bytes a `Uint8Array` has, whatever a class of the caller's says; undefined for anything else. Refuses with
 * `ARGUMENT_INVALID` bytes that are gone: their buffer was transferred, or has shrunk from under them. Such arrays
 * claim to be empty, and would pass for it.
 */
export function byteCount(value: unknown): number | undefined {
  if (Reflect.apply(nameOf, value, []) !== 'Uint8Array') return undefined
  const count = Reflect.apply(lengthOf, value, []) as number
  if (count === 0 && isGone(value as Uint8Array)) {
    throw new RepriseError('ARGUMENT_INVALID', 'The bytes are gone: their buffer was transferred or has shrunk.')
  }
  return count
}

// Methods of typed arrays refuse such arrays (ECMA-262, ValidateTypedArray), while getters do not.
function isGone(bytes: Uint8Array): boolean {
  try {
    Reflect.apply(elementAt, bytes, [0])
    return false
  } catch {
    return true
  }
}

const invisible = /\p{Cc}/u

/**
 * Whether a value can name something in a store: text of 1 to so many characters, none of them a control character, and
 * none of them half of a pair, which not every store takes.
 */
export function isStoreName(name: unknown, mostCharacters: number): name is string {
  return (
    typeof name === 'string' &&
    name !== '' &&
    name.length <= mostCharacters &&
    isWellFormed(name) &&
    !invisible.test(name)
  )
}
