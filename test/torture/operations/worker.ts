// A worker: carries out the calls it is sent, sweeps and purges beside that, and dies where its fate says.

import Database from 'libsql'
import pg from 'pg'
import { didNotHappen, fail, failedFinally, happened } from '../../../src/idempotency/index.js'
import { parseKey } from '../../../src/identity/index.js'
import { seededRandom } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { armFromEnvironment, faultPoints } from '../../../src/testing/index.js'
import type { Address } from '../engines/engine.js'
import { define, marginMs, type Order, type Store, type Told, tortured } from './definitions.js'
import type { Asked } from './part.js'
import { plantedPostgres, plantedSqlite } from './planted.js'
import { receiverAt } from './receiver.js'

interface WorkerTold {
  readonly address: Address
  readonly receiver: string
  readonly leaseMs: number
  readonly seed: string
  readonly plant?: string
}

const told = JSON.parse(process.argv[2] ?? '{}') as WorkerTold
const limits = { deadline: '6s', connectionWait: '2s', lockWait: '2s' } as const

function say(said: object): void {
  process.send?.(said, undefined, undefined, () => undefined)
}

function openPostgres(url: string): { readonly db: Store; readonly placeholders: string } {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  pool.on('error', () => undefined)
  const options = { pool, name: 'torture', ...limits }
  const db = told.plant === undefined ? postgres(options) : plantedPostgres(told.plant, options)
  return { db: db as unknown as Store, placeholders: '$1, $2, $3, $4' }
}

function openSqlite(file: string, lostCommits: number): { readonly db: Store; readonly placeholders: string } {
  const random = seededRandom(`${told.seed}/${process.pid}`)
  const open = (): SqliteHandle => {
    const handle = new Database(file)
    const exec = handle.exec.bind(handle)
    // As a sync that fails: what was to be committed is there, or is not, and nobody is told which.
    const losing = (text: string): unknown => {
      if (text !== 'COMMIT' || random.next() * 1_000 >= lostCommits) return exec(text)
      exec(random.next() < 0.5 ? 'COMMIT' : 'ROLLBACK')
      say({ fault: 'lost-commit' })
      throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
    }
    return Object.assign(handle, { exec: losing }) as unknown as SqliteHandle
  }
  const options = { open, name: 'torture', ...limits }
  const db = told.plant === undefined ? sqlite(options) : plantedSqlite(told.plant, options)
  return { db: db as unknown as Store, placeholders: '?, ?, ?, ?' }
}

const { address } = told
const { db, placeholders } =
  'postgres' in address ? openPostgres(address.postgres) : openSqlite(address.sqlite, address.lostCommits)
const defined = define(db, receiverAt(told.receiver), { leaseMs: told.leaseMs, placeholders })
let points = faultPoints()

const codeOf = (error: unknown): string => {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown }
  return String(code ?? message)
}

async function callOnce(order: Order): Promise<Told> {
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
async function settleOnce(order: Order, receipt: string | null): Promise<Told> {
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

type Message = { readonly fate: string } | { readonly id: number; readonly order: Asked }

process.on('message', (message: Message) => {
  if ('fate' in message) {
    points = armFromEnvironment(message.fate) ?? points
    return
  }
  const { id, order } = message
  const work = 'settle' in order ? settleOnce(order.settle, order.receipt) : callOnce(order)
  void work.then((answer) => say({ id, told: answer }))
})
// Whoever started it is gone.
process.on('disconnect', () => process.exit(0))

const reached = new Set<string>()
setInterval(() => {
  for (const point of points.reached) {
    if (reached.has(point)) continue
    reached.add(point)
    say({ reached: point })
  }
}, 100)

async function upkeep(): Promise<never> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 700))
    const delays = { margin: marginMs, baseDelay: 100, capDelay: 1_000, limit: '3s' } as const
    await db.sweep(defined.leased, delays).catch(() => undefined)
    await db.purge().catch(() => undefined)
  }
}

say({ ready: true })
void upkeep()
