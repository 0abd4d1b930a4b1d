import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { goneBytes, oddBytes } from '../../test/odd-bytes.js'
import { property } from '../../test/property.js'
import { fingerprint, sameContent } from './fingerprint.js'

const order = { json: '{"id":4711,"items":[{"sku":"a","qty":2}],"sentAt":"2026-11-15"}' }
const sha = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('base64url')

describe('fingerprint', () => {
  it('is the digest of the canonical text, with its algorithm', () => {
    const canonical = '{"id":4711,"items":[{"qty":2,"sku":"a"}],"sentAt":"2026-11-15"}'
    expect(fingerprint(order)).toBe(`json1-sha256:${sha(canonical)}`)
    expect(fingerprint(order, { omit: ['/sentAt'] })).toBe(
      `json1-sha256;omit=%2FsentAt:${sha('{"id":4711,"items":[{"qty":2,"sku":"a"}]}')}`,
    )
    expect(fingerprint(order, { only: ['/id'] })).toBe(`json1-sha256;only=%2Fid:${sha('[["/id",[4711]]]')}`)
    const bytes = Uint8Array.of(0, 255, 7)
    expect(fingerprint({ bytes })).toBe(`bytes-sha256:${sha(bytes)}`)
  })

  it.each([
    ['{"b":1,"a":2}', ' { "a" : 2 , "b" : 1 } '],
    ['{"a":100}', '{"a":1e2}'],
    ['{"a":100.0}', '{"a":100}'],
    ['"\\u0041\\/"', '"A/"'],
  ])('is the same for %s and %s', (left, right) => {
    expect(fingerprint({ json: left })).toBe(fingerprint({ json: right }))
    expect(fingerprint({ json: new TextEncoder().encode(left) })).toBe(fingerprint({ json: right }))
  })

  // Peers' holes: PT6 (case-insensitive order), PT7 (__proto__ dropped), PT8 (digits lost).
  it.each([
    ['PT6', '{"a":1,"A":2}', '{"a":2,"A":1}'],
    ['PT7', '{"a":1,"__proto__":{"admin":true}}', '{"a":1}'],
    ['PT8', '{"n":9007199254740993}', '{"n":9007199254740992}'],
    ['duplicate members', '{"a":1,"a":2}', '{"a":2}'],
    ['null and absent', '{"a":null}', '{}'],
    ['text and number', '{"a":"1"}', '{"a":1}'],
  ])('%s: differs where the content does', (_id, left, right) => {
    expect(fingerprint({ json: left })).not.toBe(fingerprint({ json: right }))
  })

  it('PT6: {"a":1,"A":2} and {"A":2,"a":1} are the same content', () => {
    expect(fingerprint({ json: '{"a":1,"A":2}' })).toBe(fingerprint({ json: '{"A":2,"a":1}' }))
  })

  it('of a value equals that of its JSON, and refuses what JSON would lose', () => {
    expect(fingerprint({ value: { b: 1n, a: [new Date(0)] } })).toBe(
      fingerprint({ json: '{"a":["1970-01-01T00:00:00.000Z"],"b":1}' }),
    )
    expect(() => fingerprint({ value: { a: new Map() } })).toThrow(
      expect.objectContaining({ code: 'JSON_VALUE_UNSUPPORTED' }),
    )
  })

  it.each(oddBytes('{"a":1}'))('takes bytes of every kind: %s', (_name, bytes) => {
    expect(fingerprint({ json: bytes })).toBe(fingerprint({ json: '{"a":1}' }))
    expect(fingerprint({ bytes })).toBe(`bytes-sha256:${sha('{"a":1}')}`)
  })

  it.each(goneBytes())('refuses bytes that are gone: %s', (_name, bytes) => {
    for (const content of [{ json: bytes }, { bytes }]) {
      expect(() => fingerprint(content)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
  })

  it('refuses a choice of fields of which none is there: a misspelt one would make all content equal', () => {
    expect(() => fingerprint(order, { only: ['/amout'] })).toThrow(
      expect.objectContaining({ code: 'FINGERPRINT_FIELDS_INVALID' }),
    )
    expect(fingerprint(order, { only: ['/amout', '/id'] })).toMatch(/^json1-sha256;only=/)
  })

  it('refuses bad content and bad rules', () => {
    for (const content of [null, undefined, {}, { json: 7 }, { bytes: 'text' }, { json: '1', value: 1 }, '{}']) {
      expect(() => fingerprint(content as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
    for (const options of [{ only: ['/a'], omit: ['/b'] }, { only: ['a'] }, { omit: [] }]) {
      expect(() => fingerprint(order, options)).toThrow(expect.objectContaining({ code: 'FINGERPRINT_FIELDS_INVALID' }))
    }
    expect(() => fingerprint({ bytes: Uint8Array.of(1) }, { omit: ['/a'] })).toThrow(
      expect.objectContaining({ code: 'FINGERPRINT_FIELDS_INVALID' }),
    )
    expect(() => fingerprint({ json: '{"a":' })).toThrow(expect.objectContaining({ code: 'JSON_SYNTAX' }))
    expect(() => fingerprint(order, { limits: { maxBytes: 10 } })).toThrow(
      expect.objectContaining({ code: 'JSON_TOO_LARGE' }),
    )
  })
})

describe('sameContent', () => {
  it('judges by the rule in the stored fingerprint, not by the one in use today', () => {
    const stored = fingerprint(order, { omit: ['/sentAt', '/trace,id;:'] })
    const repeat = { json: order.json.replace('2026-11-15', '2026-11-16') }
    expect(sameContent(stored, repeat)).toBe(true)
    expect(sameContent(fingerprint(order), repeat)).toBe(false)
    const chosen = fingerprint(order, { only: ['/id'] })
    expect(sameContent(chosen, repeat)).toBe(true)
    expect(sameContent(chosen, { json: '{"id":4712}' })).toBe(false)
    expect(sameContent(chosen, { json: '{"other":4711}' })).toBe(false)
  })

  it('judges by the stored algorithm: a record made of raw bytes minds whitespace, one made of JSON does not', () => {
    const bytes = new TextEncoder().encode('{"a": 1}')
    const raw = fingerprint({ bytes })
    expect(sameContent(raw, { json: '{"a": 1}' })).toBe(true)
    expect(sameContent(raw, { json: '{"a":1}' })).toBe(false)
    expect(sameContent(raw, { value: { a: 1 } })).toBe(false)
    expect(sameContent(fingerprint({ json: '{"a":1}' }), { bytes })).toBe(true)
    const stored = fingerprint({ json: '{"a":1}' })
    for (const other of [Uint8Array.of(1), Uint8Array.of(0x89, 0x50), new TextEncoder().encode('['.repeat(500))]) {
      expect(sameContent(stored, { bytes: other })).toBe(false)
    }
    const large = { value: 'x'.repeat(2_000_000) }
    expect(sameContent(raw, large, { maxBytes: 4_000_000 })).toBe(false)
    expect(() => sameContent(raw, large)).toThrow(expect.objectContaining({ code: 'JSON_TOO_LARGE' }))
  })

  it('still refuses content that cannot be read', () => {
    const stored = fingerprint(order)
    expect(() => sameContent(stored, {} as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    expect(() => sameContent(stored, { value: new Map() })).toThrow(
      expect.objectContaining({ code: 'JSON_VALUE_UNSUPPORTED' }),
    )
    expect(() => sameContent(stored, { value: ['x'.repeat(100)] }, { maxBytes: 10 })).toThrow(
      expect.objectContaining({ code: 'JSON_TOO_LARGE' }),
    )
    expect(() => sameContent(stored, { json: '{' })).toThrow(expect.objectContaining({ code: 'JSON_SYNTAX' }))
    expect(() => sameContent(stored, order, { maxBytes: 10 })).toThrow(
      expect.objectContaining({ code: 'JSON_TOO_LARGE' }),
    )
  })

  const digest = 'A'.repeat(43)
  it.each([
    '',
    'sha256',
    `json2-sha256:${digest}`,
    `md5:${digest}`,
    `json1-sha256:${digest}A`,
    `json1-sha256;omit=:${digest}`,
    `json1-sha256;omit=a:${digest}`,
    `json1-sha256;omit=%:${digest}`,
    `json1-sha256;only=%2Fa;omit=%2Fb:${digest}`,
    `bytes-sha256;omit=%2Fa:${digest}`,
    undefined,
  ])('refuses the unreadable fingerprint %#', (stored) => {
    expect(() => sameContent(stored as string, order)).toThrow(expect.objectContaining({ code: 'FINGERPRINT_INVALID' }))
  })

  property(
    'recognises every content by its own fingerprint, under any rule',
    [fc.json(), fc.array(fc.string({ unit: 'grapheme', maxLength: 5 }), { minLength: 1, maxLength: 4 }), fc.boolean()],
    (json, names, choose) => {
      const pointers = names.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
      const known = { json: `{"known":${json}}` }
      const stored = fingerprint(known, choose ? { only: ['/known', ...pointers] } : { omit: pointers })
      expect(sameContent(stored, known)).toBe(true)
      expect(sameContent(fingerprint({ json }), { json: `{"other":${json}}` })).toBe(false)
    },
  )
})
