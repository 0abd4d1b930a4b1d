import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { property } from '../../test/property.js'
import { isWellFormed } from './well-formed.js'

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
