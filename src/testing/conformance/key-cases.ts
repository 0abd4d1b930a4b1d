// What every store must do with the marker of a key: it is committed together with the effect, and the unique index
// decides who is first.

import { type Key, type Scope, scope, storedKey } from '../../identity/index.js'
import type { ConformanceCase, ConformanceHandle } from './conformance-case.js'
import { failing, holds, same } from './expectations.js'
import { gate } from './gate.js'
import { endWindow, until } from './operations/operation-world.js'
import { race } from './race.js'
import { limits } from './record-world.js'

const tests: Scope = scope('conformance')
const key = (name: string): { scope: Scope; key: Key } => ({ scope: tests, key: name as Key })
const keyed = (name: string): { key: { scope: Scope; key: Key }; content: 'none' } => ({
  key: { scope: tests, key: name as Key },
  content: 'none',
})

/** Cases of the group `store.key`. */
export const keyCases: readonly ConformanceCase[] = [
  {
    id: 'store.key.01',
    title: 'MUST run the body once for a key, and hand out the stored result to a repeat',
    async run({ db, second, effect, effectsOf }) {
      let runs = 0
      const pay = (domain: typeof db): Promise<{ run: number }> =>
        domain.transact(async (tx) => {
          await effect(tx, 'a')
          return { run: ++runs }
        }, keyed('one'))
      const results = [await pay(db), await pay(db), await pay(await second())]
      same(
        [results, runs, await effectsOf('a')],
        [[{ run: 1 }, { run: 1 }, { run: 1 }], 1, 1],
        'results, runs, effects',
      )
    },
  },
  {
    id: 'store.key.02',
    title: 'MUST keep marker and effect together: a body that threw leaves the key free',
    async run({ db, effect, effectsOf }) {
      const own = new Error('of the body')
      const options = keyed('one')
      await failing(
        db.transact(async (tx) => {
          await effect(tx, 'a')
          throw own
        }, options),
      )
      const result = await db.transact(async (tx) => {
        await effect(tx, 'a')
        return 'second'
      }, options)
      same([result, await effectsOf('a')], ['second', 1], 'result and effects')
    },
  },
  {
    id: 'store.key.03',
    title: 'MUST let one of several callers with the same key run, and give all of them its result',
    async run({ db, second, effect, effectsOf }) {
      const callers = 6
      const domains = [db, await second()]
      let runs = 0
      // The body of the first caller waits until all the others have called.
      const { results } = await race(callers, ({ number, call, body, meet }) => {
        const pay = async (tx: ConformanceHandle): Promise<number> => {
          await effect(tx, 'a')
          await meet()
          return ++runs
        }
        const options = { ...keyed('one'), connectionWait: '30s', lockWait: '30s' } as const
        return call(() => (domains[number % 2] ?? db).transact((tx) => body(() => pay(tx)), options))
      })
      same([results.length, new Set(results).size, await effectsOf('a')], [callers, 1, 1], 'callers, results, effects')
    },
  },
  {
    id: 'store.key.04',
    title: 'MUST let exactly one waiting caller run when the first one rolls back',
    async run({ db, second, effect, effectsOf }) {
      const inside = gate(2)
      const options = { ...keyed('one'), connectionWait: '30s', lockWait: '30s' } as const
      const first = failing(
        db.transact(async (tx) => {
          await effect(tx, 'a')
          await inside.arrive()
          throw new Error('rolled back')
        }, options),
      )
      await inside.waiting(1)
      const waiter = (await second()).transact(async (tx) => {
        await effect(tx, 'a')
        return 'waiter'
      }, options)
      await inside.arrive()
      await first
      same([await waiter, await effectsOf('a')], ['waiter', 1], 'result and effects')
    },
  },
  {
    id: 'store.key.05',
    title: 'MUST keep keys and scopes apart',
    async run({ db, effect, effectsOf }) {
      const elsewhere = { scope: scope('elsewhere'), key: 'one' as Key }
      for (const used of [key('one'), key('two'), elsewhere])
        await db.transact((tx) => effect(tx, 'a'), { content: 'none', key: used })
      same(await effectsOf('a'), 3, 'effects')
    },
  },
  {
    id: 'store.key.06',
    title: 'MUST give the first caller and a repeat equal values, whatever JSON can hold',
    async run({ db }) {
      const values = [null, '', 'ünï\u{1f600}', 0, -1.5e-7, [], {}, { a: [true, { b: null }] }, 'x'.repeat(100_000)]
      for (const [position, value] of values.entries()) {
        const options = keyed(`value-${position}`)
        const first = await db.transact(() => value, options)
        const repeat = await db.transact(() => expectNever(), options)
        same([first, repeat], [value, value], `value ${position}`)
      }
      const nothing = keyed('nothing')
      holds((await db.transact(() => undefined, nothing)) === undefined, 'nothing comes back as nothing')
      holds((await db.transact(() => expectNever(), nothing)) === undefined, 'nothing comes back as nothing again')
    },
  },
  {
    id: 'store.key.07',
    title: 'MUST claim and replay under every isolation level of its manifest',
    async run({ db, effect, effectsOf }) {
      for (const isolation of db.manifest.isolation) {
        const options = { ...keyed(isolation), isolation }
        await db.transact((tx) => effect(tx, isolation), options)
        await db.transact((tx) => effect(tx, isolation), options)
        same(await effectsOf(isolation), 1, `effects under ${isolation}`)
      }
    },
  },
  {
    id: 'store.key.08',
    title: 'MUST refuse other content under the same key, and run nothing',
    async run({ db, second, effect, effectsOf }) {
      const paying = (amount: number) => ({ key: key('one'), content: { value: { amount } } })
      await db.transact((tx) => effect(tx, 'a'), paying(100))
      for (const domain of [db, await second()]) {
        await failing(
          domain.transact(() => expectNever(), paying(500)),
          'OPERATION_MISMATCH',
        )
        await domain.transact(() => expectNever(), paying(100))
      }
      same(await effectsOf('a'), 1, 'effects')
    },
  },
  {
    id: 'store.key.09',
    title: 'MUST forget a key when its window is over, and carry it out anew, with any content',
    async run(world) {
      const { db, effect, effectsOf } = world
      const paying = (amount: number) => ({ key: key('one'), content: { value: { amount } }, window: '1h' }) as const
      await db.transact((tx) => effect(tx, 'a'), paying(100))
      await endWindow(world, storedKey(tests, 'one' as Key, db.records.pepper))
      await until('the window is over', async () => {
        const { record, nowMs } = await db.records.read(storedKey(tests, 'one' as Key, db.records.pepper), limits())
        return record?.expiresAtMs !== undefined && record.expiresAtMs <= nowMs
      })
      await db.transact((tx) => effect(tx, 'a'), paying(500))
      await db.transact(() => expectNever(), paying(500))
      same(await effectsOf('a'), 2, 'effects')
    },
  },
]

function expectNever(): never {
  throw new Error('the body of a repeat ran')
}
