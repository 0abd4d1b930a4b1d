// What every store must do for a leased operation: the claim is a record with a lease, renewed while work goes on,
// taken over by the store's clock, and recovered as it was declared.

import {
  didNotHappen,
  fail,
  happened,
  hold,
  type Operation,
  OperationFailedError,
  type ResolveCall,
  rerunKeyed,
  resolve,
  stillUnknown,
} from '../../../idempotency/index.js'
import { isRepriseError } from '../../../kernel/index.js'
import type { RecordCase } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { gate } from '../gate.js'
import { race } from '../race.js'
import { limits } from '../record-world.js'
import { abandoned, chargeId, charging, type Order, onEach, order, until, which } from './operation-world.js'

const because = (error: unknown): unknown => (isRepriseError(error) ? error.details['because'] : undefined)

/** Cases of the group `store.operation.lease`. */
export const leaseCases: readonly RecordCase[] = [
  {
    id: 'store.operation.lease.01',
    title: 'MUST claim with token, fence and lease, store the outcome, and replay it to all',
    async run({ db, second }) {
      let runs = 0
      let during: unknown
      const define = (domain: typeof db) =>
        charging(domain, {
          recover: hold(),
          run: async (lease, { amount }) => {
            const { record, nowMs } = await db.records.read(chargeId(order('a'), db), limits())
            const left = (record?.dueAtMs ?? 0) - nowMs
            const own = record?.token === lease.token && record.fence === lease.fence
            during = [record?.state, record?.mode, record?.claims, own, left > 0 && left <= 2_000]
            return { amount, run: ++runs }
          },
        })
      const [charge, other] = onEach([db, await second()], define) as [
        Operation<Order, unknown>,
        Operation<Order, unknown>,
      ]
      const first = await charge.outcome(order('a'))
      same(during, ['claimed', 'leased', 1, true, true], 'the claim while the body ran')
      same(first, { outcome: 'succeeded', value: { amount: 5, run: 1 }, replayed: false }, 'the first answer')
      for (const repeat of [charge, other])
        same(await repeat.outcome(order('a')), { ...first, replayed: true }, 'repeat')
      await failing(other(order('a', 6)), 'OPERATION_MISMATCH')
      same(runs, 1, 'runs')
    },
  },
  {
    id: 'store.operation.lease.02',
    title: 'MUST renew the lease while the body works, and refuse a duplicate meanwhile, saying when to come again',
    async run({ db, second }) {
      const id = chargeId(order('a'), db)
      const read = async () => (await db.records.read(id, limits())).record
      const inside = gate(2)
      const define = (domain: typeof db) =>
        charging(domain, {
          lease: '2s',
          recover: hold(),
          duplicates: 'refuse',
          run: async () => {
            await inside.arrive()
            return 1
          },
        })
      const [charge, other] = onEach([db, await second()], define) as [
        Operation<Order, unknown>,
        Operation<Order, unknown>,
      ]
      const first = charge(order('a'))
      await inside.waiting(1)
      const claimed = await read()
      await until('it is renewed twice', async () => ((await read())?.version ?? 0) >= (claimed?.version ?? 0) + 2)
      const renewed = await read()
      holds((renewed?.dueAtMs ?? 0) > (claimed?.dueAtMs ?? 0), 'a lease that ends later')
      same([renewed?.claims, renewed?.token, renewed?.fence], [1, claimed?.token, claimed?.fence], 'the same claim')
      await failing(other(order('a')), 'OPERATION_IN_FLIGHT')
      await inside.arrive()
      same([await first, await other(order('a'))], [1, 1], 'outcome and repeat')
    },
  },
  {
    id: 'store.operation.lease.03',
    title: 'MUST let a claim be taken over when its lease and the margin are over by the store’s clock, and not before',
    async run(world) {
      const one = order('a')
      const gone = await abandoned(world, one, 60)
      const margin = 40
      const keys: string[] = []
      let attempts: number[] = []
      const charge = charging(world.db, {
        lease: '2s',
        margin,
        recover: rerunKeyed('24h'),
        run: async (lease) =>
          lease.effect('capture', async ({ key, attempt }) => {
            keys.push(key)
            attempts = [...attempts, attempt, lease.fence]
            return 'run again'
          }),
      })
      const { replayed } = await charge.outcome(one)
      const { record } = await world.db.records.read(chargeId(one, world.db), limits())
      same(
        [replayed, record?.state, record?.claims, attempts[0]],
        [false, 'succeeded', 2, 2],
        'replayed, state, claims',
      )
      holds((record?.claimedAtMs ?? 0) >= (gone.dueAtMs ?? 0) + margin, 'a takeover after lease and margin')
      same([record?.firstClaimedAtMs, keys.length], [gone.firstClaimedAtMs, 1], 'the first claim, calls')
    },
  },
  {
    id: 'store.operation.lease.04',
    title: 'MUST ask what happened before anything is run again, and store the answer as the outcome',
    async run(world) {
      const one = order('a')
      const gone = await abandoned(world, one, -1)
      const asked: unknown[] = []
      const charge = charging(world.db, {
        recover: resolve(({ claimedAtMs, input, key }: ResolveCall<Order>) => {
          asked.push([claimedAtMs, input, key('capture').length > 0])
          return happened({ receipt: 7 })
        }),
        run: () => holds(false, 'a body that is not run'),
      })
      same(await charge.outcome(one), { outcome: 'succeeded', value: { receipt: 7 }, replayed: true }, 'the answer')
      same(asked, [[gone.firstClaimedAtMs, one, true]], 'what was asked')
      same(await charge(one), { receipt: 7 }, 'a repeat')
    },
  },
  {
    id: 'store.operation.lease.05',
    title: 'MUST run what did not happen, and keep unknown what nobody knows',
    async run(world) {
      const [not, still] = [order('not'), order('still')]
      for (const one of [not, still]) await abandoned(world, one, -1)
      let runs = 0
      const charge = charging(world.db, {
        recover: resolve(({ input }: ResolveCall<Order>) => (input?.key === 'not' ? didNotHappen() : stillUnknown())),
        run: async () => ++runs,
      })
      same(await charge(not), 1, 'what did not happen')
      same(because(await failing(charge(still), 'OPERATION_UNKNOWN')), 'resolve-still-unknown', 'why it is unknown')
      const known = await world.db.lookup(which(charge, still))
      same([known.state, runs], ['unknown', 1], 'state and runs')
    },
  },
  {
    id: 'store.operation.lease.06',
    title: 'MUST hold what may have happened where nobody can be asked, for as long as nobody settles it',
    async run(world) {
      const one = order('a')
      await abandoned(world, one, -1)
      let runs = 0
      const charge = charging(world.db, { recover: hold(), run: async () => ++runs })
      for (let call = 0; call < 2; call += 1) await failing(charge(one), 'OPERATION_UNKNOWN')
      const { record } = await world.db.records.read(chargeId(one, world.db), limits())
      same([record?.state, record?.token, runs], ['unknown', undefined, 0], 'state, token, runs')
    },
  },
  {
    id: 'store.operation.lease.07',
    title:
      'MUST keep an outcome unknown after a call that may have arrived, and free the key after one that was not sent',
    async run({ db }) {
      const charge = charging(db, {
        recover: hold(),
        run: async (lease, { key }) => {
          if (key === 'sent') await lease.effect('capture', () => Promise.reject(new Error('reset')))
          throw lease.notSent(new Error('no connection'))
        },
      })
      await failing(charge(order('sent')), 'OPERATION_UNKNOWN')
      await failing(charge(order('sent')), 'OPERATION_UNKNOWN')
      await failing(charge(order('unsent')))
      same(
        [
          (await db.lookup(which(charge, order('sent')))).state,
          (await db.lookup(which(charge, order('unsent')))).state,
        ],
        ['unknown', 'absent'],
        'states',
      )
    },
  },
  {
    id: 'store.operation.lease.08',
    title: 'MUST store a final failure of a leased operation, and replay its code and data',
    async run({ db }) {
      let runs = 0
      const charge = charging(db, {
        recover: hold(),
        run: async () => {
          runs += 1
          return fail('declined', { left: 3 })
        },
      })
      const errors = [await failing(charge(order('a'))), await failing(charge(order('a')))]
      const told = errors.map((error) => (error instanceof OperationFailedError ? error.failure.data : error))
      same([told, runs], [[{ left: 3 }, { left: 3 }], 1], 'failures and runs')
    },
  },
  {
    id: 'store.operation.lease.09',
    title: 'MUST let one of several who claim at once run, and give all of them its outcome',
    async run({ db, second }) {
      let runs = 0
      let meetNow: () => Promise<void> = async () => undefined
      const charges = onEach([db, await second()], (domain) =>
        charging(domain, {
          recover: hold(),
          run: async () => {
            await meetNow()
            return ++runs
          },
        }),
      )
      const { results } = await race(6, ({ number, call, body, meet }) => {
        meetNow = () => body(meet)
        return call(() => (charges[number % 2] as Operation<Order, unknown>)(order('a')))
      })
      same([results, runs], [[1, 1, 1, 1, 1, 1], 1], 'results and runs')
    },
  },
  {
    id: 'store.operation.lease.10',
    title: 'MUST let one of several who take a claim over at once run it again',
    async run(world) {
      const one = order('a')
      await abandoned(world, one, -1)
      let runs = 0
      let meetNow: () => Promise<void> = async () => undefined
      const charges = onEach([world.db, await world.second()], (domain) =>
        charging(domain, {
          recover: rerunKeyed('24h'),
          run: async ({ attempt }) => {
            await meetNow()
            runs += 1
            return attempt
          },
        }),
      )
      const { results } = await race(6, ({ number, call, body, meet }) => {
        meetNow = () => body(meet)
        return call(() => (charges[number % 2] as Operation<Order, unknown>)(one))
      })
      same([results, runs], [[2, 2, 2, 2, 2, 2], 1], 'attempts and runs')
    },
  },
]
