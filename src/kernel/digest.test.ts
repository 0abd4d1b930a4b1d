import * as crypto from 'node:crypto'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { falseBytes, goneBytes, oddBytes } from '../../test/odd-bytes.js'
import { property } from '../../test/property.js'
import { type Digest, parseDigest, sameDigest, sha256 } from './digest.js'

// FIPS 180-4 examples, as hex.
const emptyHex = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const abcHex = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

const invalid = expect.objectContaining({ code: 'DIGEST_INVALID' })
const digests = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes): Digest => `sha256:${Buffer.from(bytes).toString('base64url')}`)

afterEach(() => {
  vi.restoreAllMocks()
})

async function freshCopy(module: unknown): Promise<typeof import('./digest.js')> {
  vi.resetModules()
  vi.spyOn(process, 'getBuiltinModule').mockImplementation((() => module) as never)
  return await import('./digest.js')
}

describe('sha256', () => {
  it.each([
    ['', emptyHex],
    ['abc', abcHex],
  ])('knows the published digest of %j', (text, hex) => {
    expect(sha256(text)).toBe(`sha256:${Buffer.from(hex, 'hex').toString('base64url')}`)
    expect(sha256(new TextEncoder().encode(text))).toBe(sha256(text))
  })

  it('reads a view of a larger buffer by its own bounds', () => {
    const whole = new TextEncoder().encode('xxabcxx')
    expect(sha256(whole.subarray(2, 5))).toBe(sha256('abc'))
  })

  it.each(oddBytes('abc'))('digests %s', (_name, bytes) => {
    expect(sha256(bytes)).toBe(sha256('abc'))
  })

  it.each(goneBytes())('refuses %s, instead of the digest of nothing', (_name, bytes) => {
    expect(() => sha256(bytes)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it.each(falseBytes())('refuses %s', (_name, bytes) => {
    expect(() => sha256(bytes)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('refuses text that has no UTF-8 form, since all of it would look the same', () => {
    for (const text of ['\ud800', 'a\udfffb']) {
      expect(() => sha256(text)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
  })

  it.each([undefined, null, 5, {}, [1, 2], new ArrayBuffer(4)])('refuses %s', (data) => {
    expect(() => sha256(data as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('refuses to work where there is no crypto of Node', async () => {
    const copy = await freshCopy(undefined)
    expect(() => copy.sha256('abc')).toThrow(expect.objectContaining({ code: 'RUNTIME_UNSUPPORTED' }))
    // Comparing needs none.
    expect(copy.sameDigest(sha256('a'), sha256('a'))).toBe(true)
  })

  it('gives the same digest by the older way, where the one-shot is missing', async () => {
    const create = vi.fn(createHash)
    const copy = await freshCopy({ createHash: create })
    expect(copy.sha256('abc')).toBe(sha256('abc'))
    expect(copy.sha256(new Uint8Array([0, 255]))).toBe(sha256(new Uint8Array([0, 255])))
    expect(create).toHaveBeenCalledTimes(2)
  })

  it('takes the one-shot where it is there', async () => {
    const copy = await freshCopy({ ...crypto, createHash: () => expect.unreachable() })
    expect(copy.sha256('abc')).toBe(sha256('abc'))
  })

  property('is SHA-256, and always parses', [fc.uint8Array({ maxLength: 300 })], (bytes) => {
    const expected = createHash('sha256').update(bytes).digest('base64url')
    expect(parseDigest(sha256(bytes))).toEqual({ algorithm: 'sha256', value: expected })
  })
})

describe('parseDigest', () => {
  const good = sha256('abc')
  it.each([
    '',
    'sha256',
    'sha256:',
    good.slice(7),
    good.slice(0, -1),
    `${good}=`,
    `${good}A`,
    ` ${good}`,
    `${good}\n`,
    good.replace('sha256', 'SHA256'),
    good.replace('sha256', 'sha512'),
    good.replace('sha256', 'md5'),
    good.replace(':', '='),
    `sha256:${abcHex}`,
    `sha256:${'+'.repeat(42)}A`,
    `sha256:${'A'.repeat(42)}B`, // spare bits set: a second spelling of the same bytes
    undefined as unknown as string,
    [good] as unknown as string,
  ])('refuses %j', (text) => {
    expect(() => parseDigest(text)).toThrow(invalid)
  })

  property(
    'accepts exactly one spelling of the bytes',
    [digests, fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')],
    (digest, last) => {
      expect(parseDigest(digest).value).toBe(digest.slice(7))
      const other = digest.slice(0, -1) + last
      const bytes = Buffer.from(other.slice(7), 'base64url')
      const canonical = bytes.toString('base64url') === other.slice(7)
      if (canonical) expect(parseDigest(other).value).toBe(other.slice(7))
      else expect(() => parseDigest(other)).toThrow(invalid)
    },
  )
})

describe('sameDigest', () => {
  property('is equality of digests', [digests, digests, fc.nat(31)], (a, b, place) => {
    expect(sameDigest(a, a)).toBe(true)
    expect(sameDigest(a, `${a}`)).toBe(true)
    expect(sameDigest(a, b)).toBe(a === b)
    const bytes = Buffer.from(a.slice(7), 'base64url')
    bytes[place] = (bytes[place] as number) ^ 1
    expect(sameDigest(a, `sha256:${bytes.toString('base64url')}`)).toBe(false)
  })

  it('refuses what is not a digest, on either side', () => {
    const good = sha256('abc')
    expect(() => sameDigest(good, 'sha256:short')).toThrow(invalid)
    expect(() => sameDigest('sha256:short', good)).toThrow(invalid)
    expect(() => sameDigest(undefined as never, undefined as never)).toThrow(invalid)
    expect(() => sameDigest('' as never, '' as never)).toThrow(invalid)
  })
})
