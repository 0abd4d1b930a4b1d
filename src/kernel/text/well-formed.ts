// Well-formed input: text that has a UTF-8 form, with no half of a surrogate pair standing alone; and bytes that are there.
//
// What an array of bytes says of itself can be overridden; what the engine keeps of it is read through the getters that
// all typed arrays share (ECMA-262 section 23.2.3), which look past names, classes and realms.

import { RepriseError } from '../errors.js'

/** Whether every surrogate in the text is part of a pair; other text has no UTF-8 form of its own. */
export function isWellFormed(text: string): boolean {
  // ES2024 and far faster; runtimes older than it fall back to a search.
  const native = (text as { readonly isWellFormed?: () => boolean }).isWellFormed
  return typeof native === 'function' ? native.call(text) : !/\p{Surrogate}/u.test(text)
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

const typedArrays = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array
const nameOf = getter<string | undefined>(Symbol.toStringTag)
const lengthOf = getter<number>('length')
const elementAt = typedArrays.at

function getter<Value>(name: string | symbol): (view: unknown) => Value {
  const read = Object.getOwnPropertyDescriptor(typedArrays, name)?.get as () => Value
  return (view) => Reflect.apply(read, view, [])
}

/** Whether this is a `Uint8Array`: a `Buffer` and one of another realm too, whatever it calls itself. */
export function isBytes(value: unknown): value is Uint8Array {
  return nameOf(value) === 'Uint8Array'
}

/**
 * How many bytes there are, whatever a class of the caller's says. Refuses with `ARGUMENT_INVALID` bytes that are gone:
 * their buffer was transferred, or has shrunk from under them. Such arrays claim to be empty, and would pass for it.
 */
export function byteCount(bytes: Uint8Array): number {
  const count = lengthOf(bytes)
  if (count === 0 && isGone(bytes)) {
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
