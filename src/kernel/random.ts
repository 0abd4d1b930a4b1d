// Chance, as an argument: the system's own, or a seeded one that repeats itself exactly.

import { RepriseError } from './errors.js'

/** A source of numbers by chance, which is all that jitter needs. */
export interface Chance {
  /** A number from 0 up to but not including 1. */
  next(): number
}

/** A source of chance. */
export interface Random extends Chance {
  /** Fills every byte of the array. */
  fill(bytes: Uint8Array): void
}

interface WebCrypto {
  readonly getRandomValues?: (bytes: Uint8Array) => unknown
}

// The Web Crypto specification refuses to fill more at once.
const maxFillBytes = 65_536

/** The runtime's numbers by chance, `Math.random`: jitter needs no secrecy. */
export const systemChance: Chance = { next }

/**
 * The runtime's chance: `Math.random` for `next` (jitter needs no secrecy), Web Crypto for `fill` (keys and tokens do).
 */
export const systemRandom: Random = {
  next,
  fill(bytes) {
    const source = (globalThis as { readonly crypto?: WebCrypto }).crypto
    if (typeof source?.getRandomValues !== 'function') {
      throw new RepriseError('RUNTIME_UNSUPPORTED', 'Random bytes need Web Crypto, which this runtime does not offer.')
    }
    // Asked for at each call (2 us on Node 20), without a stock of bytes: a stock would be copied with a process that
    // is saved and restored, and both would hand out the same keys.
    for (let start = 0; start < bytes.length; start += maxFillBytes) {
      source.getRandomValues(bytes.subarray(start, start + maxFillBytes))
    }
  },
}

function next(): number {
  return Math.random()
}

/**
 * Chance that repeats itself: the same seed gives the same stream on every platform and in every version of the
 * package. Numbers and texts are different seeds (`1` is not `'1'`). Not for secrets. `next` and `fill` draw from one
 * stream of 32-bit words: `next` takes two words (53 bits), `fill` one word for each four bytes or part of them, lowest
 * byte first.
 *
 * The generator is sfc32 (Chris Doty-Humphrey, PractRand, public domain): 128 bits of state, of which 32 are a counter,
 * so that no seed has a period below 2^32 words. The seed's text is hashed into the first three words of the state.
 */
export function seededRandom(seed: number | string): Random {
  const word = sfc32(seedText(seed))
  return {
    next() {
      const high = word() >>> 5
      const low = word() >>> 6
      return (high * 0x400_0000 + low) / 0x20_0000_0000_0000
    },
    fill(bytes) {
      let value = 0
      for (let index = 0; index < bytes.length; index += 1) {
        value = index % 4 === 0 ? word() : value >>> 8
        bytes[index] = value & 0xff
      }
    },
  }
}

function seedText(seed: number | string): string {
  if (typeof seed === 'string') return `text ${seed}`
  if (typeof seed === 'number' && Number.isFinite(seed)) return `number ${seed}`
  throw new RepriseError('ARGUMENT_INVALID', 'A seed is a finite number or text.')
}

function sfc32(text: string): () => number {
  let a = hash32(text, 0x9e3779b9)
  let b = hash32(text, 0x85ebca6b)
  let c = hash32(text, 0xc2b2ae35)
  let counter = 1
  const word = (): number => {
    const result = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + result) | 0
    return result >>> 0
  }
  // The first words still resemble the seed; the generator's author discards as many.
  for (let round = 0; round < 15; round += 1) word()
  return word
}

// FNV-1a over the UTF-16 units, low byte first, from a basis of its own, then the final mix of MurmurHash3.
function hash32(text: string, basis: number): number {
  let hash = basis | 0
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >>> 8), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
