import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { encodeTuple } from './text.js'

// Parts that look like the encoding's own marks, so that a weak encoding would collide often.
const nastyText = fc
  .array(
    fc.constantFrom(
      '',
      '0',
      '1',
      '2',
      '10',
      ':',
      '0:',
      '1:',
      '2::',
      ',',
      '\0',
      '"',
      '\\',
      '[',
      ']',
      'a',
      'é',
      '€',
      '\u{1f600}',
      '\ufffd',
      ' ',
    ),
    { maxLength: 4 },
  )
  .map((pieces) => pieces.join(''))
const tuples = fc.array(fc.oneof(nastyText, fc.string({ unit: 'binary', maxLength: 6 })), { maxLength: 5 })

// Reads the encoding back from its UTF-8 bytes, as another language would.
function decode(encoded: string): string[] {
  const bytes = Buffer.from(encoded, 'utf8')
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const colon = bytes.indexOf(0x3a, at)
    const length = bytes.subarray(at, colon).toString('latin1')
    expect(length).toMatch(/^(0|[1-9]\d*)$/)
    at = colon + 1 + Number(length)
    parts.push(bytes.subarray(colon + 1, at).toString('utf8'))
  }
  return parts
}

describe('encodeTuple', () => {
  it.each([
    [[], ''],
    [[''], '0:'],
    [['', ''], '0:0:'],
    [['a', ''], '1:a0:'],
    [['1:a'], '3:1:a'],
    [['é'], '2:é'],
    [['€'], '3:€'],
    [['\u{1f600}'], '4:\u{1f600}'],
    [['tenant', 'POST', '/orders'], '6:tenant4:POST7:/orders'],
  ])('writes %j as %j', (parts, expected) => {
    expect(encodeTuple(parts)).toBe(expected)
  })

  it('keeps apart what a separator would mix up', () => {
    const lists = [['a', 'b'], ['a,b'], ['a:b'], ['ab'], ['a', 'b', ''], ['', 'a', 'b'], ['1:a1:b'], ['a1:b'], ['a\0b']]
    expect(new Set(lists.map(encodeTuple)).size).toBe(lists.length)
  })

  it.each([['\ud800'], ['\udc00'], ['\udc00\ud800'], ['a\ud800'], ['\ud800a'], ['\ud83d\ud83d\ude00']])(
    'refuses a lone surrogate in %j',
    (part) => {
      expect(() => encodeTuple(['fine', part])).toThrow(
        expect.objectContaining({ code: 'TUPLE_INVALID', details: { index: 1 } }),
      )
    },
  )

  it.each<[unknown]>([
    [[undefined]],
    [[1]],
    [[null]],
    [[['a']]],
    [new Array(1)],
    ['ab'],
    [undefined],
    [{ length: 1, 0: 'a' }],
  ])('refuses what is not a list of texts: %j', (parts) => {
    expect(() => encodeTuple(parts as string[])).toThrow(expect.objectContaining({ code: 'TUPLE_INVALID' }))
  })

  it('does not repeat the parts in the error', () => {
    expect(() => encodeTuple(['hunter2', 'hunter2\ud800'])).toThrow(/^(?!.*hunter)/)
  })

  property(
    'gives the same text for the same list only',
    [tuples, tuples],
    (left, right) => {
      expect(encodeTuple(left) === encodeTuple(right)).toBe(JSON.stringify(left) === JSON.stringify(right))
    },
    { cases: 30_000 },
  )

  property('can be read back, part by part', [tuples], (parts) => {
    expect(decode(encodeTuple(parts))).toEqual(parts)
  })

  property('tells splits of one text apart', [nastyText, fc.nat(8), fc.nat(8)], (text, first, second) => {
    const split = (at: number) => [text.slice(0, at), text.slice(at)]
    const [a, b] = [split(Math.min(first, text.length)), split(Math.min(second, text.length))]
    const wellFormed = [...a, ...b].every((part) => Buffer.from(part).toString() === part)
    if (wellFormed) expect(encodeTuple(a) === encodeTuple(b)).toBe(a[0] === b[0])
    else expect(() => [encodeTuple(a), encodeTuple(b)]).toThrow(expect.objectContaining({ code: 'TUPLE_INVALID' }))
  })

  property(
    'refuses exactly what has no UTF-8 form',
    [fc.array(fc.integer({ min: 0xd7f0, max: 0xe010 }), { maxLength: 6 })],
    (units) => {
      const text = String.fromCharCode(...units)
      if (Buffer.from(text).toString() === text) expect(encodeTuple([text])).toBe(`${Buffer.byteLength(text)}:${text}`)
      else expect(() => encodeTuple([text])).toThrow(expect.objectContaining({ code: 'TUPLE_INVALID' }))
    },
  )
})
