import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { intentId } from './content-id.js'

describe('intentId', () => {
  it('is the same whatever the order of members, and another for another name or content', () => {
    const id = intentId('pay', { a: 1, b: { c: [1, 2], d: null } })
    expect(id).toBe(intentId('pay', { b: { d: null, c: [1, 2] }, a: 1 }))
    for (const other of [
      intentId('pays', { a: 1, b: { c: [1, 2], d: null } }),
      intentId('pay', { a: 1, b: { c: [2, 1], d: null } }),
      intentId('pay', { a: '1', b: { c: [1, 2], d: null } }),
      intentId('pay', JSON.stringify({ a: 1, b: { c: [1, 2], d: null } })),
    ])
      expect(other).not.toBe(id)
  })

  it('never changes between versions: a key that is kept would be lost', () => {
    expect(intentId('checkout', { amountMinor: 1200, account: 'shop' })).toBe(
      'reprise.intent.bbb72a5d7312329fdc2042c559ef90e5',
    )
  })

  it('holds nothing of the content', () => {
    expect(intentId('card 4242', { number: '4242424242424242' })).toMatch(/^reprise\.intent\.[0-9a-f]{32}$/)
  })

  it.each([
    ['', 1],
    [7, 1],
    ['pay', undefined],
    ['pay', () => 1],
  ])('refuses %j with %j', (name, content) => {
    expect(() => intentId(name as string, content)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})

property('different content has different ids', [fc.json(), fc.json()], (one, other) => {
  const same = intentId('x', one) === intentId('x', other)
  expect(same).toBe(one === other)
})

it('has no collision in a hundred thousand neighbours', () => {
  const ids = new Set(Array.from({ length: 100_000 }, (_, number) => intentId('order', { number })))
  expect(ids.size).toBe(100_000)
  // Each of the four words is spread over its 32 bits: as many are the same as chance makes them (1.2 of 100,000).
  for (let word = 0; word < 4; word += 1) {
    const words = new Set([...ids].map((id) => id.slice(15 + 8 * word, 23 + 8 * word)))
    expect(words.size).toBeGreaterThan(99_980)
  }
})
