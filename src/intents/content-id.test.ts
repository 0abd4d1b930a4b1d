import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { intentId } from './content-id.js'

/** What `JSON.stringify` writes as an empty object, whatever it holds. */
class Order {
  readonly #amountMinor: number
  constructor(amountMinor: number) {
    this.#amountMinor = amountMinor
  }
  get amountMinor(): number {
    return this.#amountMinor
  }
}

function circle(): object {
  const one: { other?: object } = {}
  one.other = { one }
  return one
}

function form(name: string, value: string | Blob): FormData {
  const data = new FormData()
  data.append(name, value as string)
  return data
}

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

  it.each<[string, (amount: string) => unknown]>([
    ['a form', (amount) => form('amount', amount)],
    ['search parameters', (amount) => new URLSearchParams({ amount })],
    ['a Map', (amount) => new Map([['amount', amount]])],
    ['a Set', (amount) => new Set([amount])],
    ['a Map in a member', (amount) => ({ order: [new Map([['amount', { amount }]])] })],
    ['a Date', (amount) => new Date(Number(amount))],
    ['an object with a JSON form', (amount) => ({ inner: new URL(`https://shop.example/${amount}`) })],
    ['an object without a prototype', (amount) => Object.assign(Object.create(null), { amount })],
  ])('counts %s by what it holds', (_name, contentOf) => {
    expect(intentId('pay', contentOf('10'))).toBe(intentId('pay', contentOf('10')))
    expect(intentId('pay', contentOf('10'))).not.toBe(intentId('pay', contentOf('25')))
  })

  it('a form is not the list of its entries, nor other parameters of the same text', () => {
    const contents = [form('a', '1'), new URLSearchParams({ a: '1' }), [['a', '1']], { a: '1' }]
    expect(new Set(contents.map((content) => intentId('pay', content))).size).toBe(4)
  })

  it('holds nothing of the content', () => {
    expect(intentId('card 4242', { number: '4242424242424242' })).toMatch(/^reprise\.intent\.[0-9a-f]{32}$/)
  })

  it.each([
    ['', 1],
    [7, 1],
    ['pay', undefined],
    ['pay', () => 1],
    ['pay', { pay: () => 1 }],
    ['pay', { amountMinor: 1n }],
    ['pay', circle()],
    ['pay', new Order(7)],
    ['pay', new Blob(['x'])],
    ['pay', new ArrayBuffer(2)],
    ['pay', new Uint8Array(2)],
    ['pay', form('photo', new Blob(['x']))],
    ['pay', new WeakMap()],
    ['pay', Promise.resolve(1)],
  ])('refuses %s with %o', (name, content) => {
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
