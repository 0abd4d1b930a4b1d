// What every store must do with a transaction: commit all of it or nothing, and accept nothing after its end.

import { openTransaction, transactionHistoryOf } from '../../transaction/index.js'
import type { ConformanceCase, ConformanceHandle } from './conformance-case.js'
import { failing, holds, same } from './expectations.js'
import { gate } from './gate.js'
import { overlapOf, race } from './race.js'
import { forgottenCases, needsSavepoints, openSavepointCases } from './savepoint-cases.js'

/** Cases of the group `store.transaction`. */
export const transactionCases: readonly ConformanceCase[] = [
  {
    id: 'store.transaction.01',
    title: 'MUST commit what the body wrote, and hand out what it returned',
    async run({ db, effect, effectsOf }) {
      const result = await db.transact(async (tx) => {
        await effect(tx, 'a')
        return 'result'
      })
      same([result, await effectsOf('a')], ['result', 1], 'result and effects')
    },
  },
  {
    id: 'store.transaction.02',
    title: 'MUST leave nothing of a body that threw, and hand out its error',
    async run({ db, effect, effectsOf }) {
      const own = new Error('of the body')
      const error = await failing(
        db.transact(async (tx) => {
          await effect(tx, 'a')
          throw own
        }),
      )
      holds(error === own, 'the error is the one that the body threw')
      same(await effectsOf('a'), 0, 'effects')
    },
  },
  {
    id: 'store.transaction.03',
    title: 'MUST show to nobody what is not committed',
    async run({ db, effect, effectsOf }) {
      let before = -1
      await db.transact(async (tx) => {
        await effect(tx, 'a')
        before = await effectsOf('a')
      })
      same([before, await effectsOf('a')], [0, 1], 'effects seen from outside, before and after the commit')
    },
  },
  {
    id: 'store.transaction.04',
    title: 'MUST refuse every use of a handle after its transaction has ended',
    async run({ db, effect, effectsOf }) {
      let kept: ConformanceHandle | undefined
      await db.transact((tx) => {
        kept = tx
      })
      if (kept === undefined) throw new Error('the body did not run')
      await failing(effect(kept, 'a'))
      await failing(kept.readRow('items', { id: 'x' }))
      same(await effectsOf('a'), 0, 'effects')
    },
  },
  {
    id: 'store.transaction.05',
    title: 'MUST refuse a transaction inside an open one',
    async run({ db, second, effect, effectsOf }) {
      const other = await second()
      await failing(
        db.transact(async (tx) => {
          await effect(tx, 'a')
          await other.transact((inner) => effect(inner, 'b'))
        }),
        'TRANSACTION_NESTED',
      )
      same([await effectsOf('a'), await effectsOf('b')], [0, 0], 'effects')
      holds(openTransaction() === undefined, 'no transaction is open any more')
    },
  },
  {
    id: 'store.transaction.06',
    title: 'MUST NOT report success when the body swallowed an error of the engine',
    async run({ db, effect, offend, effectsOf }) {
      await failing(
        db.transact(async (tx) => {
          await effect(tx, 'a')
          await offend(tx).catch(() => undefined)
          return 'success'
        }),
        'TRANSACTION_ABORTED',
      )
      same(await effectsOf('a'), 0, 'effects')
    },
  },
  {
    id: 'store.transaction.07',
    title: 'MUST refuse every statement after an error of the engine, and keep the first error',
    async run({ db, effect, offend, effectsOf }) {
      let first: unknown
      const error = await failing(
        db.transact(async (tx) => {
          first = await offend(tx).catch((reason: unknown) => reason)
          await effect(tx, 'a')
        }),
      )
      holds(error !== undefined && first !== undefined, 'both failed')
      same(transactionHistoryOf(error)?.attempts.length, 1, 'attempts')
      same(await effectsOf('a'), 0, 'effects')
    },
  },
  {
    id: 'store.transaction.08',
    title: 'MUST scope an error by a savepoint: its writes are undone, the others commit',
    ...needsSavepoints,
    async run({ db, effect, offend, effectsOf }) {
      await db.transact(async (tx) => {
        await effect(tx, 'a')
        await failing(
          tx.savepoint(async () => {
            await effect(tx, 'b')
            await offend(tx)
          }),
        )
        await tx.savepoint(() => effect(tx, 'c'))
      })
      same([await effectsOf('a'), await effectsOf('b'), await effectsOf('c')], [1, 0, 1], 'effects')
    },
  },
  {
    id: 'store.transaction.09',
    title: 'MUST scope a body’s own error by a savepoint, nested ones included',
    ...needsSavepoints,
    async run({ db, effect, effectsOf }) {
      await db.transact(async (tx) => {
        await tx.savepoint(async () => {
          await effect(tx, 'a')
          await failing(
            tx.savepoint(async () => {
              await effect(tx, 'b')
              throw new Error('inner')
            }),
          )
        })
      })
      same([await effectsOf('a'), await effectsOf('b')], [1, 0], 'effects')
    },
  },
  {
    id: 'store.transaction.10',
    title: 'MUST offer every isolation level of its manifest, and refuse the others before anything is opened',
    async run({ db, effect, effectsOf }) {
      for (const isolation of db.manifest.isolation) await db.transact((tx) => effect(tx, 'a'), { isolation })
      same(await effectsOf('a'), db.manifest.isolation.length, 'effects')
      const levels = ['read-committed', 'repeatable-read', 'serializable'] as const
      for (const isolation of levels.filter((level) => !db.manifest.isolation.includes(level))) {
        await failing(
          db.transact((tx) => effect(tx, 'b'), { isolation }),
          'CAPABILITY_UNSUPPORTED',
        )
      }
      same(await effectsOf('b'), 0, 'effects under levels that are not offered')
    },
  },
  {
    id: 'store.transaction.11',
    title: 'MUST refuse a write in a transaction that was declared to only read',
    deniedBy: ({ readOnly, because }) => (readOnly ? undefined : (because.readOnly ?? 'no read-only transactions')),
    async run({ db, effect, effectsOf, putItem }) {
      await putItem({ id: 'x', amount: 7 })
      await failing(db.transact((tx) => effect(tx, 'a'), { readOnly: true }))
      const row = await db.transact((tx) => tx.readRow('items', { id: 'x' }), { readOnly: true })
      same([Number(row?.['amount']), await effectsOf('a')], [7, 0], 'what was read, and effects')
    },
    async refusal({ db }) {
      await failing(
        db.transact(() => undefined, { readOnly: true }),
        'CAPABILITY_UNSUPPORTED',
      )
    },
  },
  {
    id: 'store.transaction.12',
    title: 'MUST apply both of two read-then-write transactions that run at once under the strictest level',
    async run({ db, second, putItem, item }) {
      await putItem({ id: 'x', amount: 0 })
      const isolation = db.manifest.isolation.at(-1) ?? 'serializable'
      const domains = [db, await second()]
      const overlap = overlapOf(db.manifest)
      const { bodies } = await race(
        2,
        ({ number, call, body, meet }) => {
          const add = async (tx: ConformanceHandle): Promise<void> => {
            const row = await tx.readRow('items', { id: 'x' })
            await meet() // with many writers both have read before either writes: a conflict is certain
            await tx.updateRows('items', { id: 'x' }, { amount: Number(row?.['amount']) + 1 })
          }
          return call(() => (domains[number] ?? db).transact((tx) => body(() => add(tx)), { isolation }))
        },
        overlap,
      )
      same(Number((await item('x'))?.['amount']), 2, 'the sum')
      holds(overlap === 'calls' || bodies > 2, 'that one of them had to run its body again')
    },
  },
  {
    id: 'store.transaction.13',
    title: 'MUST end a body that takes too long, commit nothing of it, and leave the store usable',
    async run({ db, effect, effectsOf }) {
      let zombie: Promise<unknown> = Promise.resolve()
      await failing(
        db.transact(
          (tx) => {
            const aborted = new Promise<void>((resolve) => tx.signal.addEventListener('abort', () => resolve()))
            zombie = effect(tx, 'a')
              .then(() => aborted)
              .then(() => effect(tx, 'b'))
            return zombie
          },
          { bodyLimit: '50ms' },
        ),
        'BODY_TIME_LIMIT',
      )
      await failing(zombie)
      await db.transact((tx) => effect(tx, 'c'))
      same([await effectsOf('a'), await effectsOf('b'), await effectsOf('c')], [0, 0, 1], 'effects')
    },
  },
  {
    id: 'store.transaction.14',
    title: 'MUST end at once when the caller’s signal aborts, and commit nothing',
    async run({ db, effect, effectsOf }) {
      const controller = new AbortController()
      const reason = new Error('enough')
      const error = await failing(
        db.transact(
          async (tx) => {
            await effect(tx, 'a')
            controller.abort(reason)
            await new Promise(() => undefined)
          },
          { signal: controller.signal },
        ),
      )
      holds(error === reason, 'the error is the reason of the signal')
      await db.transact((tx) => effect(tx, 'b'))
      same([await effectsOf('a'), await effectsOf('b')], [0, 1], 'effects')
    },
  },
  {
    id: 'store.transaction.15',
    title: 'MUST bound the wait for a connection, and fail fast',
    async run({ db, connections, effect, effectsOf }) {
      const inside = gate(connections + 1)
      const holders = Array.from({ length: connections }, () =>
        db.transact(() => inside.arrive(), { connectionWait: '30s' }),
      )
      await inside.waiting(connections)
      await failing(
        db.transact((tx) => effect(tx, 'a'), { connectionWait: '50ms' }),
        'POOL_EXHAUSTED',
      )
      await inside.arrive()
      await Promise.all(holders)
      await db.transact((tx) => effect(tx, 'b'))
      same([await effectsOf('a'), await effectsOf('b')], [0, 1], 'effects')
    },
  },
  {
    id: 'store.transaction.16',
    title: 'MUST run afterCommit functions after the commit only, and never let them change the result',
    async run({ db, effect, effectsOf }) {
      const seen: number[] = []
      const result = await db.transact(async (tx) => {
        tx.afterCommit(async () => seen.push(await effectsOf('a')))
        tx.afterCommit(() => Promise.reject(new Error('reported, not thrown')))
        await effect(tx, 'a')
        return 'result'
      })
      await failing(
        db.transact((tx) => {
          tx.afterCommit(() => seen.push(99))
          throw new Error('rolled back')
        }),
      )
      same([result, seen], ['result', [1]], 'result, and what afterCommit saw')
    },
  },
  ...openSavepointCases,
  ...forgottenCases,
]
