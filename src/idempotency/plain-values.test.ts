import { expect, it } from 'vitest'
import { chargeOptions, code, type Order, only, type Receipt, world } from '../../test/idempotency/leased-world.js'
import { type Key, mintKey, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import { leased } from './leased/leased.js'
import { rerunKeyed } from './leased/recovery.js'

const changed: readonly (readonly [string, unknown])[] = [
  ['Date', new Date(0)],
  ['bigint', 1n],
  ['Uint8Array', Buffer.from('a')],
  ['Map', new Map()],
  ['instance of a class', new (class Money {})()],
]
const refused = (kind: string) => ({ code: 'JSON_VALUE_UNSUPPORTED', details: { kind } })

it.each(changed)('rolls an atomic body back that returns a %s, which a repeat would not get', async (kind, value) => {
  const db = memory({ name: 'shop' })
  db.table('paid', { unique: [['id']] })
  let runs = 0
  const pay = db.operation('pay', {
    scope: () => scope('north'),
    key: (key: Key) => key,
    window: '1h',
    run: async (tx): Promise<unknown> => {
      runs += 1
      await tx.insertOnce('paid', { id: String(runs) }, ['id'])
      return runs === 1 ? { value } : { note: undefined, value: 'text' }
    },
  })
  const key = mintKey()
  await expect(pay(key)).rejects.toMatchObject(refused(kind))
  expect(db.rows('paid')).toEqual([])
  const first = await pay(key)
  expect([first, await pay(key)]).toEqual([{ value: 'text' }, { value: 'text' }])
  expect(Object.keys(first as object)).toEqual(['value'])
})

it.each(changed)('refuses an input with a %s that is to be kept, before anything is written', async (kind, value) => {
  const one = world()
  const run = () => expect.unreachable()
  const charge = leased<Order, Receipt>('charge', chargeOptions({ store: one.store(), run, keepInput: true }))
  await expect(charge({ ...one.order(), value } as Order)).rejects.toMatchObject(refused(kind))
  expect(only(one)).toBeUndefined()
})

it('does not lose a success of a leased body that cannot be stored: it is done, its caller has it, and a repeat is told so', async () => {
  const one = world()
  let runs = 0
  const run = async (): Promise<never> => {
    runs += 1
    return { at: new Date(5) } as never
  }
  const recover = rerunKeyed('24h')
  const charge = leased<Order, Receipt>('charge', chargeOptions({ store: one.store(), run, recover }))
  const order = one.order()
  expect(await charge(order)).toEqual({ at: new Date(5) })
  expect(only(one)).toMatchObject({ state: 'succeeded', codec: 'unencoded', value: undefined })
  await expect(charge(order)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE', details: { because: 'unencoded' } })
  await one.clock.advance('1h')
  expect(await code(charge(order))).toBe('OUTCOME_UNREADABLE')
  expect(runs).toBe(1)
})
