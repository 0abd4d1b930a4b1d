import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { mintKey, parseKey, scope, storedKey } from './key.js'

// Parts made of what people join scopes with, so that a separator would collide quickly.
const part = fc.oneof(
  fc.string({
    unit: fc.constantFrom(':', '/', '|', ',', '"', '\\', '\u0000', '1', '2', 'a', ' '),
    minLength: 1,
    maxLength: 6,
  }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
)
const parts = fc.array(part, { minLength: 1, maxLength: 5 })

describe('scope', () => {
  it('never changes: stored keys depend on it', () => {
    expect(scope('tenant-1', 'user-7', 'POST /payments')).toBe('sha256:VIxuVqJo7TUbSIA3YMTutTpdZtQiikrPS9baWJQtLqA')
    expect(storedKey(scope('tenant-1'), parseKey('order-4711'))).toBe(
      'sha256:PaDgII8oRN3b2tmjqjkFAWjMSO9zam8rysaiyAv_ND0',
    )
  })

  it('refuses missing and empty parts, so that strangers never share a scope by accident', () => {
    for (const bad of [
      [],
      [''],
      ['tenant', ''],
      ['tenant', undefined],
      ['tenant', 7],
      ['\ud83d'],
      ['x'.repeat(4_097)],
    ]) {
      expect(() => scope(...(bad as [string]))).toThrow(expect.objectContaining({ code: 'SCOPE_INVALID' }))
    }
    expect(() => scope(...(Array(17).fill('x') as [string]))).toThrow(
      expect.objectContaining({ code: 'SCOPE_INVALID' }),
    )
  })

  it('does not show its parts', () => {
    expect(scope('alice@example.org')).not.toContain('alice')
    expect(() => scope('alice@example.org', '')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('alice') }),
    )
  })

  property('is the same only for the same tuple', [parts, parts], (left, right) => {
    const same = left.length === right.length && left.every((text, index) => text === right[index])
    expect(scope(...(left as [string])) === scope(...(right as [string]))).toBe(same)
  })

  property('cannot be collided by moving a boundary', [parts, fc.nat()], (tuple, at) => {
    const joined = tuple.join('')
    const cut = 1 + (at % joined.length)
    const moved = [joined.slice(0, cut), joined.slice(cut)].filter((text) => text !== '' && isSound(text))
    if (moved.length === 0 || moved.join('\u0000') === tuple.join('\u0000')) return
    if (moved.length === tuple.length && moved.every((text, index) => text === tuple[index])) return
    expect(scope(...(moved as [string]))).not.toBe(scope(...(tuple as [string])))
  })
})

function isSound(text: string): boolean {
  return !/\p{Surrogate}/u.test(text)
}

describe('storedKey', () => {
  it('differs for another scope or another key', () => {
    const key = mintKey()
    const names = [
      storedKey(scope('alice'), key),
      storedKey(scope('bob'), key),
      storedKey(scope('alice'), mintKey()),
      storedKey(scope('alice', key), key),
    ]
    expect(new Set(names).size).toBe(4)
    for (const name of names) expect(name).not.toContain(key)
  })

  it('refuses a scope that was not made by scope() and a key that is none', () => {
    expect(() => storedKey('tenant' as never, mintKey())).toThrow(expect.objectContaining({ code: 'SCOPE_INVALID' }))
    expect(() => storedKey('sha256:' as never, mintKey())).toThrow(expect.objectContaining({ code: 'SCOPE_INVALID' }))
    expect(() => storedKey(undefined as never, mintKey())).toThrow(expect.objectContaining({ code: 'SCOPE_INVALID' }))
    expect(() => storedKey(scope('a'), '' as never)).toThrow(expect.objectContaining({ code: 'KEY_EMPTY' }))
  })
})
