import { expect, it } from 'vitest'
import { type Content, type Key, mintKey, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'

class Money {
  readonly #amount: number
  constructor(amount: number) {
    this.#amount = amount
  }
  get amount() {
    return this.#amount
  }
}

interface Order {
  readonly key: Key
  readonly price: { readonly amount: number }
}

function payments(content?: (input: Order) => Content) {
  const db = memory({ name: 'shop' })
  const charged: number[] = []
  const pay = db.operation('pay', {
    scope: () => scope('north'),
    key: ({ key }: Order) => key,
    ...(content === undefined ? {} : { content }),
    window: '1h',
    run: async (_tx, { price }) => {
      charged.push(price.amount)
      return { charged: price.amount }
    },
  })
  return { pay, charged }
}

const hidden: readonly (readonly [string, string, (amount: number) => { readonly amount: number }])[] = [
  ['instance of a class', '/price', (amount) => new Money(amount)],
  ['instance of a class', '/price', (amount) => Object.create({ amount }) as Money],
  [
    'member that is not enumerable',
    '/price/amount',
    (value) => Object.defineProperty({}, 'amount', { value }) as Money,
  ],
  [
    'member that is not enumerable',
    '/price/amount',
    (amount) => Object.defineProperty({}, 'amount', { get: () => amount }) as Money,
  ],
  ['member with a symbol for its name', '/price', (amount) => ({ amount: 1, [Symbol('amount')]: amount })],
]

it.each(hidden)('refuses an input with an %s at %s, which would be the same for 5 and 500', async (kind, path, of) => {
  const { pay, charged } = payments()
  const key = mintKey()
  const refused = { code: 'JSON_VALUE_UNSUPPORTED', details: { kind, path } }
  await expect(pay({ key, price: of(5) })).rejects.toMatchObject(refused)
  await expect(pay({ key, price: of(500) })).rejects.toMatchObject(refused)
  expect(charged).toEqual([])
})

it.each(hidden)('refuses content that a callback gives with an %s', async (kind, _path, of) => {
  const { pay, charged } = payments(({ price }) => ({ value: { price: of(price.amount) } }))
  await expect(pay({ key: mintKey(), price: { amount: 5 } })).rejects.toMatchObject({
    code: 'JSON_VALUE_UNSUPPORTED',
    details: { kind },
  })
  expect(charged).toEqual([])
})

it('takes such an input with a callback that says what counts, and tells 5 from 500', async () => {
  const { pay, charged } = payments(({ price }) => ({ value: price.amount }))
  const key = mintKey()
  expect(await pay({ key, price: new Money(5) })).toEqual({ charged: 5 })
  expect(await pay({ key, price: new Money(5) })).toEqual({ charged: 5 })
  await expect(pay({ key, price: new Money(500) })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
  // What is not enumerable reaches callback and body, too.
  const other = mintKey()
  const bare = (value: number) => Object.defineProperty({}, 'amount', { value }) as Money
  expect(await pay({ key: other, price: bare(5) })).toEqual({ charged: 5 })
  await expect(pay({ key: other, price: bare(500) })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
  expect(charged).toEqual([5, 5])
})

it.each<[string, (amount: number) => { readonly amount: number }]>([
  ['a plain object', (amount) => ({ amount })],
  [
    'a getter of its own',
    (amount) => ({
      get amount() {
        return amount
      },
    }),
  ],
  ['a class with a toJSON', (amount) => Object.assign(new Money(amount), { toJSON: () => ({ amount }) })],
  ['a Date', (amount) => Object.assign(new Date(amount), { amount })],
  ['a URL', (amount) => Object.assign(new URL(`https://a.example/${amount}`), { amount })],
  ['bytes', (amount) => Object.assign(Buffer.from(String(amount)), { amount })],
])('replays %s, and tells 5 from 500', async (_name, of) => {
  const { pay } = payments()
  const key = mintKey()
  expect(await pay({ key, price: of(5) })).toEqual({ charged: 5 })
  expect(await pay({ key, price: of(5) })).toEqual({ charged: 5 })
  await expect(pay({ key, price: of(500) })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
})
