import { expect, it } from 'vitest'
import { chargeOptions, code, type Order, type Receipt, world } from '../../test/idempotency/leased-world.js'
import { type Key, mintKey, scope } from '../identity/index.js'
import { eventLoopTurn } from '../kernel/index.js'
import { callback } from '../stores/callback/index.js'
import { memory } from '../stores/memory/index.js'
import { manualClock } from '../testing/index.js'
import { operationId } from './call-identity.js'
import { leased } from './leased/leased.js'
import { happened } from './leased/recovery.js'
import { fail, OperationFailedError } from './outcome.js'
import { lookup } from './upkeep/lookup.js'
import { purge } from './upkeep/purge.js'
import { settle } from './upkeep/settle.js'
import { sweep } from './upkeep/sweep.js'

// Decodes when it is told to, or never.
const slow = () => {
  let decodes = 0
  return {
    codec: {
      name: 'slow-1',
      encode: (value: Receipt) => String(value.charge),
      decode: () => {
        decodes += 1
        return new Promise<Receipt>(() => undefined)
      },
    },
    decodes: () => decodes,
  }
}
const all = { scope: () => scope('north'), key: (key: Key) => key, window: '1h' } as const

it.each(['atomic', 'leased'])('does not wait for a codec beyond deadline or signal: %s', async (mode) => {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const { codec, decodes } = slow()
  let runs = 0
  const run = async (): Promise<Receipt> => ({ charge: ++runs })
  const pay =
    mode === 'atomic'
      ? db.operation('pay', { ...all, codec, run })
      : leased('pay', { ...all, store: db, lease: '30s', recover: async () => happened({ charge: 0 }), codec, run })
  const key = mintKey()
  const first = code(pay(key, { deadline: '5s' }))
  await clock.advance('5s')
  expect(await first).toBe('DEADLINE_EXCEEDED')
  const stop = new AbortController()
  const second = pay(key, { signal: stop.signal }).catch((error: unknown) => error)
  while (decodes() < 2) await eventLoopTurn()
  stop.abort('enough')
  expect(await second).toBe('enough')
  const looked = code(lookup({ operation: pay, scope: scope('north'), key }, { deadline: '2s' }))
  await clock.advance('2s')
  expect([await looked, runs, clock.pendingTimers]).toEqual(['DEADLINE_EXCEEDED', 1, 0])
})

it('refuses options that nobody reads, and arguments that are none, with codes', async () => {
  const one = world()
  const store = one.store()
  const run = async () => ({ charge: 1 })
  const charge = leased<Order, Receipt>('charge', chargeOptions({ store, run }))
  const db = memory({ name: 'shop' })
  const pay = db.operation('pay', { ...all, run: async () => 1 })
  const which = { operation: charge, scope: scope('tenant'), key: mintKey() }
  const why = { reason: 'seen', actor: 'ops' }
  const none = undefined as never
  const calls: readonly (() => Promise<unknown>)[] = [
    () => pay(mintKey(), { timeout: '1s' } as never),
    () => pay(mintKey(), null as never),
    () => pay(mintKey(), { signal: 'stop' } as never),
    () => charge(one.order(), { timeout: '1s' } as never),
    () => sweep({ store, operations: [charge], evry: '1s' } as never),
    () => sweep(none),
    () => sweep({ store, operations: none }),
    () => sweep({ operations: [charge] } as never),
    () => db.sweep(none),
    () => purge({ store, unknownAftr: '1s' } as never),
    () => purge(none),
    () => purge({} as never),
    () => settle(which, happened({ charge: 1 }), none),
    () => settle(which, happened({ charge: 1 }), { ...why, wndow: '1h' } as never),
    () => settle(which, none, why),
    () => settle(none, happened(1) as never, why),
    () => lookup(none),
    () => lookup({ id: 'sha256:a' } as never),
    () => lookup(which, { dedline: '1s' } as never),
    async () => callback(none),
    async () => memory(none),
  ]
  const said = await Promise.all(calls.map((call) => code(call())))
  expect(said).toEqual(calls.map(() => 'ARGUMENT_INVALID'))
})

it('takes a failure that is thrown as it is for the same failure inside its error', async () => {
  const db = memory({ name: 'shop' })
  db.table('paid', { unique: [['id']] })
  const pay = db.operation('pay', {
    ...all,
    failures: ['declined'],
    run: async (tx): Promise<number> => {
      await tx.insertOnce('paid', { id: 'a' }, ['id'])
      throw fail('declined', 7)
    },
  })
  const key = mintKey()
  await expect(pay(key)).rejects.toBeInstanceOf(OperationFailedError)
  await expect(pay(key)).rejects.toMatchObject({ failure: { code: 'declined', data: 7 }, replayed: true })
  expect(db.rows('paid')).toEqual([])
  const one = world()
  const charge = leased<Order, Receipt, 'declined'>(
    'charge',
    chargeOptions<'declined'>({
      store: one.store(),
      failures: ['declined'],
      run: async () => {
        throw fail('declined')
      },
    }),
  )
  expect(await charge.outcome(one.order())).toMatchObject({ outcome: 'failed', failure: { code: 'declined' } })
})

it('leaves to a resolve token what is stored, raw, and says committed also where a codec wrote it', async () => {
  const db = memory({ name: 'shop' })
  const codec = { name: 'own-1', encode: (value: Receipt) => `<${value.charge}>`, decode: () => ({ charge: 7 }) }
  const run = async (): Promise<Receipt> => ({ charge: 7 })
  const [plain, coded] = [db.operation('plain', { ...all, run }), db.operation('coded', { ...all, codec, run })]
  const key = mintKey()
  expect([await plain(key), await coded(key)]).toEqual([{ charge: 7 }, { charge: 7 }])
  // As the error of a lost commit has it.
  const token = (name: string) => {
    const named = JSON.stringify({ domain: 'shop', id: operationId(name, scope('north'), key) })
    return `rt1.${Buffer.from(named).toString('base64url')}`
  }
  expect(await db.resolve(token('plain'))).toEqual({ outcome: 'committed', value: { charge: 7 } })
  expect(await db.resolve(token('coded'))).toEqual({ outcome: 'committed', value: undefined })
  expect(await db.lookup({ operation: coded, scope: scope('north'), key })).toMatchObject({
    outcome: { outcome: 'succeeded', value: { charge: 7 } },
  })
})

it('runs a body that fails without being stored once for every duplicate', async () => {
  const db = memory({ name: 'shop' })
  let runs = 0
  const run = async (): Promise<number> => {
    runs += 1
    throw new Error('down')
  }
  const pay = db.operation('pay', { ...all, run })
  const key = mintKey()
  expect(await Promise.all([1, 2, 3].map(() => code(pay(key))))).toEqual(Array(3).fill('Error: down'))
  expect(runs).toBe(3)
})
