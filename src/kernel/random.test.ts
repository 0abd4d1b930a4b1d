import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { property } from '../../test/property.js'
import { type Random, seededRandom, systemRandom } from './random.js'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const seeds = fc.oneof(fc.string({ unit: 'binary' }), fc.double({ noNaN: true, noDefaultInfinity: true }))

function draw(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => random.next())
}

function bytesOf(random: Random, length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  random.fill(bytes)
  return bytes
}

// Pearson's chi-squared against equal shares.
function chiSquared(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

describe('seededRandom', () => {
  // These streams are a promise: recorded seeds of old failures must replay the same run in every later version.
  it('gives the recorded stream for a number', () => {
    expect(draw(seededRandom(42), 4)).toEqual([
      0.790155718114411, 0.8964357854717294, 0.462030157582333, 0.3838232808822748,
    ])
    expect(Buffer.from(bytesOf(seededRandom(42), 20)).toString('hex')).toBe('3ba547ca12ec6340dfd07ce56f6d856cc39b4776')
  })

  it('gives the recorded stream for a text', () => {
    expect(draw(seededRandom('reprise'), 4)).toEqual([
      0.8985198462445556, 0.39485294290091966, 0.7205921031765797, 0.3183688913360361,
    ])
    expect(Buffer.from(bytesOf(seededRandom(''), 20)).toString('hex')).toBe('dfc015682720692d7a4b2b20291caedf6a357507')
  })

  it('draws both from one stream of words, lowest byte first', () => {
    const bytes = bytesOf(seededRandom(7), 24)
    const words = new DataView(bytes.buffer)
    const mixed = seededRandom(7)
    const number = (at: number) =>
      ((words.getUint32(at, true) >>> 5) * 2 ** 26 + (words.getUint32(at + 4, true) >>> 6)) / 2 ** 53
    expect(mixed.next()).toBe(number(0))
    expect(bytesOf(mixed, 5)).toEqual(bytes.slice(8, 13)) // one word and a part of the next
    expect(mixed.next()).toBe(number(16))
    mixed.fill(new Uint8Array(0)) // takes no word
    expect(mixed.next()).not.toBe(number(16))
  })

  it('tells numbers from texts, and zero not from minus zero', () => {
    expect(draw(seededRandom(1), 3)).not.toEqual(draw(seededRandom('1'), 3))
    expect(draw(seededRandom(0), 3)).toEqual(draw(seededRandom(-0), 3))
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, undefined, null, {}, 5n, true])(
    'refuses the seed %s',
    (seed) => {
      expect(() => seededRandom(seed as number)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    },
  )

  it('spreads numbers and bytes evenly', () => {
    for (const seed of [0, 1, 'a', 'b']) {
      const random = seededRandom(seed)
      const shares = new Array<number>(100).fill(0)
      for (const value of draw(random, 100_000))
        shares[Math.floor(value * 100)] = (shares[Math.floor(value * 100)] as number) + 1
      expect(chiSquared(shares)).toBeLessThan(165) // 99 degrees of freedom, p = 3e-5
      const byteShares = new Array<number>(256).fill(0)
      for (const byte of bytesOf(random, 200_000)) byteShares[byte] = (byteShares[byte] as number) + 1
      expect(chiSquared(byteShares)).toBeLessThan(355) // 255 degrees of freedom, p = 3e-5
    }
  })

  it('uses the low bits too: 53 of them', () => {
    const random = seededRandom(3)
    const lowBits = draw(random, 4000).map((value) => (value * 2 ** 53) % 2)
    expect(
      chiSquared([lowBits.filter((bit) => bit === 0).length, lowBits.filter((bit) => bit === 1).length]),
    ).toBeLessThan(17)
  })

  it('gives seeds that follow one another streams that do not', () => {
    const firsts = Array.from({ length: 10_000 }, (_, seed) => seededRandom(seed).next())
    expect(new Set(firsts).size).toBe(10_000)
    const shares = new Array<number>(50).fill(0)
    for (const value of firsts) shares[Math.floor(value * 50)] = (shares[Math.floor(value * 50)] as number) + 1
    expect(chiSquared(shares)).toBeLessThan(97) // 49 degrees of freedom, p = 5e-5
  })

  property('repeats itself, stays in [0, 1), and differs for different seeds', [seeds, seeds], (seed, other) => {
    const values = draw(seededRandom(seed), 3)
    for (const value of values) expect(value >= 0 && value < 1).toBe(true)
    expect(draw(seededRandom(seed), 3)).toEqual(values)
    if (seed !== other) expect(draw(seededRandom(other), 3)).not.toEqual(values)
  })
})

describe('systemRandom', () => {
  it('draws numbers from Math.random', () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.25)
    expect(systemRandom.next()).toBe(0.25)
  })

  it.each([0, 1, 16, 65_536, 65_537, 200_000])('fills %d bytes, in portions that Web Crypto takes', (length) => {
    const fill = vi.spyOn(globalThis.crypto, 'getRandomValues')
    const bytes = bytesOf(systemRandom, length)
    expect(fill.mock.calls.map(([portion]) => (portion as Uint8Array).length).reduce((a, b) => a + b, 0)).toBe(length)
    expect(fill).toHaveBeenCalledTimes(Math.ceil(length / 65_536))
    // The last 16 bytes of a filled array are all zero once in 2^128 runs.
    if (length >= 16) expect(bytes.slice(-16)).not.toEqual(new Uint8Array(16))
  })

  it('fills a part of a buffer and nothing beside it', () => {
    const whole = new Uint8Array(64)
    systemRandom.fill(whole.subarray(16, 48))
    expect(whole.slice(0, 16)).toEqual(new Uint8Array(16))
    expect(whole.slice(48)).toEqual(new Uint8Array(16))
    expect(whole.slice(16, 48)).not.toEqual(new Uint8Array(32))
  })

  it('refuses to make bytes up where there is no Web Crypto', () => {
    vi.stubGlobal('crypto', undefined)
    expect(() => systemRandom.fill(new Uint8Array(4))).toThrow(expect.objectContaining({ code: 'RUNTIME_UNSUPPORTED' }))
  })
})
