// The name under which a storage keeps the key of an intent: a hash, so that no content lies in a browser's storage.

import { RepriseError } from '../kernel/index.js'

/**
 * The id of an intent: the same for the same name and content, whatever the order of members. The content is what
 * `JSON.stringify` writes of it. Refuses what JSON cannot write with `ARGUMENT_INVALID`.
 */
export function intentId(name: string, content: unknown): string {
  const text = JSON.stringify(content, inOrder)
  if (typeof name !== 'string' || name === '' || text === undefined) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'An intent has a name that is not empty, and content that JSON can write.',
    )
  }
  return `reprise.intent.${hash(JSON.stringify([name, text]))}`
}

// Members of objects in the order of their names.
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
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
