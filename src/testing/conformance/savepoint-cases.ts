// What every store must do with a savepoint that the body did not wait for.

import { type Key, scope } from '../../identity/index.js'
import type { TransactOptions } from '../../transaction/index.js'
import type { ConformanceCase, StoreWorld } from './conformance-case.js'
import { failing, same } from './expectations.js'

/** For cases that need savepoints: what denies them, and how a store without them refuses. */
export const needsSavepoints: Pick<ConformanceCase, 'deniedBy' | 'refusal'> = {
  deniedBy: ({ savepoints, because }) => (savepoints ? undefined : (because.savepoints ?? 'no savepoints')),
  async refusal({ db }) {
    await failing(
      db.transact((tx) => tx.savepoint(async () => undefined)),
      'CAPABILITY_UNSUPPORTED',
    )
  },
}

// The savepoint is half done when the body returns.
async function leaveOpen({ db, effect, effectsOf }: StoreWorld, options: TransactOptions): Promise<void> {
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
        // Whoever forgets a savepoint does not hear of its failure; it is looked at below.
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
    run: (world) => leaveOpen(world, { key: { scope: scope('conformance'), key: 'open-savepoint' as Key } }),
  },
]
