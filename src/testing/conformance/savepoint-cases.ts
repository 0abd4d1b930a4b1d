// What every store must do with savepoints and statements that the body did not wait for.

import { type Key, scope } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import type { OptimisticOptions } from '../../transaction/index.js'
import type { ConformanceCase, StoreWorld } from './conformance-case.js'
import { failing, holds, same } from './expectations.js'
import { gate } from './gate.js'

/** For cases that need savepoints: which manifest denies them, and how a store without savepoints refuses. */
export const needsSavepoints: Pick<ConformanceCase, 'deniedBy' | 'refusal'> = {
  deniedBy: ({ savepoints, because }) => (savepoints ? undefined : (because.savepoints ?? 'no savepoints')),
  async refusal({ db }) {
    await failing(
      db.transact((tx) => tx.savepoint(async () => undefined)),
      'CAPABILITY_UNSUPPORTED',
    )
  },
}

// The body returns while its savepoint is still running.
async function leaveOpen({ db, effect, effectsOf }: StoreWorld, options: OptimisticOptions): Promise<void> {
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  let forgotten: Promise<unknown> = Promise.resolve()
  await failing(
    db.transact(async (tx) => {
      await effect(tx, 'a')
      await new Promise<void>((halfDone) => {
        forgotten = tx.savepoint(async () => {
          await effect(tx, 'b')
          halfDone()
          await finished
          await effect(tx, 'c')
        })
        // The body does not wait for the savepoint, so its failure is checked below.
        forgotten.catch(() => undefined)
      })
    }, options),
    'SAVEPOINT_ORDER',
  )
  finish()
  await failing(forgotten)
  await db.transact((tx) => effect(tx, 'd'))
  const effects = await Promise.all(['a', 'b', 'c', 'd'].map((id) => effectsOf(id)))
  same(effects, [0, 0, 0, 1], 'effects')
}

/** Cases of the group `store.transaction` about savepoints that are still open at the end. */
export const openSavepointCases: readonly ConformanceCase[] = [
  {
    id: 'store.transaction.17',
    title: 'MUST refuse to commit while a savepoint is still open',
    ...needsSavepoints,
    run: (world) => leaveOpen(world, {}),
  },
  {
    id: 'store.transaction.18',
    title: 'MUST refuse the same with a key, and not wait for the savepoint',
    ...needsSavepoints,
    run: (world) =>
      leaveOpen(world, { content: 'none', key: { scope: scope('conformance'), key: 'open-savepoint' as Key } }),
  },
]

/** Runs the work, and fails the case if it left a rejection unhandled, which would end the process. */
async function raisingNothing(work: () => Promise<void>): Promise<void> {
  const raised: unknown[] = []
  const onRaised = (reason: unknown): void => {
    raised.push(reason)
  }
  process.on('unhandledRejection', onRaised)
  try {
    await work()
    await eventLoopTurn()
    await eventLoopTurn()
  } finally {
    process.off('unhandledRejection', onRaised)
  }
  same(raised.length, 0, 'rejections that were left to the process')
}

/** Cases of the group `store.transaction` about work that the body does not wait for. */
export const forgottenCases: readonly ConformanceCase[] = [
  {
    id: 'store.transaction.19',
    title: 'MUST fail a transaction whose body did not wait for a statement that fails, with its error as the cause',
    run: ({ db, effect, effectsOf }) =>
      raisingNothing(async () => {
        const error = await failing(
          db.transact(async (tx) => {
            await effect(tx, 'a')
            // The promise of the handle itself: a promise that the body derived from it would be out of the store's
            // reach.
            void tx.readRow('no_such_table', { id: 'x' })
            return 'success'
          }),
          'TRANSACTION_ABORTED',
        )
        holds((error as Error).cause instanceof Error, 'the cause is an error')
        await db.transact((tx) => effect(tx, 'b'))
        same([await effectsOf('a'), await effectsOf('b')], [0, 1], 'effects')
      }),
  },
  {
    id: 'store.transaction.20',
    title: 'MUST store what the body did not wait for, where all of it succeeds',
    run: ({ db, effect, effectsOf }) =>
      raisingNothing(async () => {
        await db.transact((tx) => {
          void (async () => {
            for (const intent of ['a', 'b', 'c']) await effect(tx, intent)
          })()
        })
        same(await Promise.all(['a', 'b', 'c'].map((intent) => effectsOf(intent))), [1, 1, 1], 'effects')
      }),
  },
  {
    id: 'store.transaction.21',
    title: 'MUST fail a transaction whose body did not wait for a savepoint that fails',
    ...needsSavepoints,
    run: ({ db, effect, effectsOf }) =>
      raisingNothing(async () => {
        const [inside, returned, ended] = [gate(1), gate(1), gate(1)]
        const failed = failing(
          db.transact(async (tx) => {
            await effect(tx, 'a')
            void tx.savepoint(async () => {
              await effect(tx, 'b')
              inside.open()
              await returned.waiting(1)
              ended.open()
              throw new Error('of the savepoint')
            })
            await inside.waiting(1)
          }),
          'SAVEPOINT_ORDER',
        )
        await failed
        returned.open()
        await ended.waiting(1)
        await db.transact((tx) => effect(tx, 'c'))
        same(await Promise.all(['a', 'b', 'c'].map((intent) => effectsOf(intent))), [0, 0, 1], 'effects')
      }),
  },
  {
    id: 'store.transaction.22',
    title: 'MUST answer locks that are asked for side by side as if one came after the other, awaited or not',
    run: ({ db, effect, effectsOf, putItem }) =>
      raisingNothing(async () => {
        for (const id of ['x', 'y', 'z']) await putItem({ id })
        const rows = await db.transact(async (tx) => {
          const locks = [
            tx.lockRow('items', { id: 'x' }, { wait: '50ms' }),
            tx.lockRow('items', { id: 'y' }, { wait: '1s' }),
            tx.lockRow('items', { id: 'z' }),
          ]
          const locked = await Promise.all(locks)
          for (const id of ['z', 'x', 'y']) void tx.lockRow('items', { id }, { wait: '100ms' })
          void effect(tx, 'a')
          return locked.map((row) => String(row?.['id']))
        })
        same([rows, await effectsOf('a')], [['x', 'y', 'z'], 1], 'the rows, and effects')
      }),
  },
]
