import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { type KeyFieldOptions, parseKeyField, printKeyField } from './headers.js'
import { parseKey } from './key.js'

const uuid = '8e03978e-40d5-43e8-bc93-6894a57f9324'
const keyText = fc.oneof(
  fc.stringMatching(/^[\x21-\x7e]{1,255}$/),
  fc.string({ unit: fc.constantFrom('"', '\\', ',', ';', '=', 'a'), minLength: 1, maxLength: 12 }),
)

describe('parseKeyField', () => {
  it.each<[string | string[], string, KeyFieldOptions?]>([
    [`"${uuid}"`, uuid],
    [uuid, uuid],
    [[`"${uuid}"`], uuid],
    ['  "k"  ', 'k'],
    ['  k  ', 'k'],
    ['"a,b;c"', 'a,b;c'],
    [String.raw`"say \"hi\" \\o/"`.replaceAll(' ', '_'), String.raw`say_"hi"_\o/`],
    [String.raw`a\b`, String.raw`a\b`],
    ['"k";v=1', 'k'],
    ['"k"; a; b=?1;c="x\\"y"; d=tok/en; e=:aGk=:; f=-1.5; g=*; h=@1659578233; i=%"f%c3%bc"', 'k'],
    [uuid, uuid, { minLength: 36, maxLength: 36 }],
    [`"${uuid}"`, uuid, { form: 'quoted' }],
  ])('reads %s', (field, key, options) => {
    expect(parseKeyField(field, options)).toBe(key)
  })

  it.each<[string | readonly string[] | null | undefined, string, KeyFieldOptions?]>([
    [undefined, 'KEY_MISSING'],
    [null, 'KEY_MISSING'],
    [[], 'KEY_MISSING'],
    ['', 'KEY_EMPTY'],
    ['   ', 'KEY_EMPTY'],
    ['""', 'KEY_EMPTY'],
    [['a', 'b'], 'KEY_FIELD_REPEATED'],
    [['a', 'a'], 'KEY_FIELD_REPEATED'],
    ['aaa, bbb', 'KEY_FIELD_REPEATED'],
    ['aaa,bbb', 'KEY_FIELD_REPEATED'],
    ['"aaa", "bbb"', 'KEY_FIELD_REPEATED'],
    ['"aaa","bbb"', 'KEY_FIELD_REPEATED'],
    ['"aaa";v=1, "bbb"', 'KEY_FIELD_REPEATED'],
    ['"', 'KEY_FIELD_UNTERMINATED'],
    ['"abc', 'KEY_FIELD_UNTERMINATED'],
    ['"abc\\"', 'KEY_FIELD_UNTERMINATED'],
    ['"a\\nb"', 'KEY_FIELD_ESCAPE'],
    ['"abc\\', 'KEY_FIELD_ESCAPE'],
    ['"abc"def', 'KEY_FIELD_TRAILING'],
    ['"abc" def', 'KEY_FIELD_TRAILING'],
    ['"abc" ;v=1', 'KEY_FIELD_TRAILING'],
    ['abc;v=1', 'KEY_FIELD_TRAILING'],
    ['abc"', 'KEY_FIELD_TRAILING'],
    ['"abc";', 'KEY_FIELD_PARAMETER'],
    ['"abc";V=1', 'KEY_FIELD_PARAMETER'],
    ['"abc";v=', 'KEY_FIELD_PARAMETER'],
    ['"abc";v="x', 'KEY_FIELD_PARAMETER'],
    ['"abc";v=1.2345', 'KEY_FIELD_PARAMETER'],
    ['"abc";v=1', 'KEY_FIELD_PARAMETER', { parameters: 'refuse' }],
    ['abc', 'KEY_FIELD_UNQUOTED', { form: 'quoted' }],
    ['"two words"', 'KEY_CHARACTER'],
    ['two words', 'KEY_CHARACTER'],
    ['"k\u00e4se"', 'KEY_CHARACTER'],
    ['\tabc', 'KEY_CHARACTER'],
    ['k'.repeat(256), 'KEY_TOO_LONG'],
    [`"${'k'.repeat(256)}"`, 'KEY_TOO_LONG'],
    ['"'.repeat(100_000), 'KEY_TOO_LONG'],
    ['"1"', 'KEY_TOO_SHORT', { minLength: 16 }],
    [[7 as never], 'ARGUMENT_INVALID'],
    [5 as never, 'ARGUMENT_INVALID'],
    [{} as never, 'ARGUMENT_INVALID'],
    [new Map() as never, 'ARGUMENT_INVALID'],
    ['abc', 'ARGUMENT_INVALID', { form: 'Quoted' as never }],
    ['abc', 'ARGUMENT_INVALID', { parameters: 'reject' as never }],
    ['"abc";v=1.', 'KEY_FIELD_PARAMETER'],
    ['"abc";v=%"%ff"', 'KEY_FIELD_PARAMETER'],
  ])('refuses %j with %s', (field, code, options) => {
    expect(() => parseKeyField(field, options)).toThrow(expect.objectContaining({ code }))
  })

  it('treats keys that differ in case as different, and bare and quoted as one', () => {
    expect(parseKeyField('"Key"')).not.toBe(parseKeyField('"key"'))
    expect(parseKeyField('Key')).toBe(parseKeyField('"Key"'))
  })

  property('reads back every key it prints', [keyText], (text) => {
    const key = parseKey(text)
    expect(parseKeyField(printKeyField(key))).toBe(key)
    expect(parseKeyField([` ${printKeyField(key)} `], { form: 'quoted', parameters: 'refuse' })).toBe(key)
    expect(parseKeyField(`${printKeyField(key)};a=1;b`)).toBe(key)
  })

  property('reads a bare key as the same key, or refuses it', [keyText], (text) => {
    const quotedFirst = text.startsWith('"')
    try {
      const key = parseKeyField(text)
      if (!quotedFirst) expect(key).toBe(text)
    } catch (error) {
      expect(error).toMatchObject({ name: 'RepriseError', code: expect.stringMatching(/^KEY_/) })
      expect(text).toMatch(/[",;]/)
    }
  })

  property('never says what it refused', [fc.string({ unit: 'binary', minLength: 8, maxLength: 60 })], (text) => {
    const field = `${text}, secret-${text}`
    try {
      parseKeyField(field)
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^KEY_/) })
      expect(JSON.stringify(error)).not.toContain('secret')
      expect((error as Error).message).not.toContain(text)
    }
  })
})

describe('printKeyField', () => {
  it('quotes, and refuses what is no key', () => {
    expect(printKeyField(parseKey('a"b\\c'))).toBe(String.raw`"a\"b\\c"`)
    expect(() => printKeyField('two words' as never)).toThrow(expect.objectContaining({ code: 'KEY_CHARACTER' }))
  })
})
