import { describe, expect, it } from 'vitest'
import { literal } from './literal.js'

describe('a literal', () => {
  it.each([
    ['', "E''"],
    ['sha256:ab-_', "E'sha256:ab-_'"],
    ["it's", "E'it''s'"],
    ['a\\', "E'a\\\\'"],
    ["\\'; COMMIT; --", "E'\\\\''; COMMIT; --'"],
    ['a\nb\tc', "E'a\\u000ab\\u0009c'"],
    ['é€', "E'\\u00e9\\u20ac'"],
    ['\u{1f600}', "E'\\U0001f600'"],
    ['half \ud83d', "E'half \\ufffd'"],
    ['\x7f', "E'\\u007f'"],
  ])('of %j is %s', (text, expected) => {
    expect(literal(text)).toBe(expected)
  })

  it('is never made of NUL', () => {
    expect(() => literal('a\0b')).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})
