import { expectTypeOf, it } from 'vitest'
import { type Key, mintKey, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import type { LeasedOperation, Operation } from './definition.js'
import { leased } from './leased/leased.js'
import {
  didNotHappen,
  failedFinally,
  happened,
  hold,
  type ResolveCall,
  resolve,
  stillUnknown,
} from './leased/recovery.js'
import { fail } from './outcome.js'
import { settle } from './upkeep/settle.js'

interface Order {
  readonly key: Key
  readonly amount: number
  readonly note?: string
}
interface Receipt {
  readonly id: string
  readonly lines: readonly { readonly amount: number; readonly note?: string | undefined }[]
  readonly parent?: Receipt
}

const db = memory({ name: 'types' })
const all = { scope: () => scope('north'), key: (order: Order) => order.key, window: '1h' } as const
const out = { ...all, store: db, lease: '30s' } as const
const receipt: Receipt = { id: 'r', lines: [] }
// What is wrong is not called: the compiler has said so.
const compiled = (_define: () => unknown): void => undefined

it('takes interfaces, tuples and unions as results, and gives them back', () => {
  const pay = db.operation('pay', { ...all, run: async (): Promise<Receipt> => receipt })
  expectTypeOf(pay).toEqualTypeOf<Operation<Order, Receipt, never>>()
  const pair = db.operation('pair', { ...all, run: (): readonly [string, null | 1] => ['a', 1] })
  expectTypeOf(pair).returns.resolves.toEqualTypeOf<readonly [string, null | 1]>()
  db.operation('nothing', { ...all, run: async () => undefined })
  db.operation('unknown', { ...all, run: async (): Promise<unknown> => 1 })
  const charge = leased('charge', { ...out, recover: hold(), keepInput: true, run: async () => receipt })
  expectTypeOf(charge).toEqualTypeOf<LeasedOperation<Order, Receipt, never>>()
})

it('demands a codec for what JSON does not give back', () => {
  const codec = { name: 'date-1', encode: (at: Date) => at.toISOString(), decode: (text: string) => new Date(text) }
  db.operation('date', { ...all, codec, run: async () => new Date(0) })
  compiled(() => {
    // @ts-expect-error A date comes back as text.
    db.operation('a', { ...all, run: async () => ({ at: new Date(0) }) })
    // @ts-expect-error A bigint is no JSON.
    db.operation('b', { ...all, run: async () => [1n] })
    // @ts-expect-error Nor is a map.
    leased('c', { ...out, recover: hold(), run: async () => new Map<string, string>() })
    const key = (order: { readonly key: Key; readonly at: Date }) => order.key
    leased('d', { ...out, key, recover: hold(), run: async () => 1 })
    // @ts-expect-error An input with a date cannot be kept.
    leased('e', { ...out, key, recover: hold(), keepInput: true, run: async () => 1 })
  })
})

it('knows the input of resolve by the key, and holds its answers to what run returns', () => {
  leased('asks', {
    ...out,
    recover: async ({ input, key }) => {
      expectTypeOf(input).toEqualTypeOf<Order | undefined>()
      expectTypeOf(key('capture')).toEqualTypeOf<Key>()
      return input === undefined ? stillUnknown() : happened({ id: 'r', lines: [] })
    },
    run: async () => receipt,
  })
  leased('asks.by.name', {
    ...out,
    recover: resolve(async ({ input }: ResolveCall<Order>) =>
      input === undefined ? stillUnknown() : happened(receipt),
    ),
    run: async () => receipt,
  })
  compiled(() =>
    leased('asks.wrongly', {
      ...out,
      // @ts-expect-error run returns a receipt, and so must the one that is asked.
      recover: resolve(async () => happened(7)),
      run: async () => receipt,
    }),
  )
})

it('holds a settlement to what the operation returns, and a sweep to leased operations', () => {
  const charge = leased('settled', {
    ...out,
    recover: hold(),
    failures: ['declined'],
    run: async () => (receipt.id === '' ? fail('declined') : receipt),
  })
  const pay = db.operation('settled.atomic', { ...all, run: async () => 1 })
  const why = { reason: 'seen', actor: 'ops' }
  const which = { operation: charge, scope: scope('north'), key: mintKey() }
  compiled(() => [
    settle(which, happened(receipt), why),
    settle(which, failedFinally(fail('declined')), why),
    db.settle(which, didNotHappen(), why),
    db.settle({ ...which, operation: 'settled' }, happened(7), why),
    db.sweep([charge]),
    // @ts-expect-error It returns a receipt.
    settle(which, happened(7), why),
    // @ts-expect-error It does not fail like that.
    db.settle(which, failedFinally(fail('other')), why),
    // @ts-expect-error An atomic operation leaves nothing to sweep.
    db.sweep([pay]),
    // @ts-expect-error Neither an operation nor a name.
    db.lookup({ ...which, operation: 7 }),
  ])
})

it('demands a recovery of a leased operation whose effect is not repeatable', () => {
  leased('repeatable', { ...out, reversibility: 'repeatable', run: async () => 1 })
  leased('both', { ...out, reversibility: 'repeatable', recover: hold(), run: async () => 1 })
  leased('asked', { ...out, recover: async () => stillUnknown(), run: async () => 1 })
  compiled(() => {
    // @ts-expect-error Nothing says what is done where the effect may have happened.
    leased('a', { ...out, run: async () => 1 })
    // @ts-expect-error Nor does this.
    leased('b', { ...out, reversibility: 'compensable', run: async () => 1 })
    // @ts-expect-error Undefined is no recovery.
    leased('c', { ...out, recover: undefined, run: async () => 1 })
  })
})
