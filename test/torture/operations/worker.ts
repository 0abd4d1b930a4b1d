// A worker: carries out the calls it is sent, sweeps and purges beside that, and dies where its fate says.

import { didNotHappen, fail, failedFinally, happened } from '../../../src/idempotency/index.js'
import { parseKey } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import {
  codeOf,
  losingCommits,
  openPool,
  serve,
  toldOf,
  type WorkerAnswer,
  type WorkerArguments,
} from '../worker-process.js'
import { define, marginMs, type Order, type Store, tortured } from './definitions.js'
import type { Asked } from './part.js'
import { plantedPostgres, plantedSqlite } from './planted.js'
import { receiverAt } from './receiver.js'

const told = toldOf<WorkerArguments & { readonly receiver: string }>()
const { address, leaseMs, plant, seed } = told
const limits = { deadline: '6s', connectionWait: '2s', lockWait: '2s' } as const

function open(): { readonly db: object; readonly placeholders: string } {
  if ('postgres' in address) {
    const options = { pool: openPool(address.postgres), name: 'torture', ...limits }
    const db = plant === undefined ? postgres(options) : plantedPostgres(plant, options)
    return { db, placeholders: '$1, $2, $3, $4' }
  }
  const options = { open: losingCommits(address.sqlite, address.lostCommits, seed), name: 'torture', ...limits }
  const db = plant === undefined ? sqlite(options) : plantedSqlite(plant, options)
  return { db, placeholders: '?, ?, ?, ?' }
}

const opened = open()
const db = opened.db as Store
const defined = define(db, receiverAt(told.receiver), { leaseMs, placeholders: opened.placeholders })

async function callOnce(order: Order): Promise<WorkerAnswer> {
  try {
    const end = await defined.all[order.operation].outcome(order)
    const { replayed } = end
    if (end.outcome === 'succeeded') return { final: `succeeded:${end.value}`, replayed }
    return { final: `failed:${end.failure.code}:${String(end.failure.data ?? '')}`, replayed }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

/** A person has asked the receiver, and says what it said. */
async function settleOnce(order: Order, receipt: string | null): Promise<WorkerAnswer> {
  const which = { operation: defined.all[order.operation], scope: tortured, key: parseKey(order.key) }
  const found =
    receipt === null
      ? didNotHappen()
      : order.ends === 'declined'
        ? failedFinally(fail('declined', receipt))
        : happened(receipt)
  const settled = db.settle(which, found as never, { reason: 'the receiver was asked', actor: 'torture' })
  return settled.then(
    () => ({ error: 'settled' }),
    (error: unknown) => ({ error: codeOf(error) }),
  )
}

async function upkeep(): Promise<never> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 700))
    const delays = { margin: marginMs, baseDelay: 100, capDelay: 1_000, limit: '3s' } as const
    await db.sweep(defined.leased, delays).catch(() => undefined)
    await db.purge().catch(() => undefined)
  }
}

serve((order: Asked) => ('settle' in order ? settleOnce(order.settle, order.receipt) : callOnce(order)))
void upkeep()
