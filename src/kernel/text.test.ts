import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { falseBytes, goneBytes, oddBytes } from '../../test/odd-bytes.js'
import { property } from '../../test/property.js'
import { byteCount, isBytes, isStoreName, isWellFormed, keepableText, utf8Length } from './text.js'

const prototype = String.prototype as { isWellFormed?: (() => boolean) | undefined }
const native = prototype.isWellFormed

afterEach(() => {
  Object.defineProperty(prototype, 'isWellFormed', { value: native, configurable: true, writable: true })
  vi.restoreAllMocks()
})

describe('isWellFormed', () => {
  it.each([
    ['', true],
    ['plain', true],
    ['\u{1f600}', true],
    ['\ud83d', false],
    ['\ude00', false],
    ['\ude00\ud83d', false],
    ['a\ud83db', false],
    ['\ud83d\ud83d\ude00', false],
  ])('%j: %s', (text, expected) => {
    expect(isWellFormed(text)).toBe(expected)
    prototype.isWellFormed = undefined
    expect(isWellFormed(text)).toBe(expected)
  })

  property(
    'is what a round trip through UTF-8 shows, with and without the native method',
    [fc.string({ unit: 'binary' }), fc.array(fc.integer({ min: 0xd700, max: 0xe0ff }))],
    (text, units) => {
      for (const candidate of [text, String.fromCharCode(...units)]) {
        const expected =
          new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(candidate)) === candidate
        prototype.isWellFormed = native
        expect(isWellFormed(candidate)).toBe(expected)
        prototype.isWellFormed = undefined
        expect(isWellFormed(candidate)).toBe(expected)
      }
    },
  )
})

describe('utf8Length', () => {
  it.each([
    ['', 0],
    ['a\u007f', 2],
    ['\u0080\u07ff', 4],
    ['\u0800\ud7ff\ue000\uffff', 12],
    ['\u{10000}\u{10ffff}', 8],
  ])('of %j is %i', (text, length) => {
    expect(utf8Length(text)).toBe(length)
  })

  it.each(['\ud800', 'a\udc00', '\udc00\ud800', '\ud800\ud800\udc00', '\ud83dx', '😀\udfff'])(
    'is undefined for %j',
    (text) => {
      expect(utf8Length(text)).toBeUndefined()
    },
  )

  const unit = fc.constantFrom('a', 'é', '€', '😀', '\ud800', '\udbff', '\udc00', '\udfff', '\ud7ff', '\ue000')
  property('is what encoding gives, for well-formed text', [fc.string({ unit })], (text) => {
    const isWellFormed = !/\p{Surrogate}/u.test(text)
    expect(utf8Length(text)).toBe(isWellFormed ? new TextEncoder().encode(text).length : undefined)
  })
})

describe('bytes', () => {
  it.each(oddBytes('abc'))('are %s, and counted', (_name, bytes) => {
    expect(isBytes(bytes)).toBe(true)
    expect(byteCount(bytes)).toBe(3)
  })

  it.each(oddBytes(''))('may be none: %s', (_name, bytes) => {
    expect(isBytes(bytes)).toBe(true)
    expect(byteCount(bytes)).toBe(0)
  })

  it.each(goneBytes())('are refused once they are gone: %s', (_name, bytes) => {
    expect(isBytes(bytes)).toBe(true)
    expect(() => byteCount(bytes)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it.each([
    ...falseBytes(),
    ...[undefined, null, 5, 'text', [1], {}, new ArrayBuffer(2), new Int8Array(2), new Uint16Array(2)].map(
      (value) => [String(value), value] as const,
    ),
  ])('are not %s', (_name, value) => {
    expect(isBytes(value)).toBe(false)
  })
})

describe('isStoreName', () => {
  it.each(['a', 'orders of ärzte', '\u{1f600}', 'x'.repeat(9)])('takes %j', (name) => {
    expect(isStoreName(name, 15)).toBe(true)
  })

  it.each(['', 'x'.repeat(16), 'a\0', 'a\nb', '\u007f', '\u0085', '\ud83d', 5, null, undefined, {}])(
    'refuses %j',
    (name) => {
      expect(isStoreName(name, 15)).toBe(false)
    },
  )
})

it('keeps of a text what every store can hold', () => {
  expect(keepableText('a\0b\ud800c\udc00', 9)).toBe('a\ufffdb\ufffdc\ufffd')
  expect(keepableText('ab😀', 3)).toBe('ab\ufffd')
  expect(keepableText('ab😀', 4)).toBe('ab😀')
})
