// What every store must do with the claim of an atomic operation: marker, effect and outcome in one commit, the unique
// index deciding between those who come at once.

import type { Operation } from '../../../idempotency/index.js'
import { operationId } from '../../../idempotency/index.js'
import { scope } from '../../../identity/index.js'
import { isRepriseError } from '../../../kernel/index.js'
import type { ConformanceCase, StoreWorld } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { gate } from '../gate.js'
import { race } from '../race.js'
import { limits } from '../record-world.js'
import { identity, type Order, onEach, order, paying, type Receipt, tests } from './operation-world.js'

/**
 * A `pay` whose first body waits until it is told to go on, and another domain object's, which refuses duplicates or
 * waits as it is told.
 */
async function underWay(world: StoreWorld, more: object) {
  const inside = gate(2)
  let first = true
  const { pays, runs } = await paying(world, { ...more, connectionWait: '30s' }, async () => {
    if (!first) return
    first = false
    await inside.arrive()
  })
  const leading = pays[0](order('a'))
  await inside.waiting(1)
  const goOn = async (): Promise<Receipt> => {
    void inside.arrive()
    return leading
  }
  return { other: pays[1], goOn, runs }
}

const certainty = (error: unknown): unknown => (isRepriseError(error) ? error.details['certain'] : undefined)

