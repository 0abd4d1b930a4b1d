import { describe, expect, expectTypeOf, it } from 'vitest'
import { type Key, mintKey, scope } from '../../identity/index.js'
import { type MemoryTransaction, memory } from '../../stores/memory/index.js'
import { operations } from '../domain.js'
import { fail, type Operation, type ValueCodec } from '../index.js'
import type { FailureCodeOf, ResultOf } from './options.js'

interface Order {
  readonly key: Key
}

const identity = { scope: () => scope('shop'), key: (order: Order) => order.key, window: '24h' } as const
const sound = { ...identity, run: () => 'done' }
const db = () => memory({ name: 'shop' })

describe('the five answers', () => {
  it('are data, and listed by domain and by process', () => {
    const one = memory({ name: 'listed', attempts: 3 })
    const pay = one.operation('pay', { ...sound, retryHorizon: '1h', mintedBy: 'the shop', content: 'none' })
    one.operation('ship', { ...sound, attempts: 2, reversibility: 'irreversible' })
    expect(pay.answers).toEqual({
      name: 'pay',
      mode: 'atomic',
      identity: {
        mintedBy: 'the shop',
        windowMs: 86_400_000,
        retryHorizonMs: 3_600_000,
        horizonDeclared: true,
        content: 'ignored',
      },
      rung: 'atomic',
      placement: { layer: 'transaction', attempts: 3, foreignLayers: [], declared: 3 },
      reversibility: 'guarded',
      domain: { name: 'listed', engine: 'memory', holds: 'marker and effect' },
      leaseMs: undefined,
      recovery: undefined,
    })
    expect(one.operations().map(({ name, placement }) => [name, placement.attempts])).toEqual([
      ['pay', 3],
      ['ship', 2],
    ])
    expect(operations()).toEqual(expect.arrayContaining([...one.operations()]))
  })
})

describe('types', () => {
  it('tell results and failures of a body apart', () => {
    const body = async () => (db.length > 9 ? fail('declined', { limit: 1 }) : { receipt: 1 })
    expectTypeOf<ResultOf<ReturnType<typeof body>>>().toEqualTypeOf<{ receipt: number }>()
    expectTypeOf<FailureCodeOf<ReturnType<typeof body>>>().toEqualTypeOf<'declined'>()
  })

  it('follow from the definition: handle, input, result and codes', () => {
    const one = db()
    const pay = one.operation('pay', {
      scope: (order: Order & { readonly amount: number }) => scope(order.key),
      key: (order) => order.key,
      window: '1h',
      failures: ['declined', 'closed'],
      run: async (tx, order) => {
        expectTypeOf(tx).toEqualTypeOf<MemoryTransaction>()
        if (order.amount > 100) return fail('declined', { limit: 100 })
        return { receipt: order.amount }
      },
    })
    expectTypeOf(pay).toEqualTypeOf<
      Operation<Order & { readonly amount: number }, { receipt: number }, 'declined' | 'closed'>
    >()
    expectTypeOf(pay({ key: mintKey(), amount: 1 })).resolves.toEqualTypeOf<{ receipt: number }>()
    // @ts-expect-error the input needs an amount
    void pay({ key: mintKey() }).catch(() => undefined)
    const plain = one.operation('plain', { ...identity, run: () => 1 })
    expectTypeOf(plain).toEqualTypeOf<Operation<Order, number, never>>()
  })

  it('refuse what could not be safe', () => {
    const one = db()
    // @ts-expect-error a scope is mandatory
    expect(() => one.operation('a', { key: (order: Order) => order.key, window: '1h', run: () => 1 })).toThrow()
    // @ts-expect-error the failure is not registered
    one.operation('b', { ...identity, run: async () => fail('other') })
    // @ts-expect-error neither is this one
    one.operation('c', { ...identity, failures: ['declined'], run: async () => fail('other') })
    // @ts-expect-error a codec of other values
    one.operation('d', { ...identity, codec: numbers, run: async () => 'text' })
    // @ts-expect-error there is no such option
    expect(() => one.operation('e', { ...identity, ttl: '1h', run: () => 1 })).toThrow()
  })
})

const numbers: ValueCodec<number> = { name: 'n', encode: String, decode: Number }
