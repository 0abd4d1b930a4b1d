// The name under which a storage keeps the key of an intent: a hash, so that no content lies in a browser's storage.

import { RepriseError } from '../kernel/index.js'

/**
 * The id of an intent: the same for the same name and content, whatever the order of members. The content is plain data
 * as `JSON.stringify` writes it; a form, search parameters, a Map or a Set count by their entries, in their order.
 * Refuses what has no such form with `ARGUMENT_INVALID`: counted as `{}` it would share a key with every other one.
 */
export function intentId(name: string, content: unknown): string {
  let text: unknown
  let cause: unknown
  try {
    text = typeof name === 'string' && name && JSON.stringify(content, inOrder)
  } catch (error) {
    cause = error
  }
  if (!text) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'An intent has a name, and content of plain data or form entries: no files, functions, class instances or circles.',
      { cause },
    )
  }
  return `reprise.intent.${hash(JSON.stringify([name, text]))}`
}

// Members of objects in the order of their names. A plain object has no prototype, or one that itself has none, also
// where it comes from another frame.
function inOrder(_name: string, value: unknown): unknown {
  if (Object(value) !== value || Array.isArray(value)) return value
  const kind = {}.toString.call(value)
  if (/ (FormData|URLSearchParams|Map|Set)]/.test(kind)) return [kind, ...(value as Iterable<unknown>)]
  const prototype = Object.getPrototypeOf(value)
  if (prototype && Object.getPrototypeOf(prototype)) throw new TypeError(kind)
  return Object.fromEntries(Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1)))
}

// 128 bits, four words that mix with each other at every character, after cyrb128 by bryc (public domain). Not for
// secrets: browsers offer SHA-256 only over HTTPS. Where two contents should ever meet in one id they share a key, and
// the receiver refuses the second as a mismatch.
function hash(text: string): string {
  const words = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476]
  const factors = [597399067, 2869860233, 951274213, 2716044179]
  const mix = (unit: number): void => {
    for (let place = 0; place < 4; place += 1) {
      const mixed = Math.imul((words[place] as number) ^ unit, factors[place] as number)
      words[place] = (words[(place + 1) % 4] as number) ^ mixed ^ (mixed >>> 15)
    }
  }
  for (let index = 0; index < text.length; index += 1) mix(text.charCodeAt(index))
  // So that the last characters reach every word.
  for (let round = 0; round < 8; round += 1) mix(text.length)
  return words.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}
