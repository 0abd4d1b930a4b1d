// Calls one operation in its own process, with the fault points that the environment arms, and prints how each call
// ended.

import { subscribe } from 'node:diagnostics_channel'
import Database from 'libsql'
import pg from 'pg'
import { parseKey } from '../../../../src/identity/index.js'
import { type Clock, systemClock } from '../../../../src/kernel/index.js'
import { postgres } from '../../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../../src/stores/sqlite/index.js'
import { type OperationLeaseEvent, operationLease } from '../../../../src/telemetry/index.js'
import { armFromEnvironment } from '../../../../src/testing/index.js'
import { define, type OperationName, type Way } from '../definitions.js'

/** What such a process is told. */
export interface OperateArguments {
  readonly store: { readonly postgres: string } | { readonly sqlite: string }
  readonly operation: OperationName
  readonly way: Way
  readonly intent: string
  readonly suffix: string
  readonly key: string
  readonly sink: string
  readonly leaseMs: number
  /** How many calls are made, one after the other. */
  readonly calls: number
  /** Whether its clock stands still, as on a suspended machine: it cannot notice by itself that its lease is over. */
  readonly clockStandsStill: boolean
  /** SQLite: the answer to the first COMMIT of an outcome is lost. */
  readonly losesCommit: boolean
}

/** How a call ended, as it is printed. */
export type Ended = { readonly result: string } | { readonly error: string; readonly lost?: string }

const told = JSON.parse(process.argv[2] ?? '{}') as OperateArguments

// As a sync that fails: what was committed is there, and nobody is told. It happens once.
let lost = false
function losing(handle: Database.Database): SqliteHandle {
  return new Proxy(handle, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown
      if (name !== 'exec') return typeof value === 'function' ? value.bind(target) : value
      return (text: string) => {
        target.exec(text)
        if (text !== 'COMMIT' || lost) return
        lost = true
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
      }
    },
  }) as unknown as SqliteHandle
}

const startedAtMs = systemClock.monotonicMs()
const still: Clock = {
  monotonicMs: () => startedAtMs,
  wallMs: () => systemClock.wallMs(),
  setTimer: (delayMs, fire) => systemClock.setTimer(delayMs, fire),
}
const clock = told.clockStandsStill ? still : systemClock

function openPostgres(url: string) {
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => undefined)
  return {
    db: postgres({ pool, name: 'child', clock, connectionWait: '20s', bodyLimit: '30s' }),
    placeholders: ['$1', '$2', '$3'] as const,
  }
}

function openSqlite(file: string) {
  const open = (): SqliteHandle => {
    const handle = new Database(file)
    return told.losesCommit ? losing(handle) : (handle as unknown as SqliteHandle)
  }
  return { db: sqlite({ name: 'child', open, clock }), placeholders: ['?', '?', '?'] as const }
}

async function main(): Promise<void> {
  const { store, sink, leaseMs, way, operation, suffix, intent, key, calls } = told
  const { db, placeholders } = 'postgres' in store ? openPostgres(store.postgres) : openSqlite(store.sqlite)
  const defined = define(db as never, { sink, leaseMs, suffix, way, placeholders })
  armFromEnvironment()
  // Why the lease was lost: noticed here, or told by the store.
  let lost: string | undefined
  subscribe(operationLease.name, (message) => {
    const { what, why } = message as OperationLeaseEvent
    if (what === 'lost') lost = why
  })
  for (let n = 0; n < calls; n += 1) {
    const ended: Ended = await defined[operation]({ intent, key: parseKey(key) }, { deadline: '60s' }).then(
      (result) => ({ result }),
      (error) => ({ error: String(error.code ?? error.message), ...(lost === undefined ? {} : { lost }) }),
    )
    console.log(JSON.stringify(ended))
  }
  process.exit(0)
}

void main()
