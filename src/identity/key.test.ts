import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { uuidv7Source } from '../kernel/index.js'
import { manualClock } from '../testing/index.js'
import { keyAgeMs, maxKeyLength, mintKey, parseKey } from './key.js'

const visible = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((unit) => String.fromCharCode(unit)) })

describe('parseKey', () => {
  it.each([
    ['', 'KEY_EMPTY'],
    ['k'.repeat(256), 'KEY_TOO_LONG'],
    ['a b', 'KEY_CHARACTER'],
    ['a\tb', 'KEY_CHARACTER'],
    ['a\u0000b', 'KEY_CHARACTER'],
    ['käse', 'KEY_CHARACTER'],
    ['\u007f', 'KEY_CHARACTER'],
  ])('refuses a bad key %# with %s', (text, code) => {
    expect(() => parseKey(text)).toThrow(expect.objectContaining({ code }))
  })

  it('says where the bad character stands and never which key it was', () => {
    expect(() => parseKey('secret-key-\u00e9')).toThrow(
      expect.objectContaining({ details: { position: 11 }, message: expect.not.stringContaining('secret') }),
    )
  })

  it('refuses what is not a string, and limits no key could meet', () => {
    expect(() => parseKey(undefined as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    expect(() => parseKey({} as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    for (const limits of [{ minLength: 0 }, { maxLength: 256 }, { minLength: 9, maxLength: 8 }, { minLength: 1.5 }]) {
      expect(() => parseKey('key', limits)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
  })

  it('holds to a minimum and a maximum of its own', () => {
    expect(parseKey('k'.repeat(16), { minLength: 16 })).toHaveLength(16)
    expect(() => parseKey('1', { minLength: 16 })).toThrow(expect.objectContaining({ code: 'KEY_TOO_SHORT' }))
    expect(() => parseKey('k'.repeat(65), { maxLength: 64 })).toThrow(expect.objectContaining({ code: 'KEY_TOO_LONG' }))
    expect(parseKey('k'.repeat(maxKeyLength))).toHaveLength(maxKeyLength)
  })

  property('accepts exactly 1 to 255 characters of visible ASCII', [fc.oneof(visible, fc.string())], (text) => {
    const sound = /^[\x21-\x7e]{1,255}$/.test(text)
    if (sound) expect(parseKey(text)).toBe(text)
    else expect(() => parseKey(text)).toThrow(expect.objectContaining({ code: expect.stringMatching(/^KEY_/) }))
  })
})

describe('mintKey and keyAgeMs', () => {
  it('mints keys that are valid, distinct, and carry their time', () => {
    const keys = Array.from({ length: 1_000 }, mintKey)
    expect(new Set(keys).size).toBe(1_000)
    for (const key of keys) expect(parseKey(key)).toBe(key)
  })

  it('tells the age of a UUIDv7 key, negative when the minting clock is ahead', () => {
    const clock = manualClock({ wallMs: 1_763_000_000_000 })
    const key = parseKey(uuidv7Source({ clock })())
    expect(keyAgeMs(key, 1_763_000_090_000)).toBe(90_000)
    expect(keyAgeMs(key, 1_762_999_999_000)).toBe(-1_000)
  })

  it('refuses a present that is no number', () => {
    expect(() => keyAgeMs(mintKey(), Number.NaN)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('knows no age of other keys', () => {
    for (const text of ['order-4711', '8e03978e-40d5-43e8-bc93-6894a57f9324']) {
      expect(keyAgeMs(parseKey(text), 0)).toBeUndefined()
    }
  })
})