/** Cases of the group `store.operation.claim`. */
export const claimCases: readonly ConformanceCase[] = [
  {
    id: 'store.operation.claim.01',
    title: 'MUST carry an intent out once, and hand out its outcome to every repeat',
    async run(world) {
      const { pays, runs } = await paying(world)
      const first = await pays[0].outcome(order('a'))
      const repeats = [await pays[0].outcome(order('a')), await pays[1].outcome(order('a'))]
      same(first, { outcome: 'succeeded', value: { run: 1 }, replayed: false }, 'the first answer')
      for (const repeat of repeats) same(repeat, { ...first, replayed: true }, 'a repeat')
      same([runs(), await world.effectsOf('a')], [1, 1], 'runs and effects')
    },
  },
  {
    id: 'store.operation.claim.02',
    title: 'MUST refuse a key that was used with other content, and do nothing',
    async run(world) {
      const { pays, runs } = await paying(world)
      await pays[0](order('a', 5))
      await failing(pays[0](order('a', 6)), 'OPERATION_MISMATCH')
      await failing(pays[1](order('a', 6)), 'OPERATION_MISMATCH')
      same([runs(), await world.effectsOf('a'), (await pays[1](order('a', 5))).run], [1, 1, 1], 'runs, effects, repeat')
    },
  },
  {
    id: 'store.operation.claim.03',
    title: 'MUST keep keys, scopes and operations apart',
    async run({ db }) {
      const calls: string[] = []
      const define = (name: string, who: string) =>
        db.operation(name, { ...identity, scope: () => scope(who), run: async () => calls.push(`${name} ${who}`) })
      const operations = [define('pay', 'one'), define('refund', 'one'), define('pay.other', 'two')]
      for (const key of ['a', 'b', 'a']) for (const operation of operations) await operation(order(key))
      same(calls.length, 6, 'runs of three operations under two keys')
    },
  },
  {
    id: 'store.operation.claim.04',
    title: 'MUST let one of several callers at once run, at every isolation level, and give all of them its outcome',
    async run(world) {
      for (const isolation of world.db.manifest.isolation) {
        const key = `at-${isolation}`
        let runs = 0
        let meetNow: () => Promise<void> = async () => undefined
        const operations = onEach([world.db, await world.second()], (domain) =>
          domain.operation(`pay.${isolation}`, {
            ...identity,
            isolation,
            connectionWait: '30s',
            lockWait: '30s',
            run: async (tx: Parameters<StoreWorld['effect']>[0]) => {
              await world.effect(tx, key)
              await meetNow()
              return ++runs
            },
          }),
        )
        const { results } = await race(6, ({ number, call, body, meet }) => {
          meetNow = () => body(meet)
          const pay = operations[number % 2] as Operation<Order, number>
          return call(() => pay(order(key), { deadline: '60s' }))
        })
        same([results, runs, await world.effectsOf(key)], [[1, 1, 1, 1, 1, 1], 1, 1], `at ${isolation}`)
      }
    },
  },
  {
    id: 'store.operation.claim.05',
    title: 'MUST let exactly one of those who wait run when the first one rolls back',
    async run(world) {
      const inside = gate(5)
      const own = new Error('of the body')
      let [attempts, atOnce, mostAtOnce] = [0, 0, 0]
      const { pays, runs } = await paying(world, { connectionWait: '30s' }, async () => {
        attempts += 1
        atOnce += 1
        mostAtOnce = Math.max(mostAtOnce, atOnce)
        try {
          if (attempts > 1) return
          await inside.arrive()
          throw own
        } finally {
          atOnce -= 1
        }
      })
      const first = failing(pays[0](order('a')))
      await inside.waiting(1)
      const others = [0, 1, 0, 1].map((number) => {
        void inside.arrive()
        return (pays[number] ?? pays[0])(order('a'), { deadline: '60s' })
      })
      holds((await first) === own, 'the first caller gets its own error')
      const receipts = await Promise.all(others)
      same(receipts, [{ run: 1 }, { run: 1 }, { run: 1 }, { run: 1 }], 'the answers of those who waited')
      same([attempts, mostAtOnce, runs(), await world.effectsOf('a')], [2, 1, 1, 1], 'bodies, at once, runs, effects')
    },
  },
  {
    id: 'store.operation.claim.06',
    title: 'MUST refuse a duplicate at once where it was asked to, for that very key and for no other',
    deniedBy: ({ refuse, because }) => (refuse === 'exact' ? undefined : because.refuse),
    async run(world) {
      const { other, goOn, runs } = await underWay(world, { duplicates: 'refuse' })
      holds(certainty(await failing(other(order('a')), 'OPERATION_IN_FLIGHT')) !== false, 'a refusal that is certain')
      // Where writers take turns another key would wait for the first one, which waits for nobody here.
      if (world.db.manifest.writers === 'many') same(await other(order('b')), { run: 1 }, 'another key meanwhile')
      await goOn()
      same(runs(), world.db.manifest.writers === 'many' ? 2 : 1, 'runs')
      holds((await other.outcome(order('a'))).replayed, 'a repeat afterwards that is replayed')
    },
    async refusal(world) {
      const { other, goOn, runs } = await underWay(world, { duplicates: 'refuse', wait: '60ms' })
      // It cannot tell one key from another, and says so.
      for (const key of ['a', 'b']) {
        same(certainty(await failing(other(order(key)), 'OPERATION_IN_FLIGHT')), false, `whether ${key} is certain`)
      }
      await goOn()
      same(runs(), 1, 'runs')
      holds((await other.outcome(order('a'))).replayed, 'a repeat afterwards that is replayed')
    },
  },
  {
    id: 'store.operation.claim.07',
    title: 'MUST end the wait of a duplicate when its time is over, and have the outcome for it afterwards',
    async run(world) {
      const { other, goOn, runs } = await underWay(world, { wait: '100ms', attempts: 50 })
      await failing(other(order('a')), 'OPERATION_IN_FLIGHT')
      same([await goOn(), await other(order('a')), runs()], [{ run: 1 }, { run: 1 }, 1], 'outcome, repeat, runs')
    },
  },
  {
    id: 'store.operation.claim.08',
    title: 'MUST let insertOnce decide where another key meets the same natural key',
    async run({ db, item }) {
      const enrol = db.operation('enrol', {
        ...identity,
        run: async (tx, { amount }: Order) => {
          const row = { id: 'member-1', state: 'new', version: 0, amount }
          return (await tx.insertOnce('items', row, ['id'])).inserted
        },
      })
      const answers = [
        await enrol(order('a')),
        await enrol(order('b')),
        await enrol(order('a')),
        await enrol(order('b')),
      ]
      same(answers, [true, false, true, false], 'whether it was inserted')
      same((await item('member-1'))?.['amount'], 5, 'what is there')
    },
  },
  {
    id: 'store.operation.claim.09',
    title: 'MUST commit claim, effect and outcome together: before that nothing of them can be seen',
    async run(world) {
      const { db } = world
      const id = operationId('pay', tests, order('a').key, db.records.pepper)
      let during: unknown = 'not looked at'
      const { pays } = await paying(world, {}, async () => {
        during = [(await db.records.read(id, limits())).record, await world.effectsOf('a')]
      })
      await pays[0](order('a'))
      same(during, [undefined, 0], 'what was there before the commit')
      const { record } = await db.records.read(id, limits())
      const {
        mode,
        operation,
        state,
        version,
        claims,
        value,
        fence,
        dueAtMs,
        completedAtMs = 0,
        expiresAtMs,
      } = { ...record }
      same(
        [mode, operation, state, version, claims, value, fence, dueAtMs, expiresAtMs],
        ['atomic', 'pay', 'succeeded', 1, 1, '{"run":1}', undefined, undefined, completedAtMs + 86_400_000],
        'the record',
      )
      holds(record?.scope !== undefined && record.fingerprint !== undefined, 'a scope and a fingerprint')
    },
  },
]
