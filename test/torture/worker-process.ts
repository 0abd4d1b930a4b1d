// What the workers of all parts share: how they are told things and answer, and how they reach the store.

import Database from 'libsql'
import pg from 'pg'
import { seededRandom } from '../../src/kernel/index.js'
import type { SqliteHandle } from '../../src/stores/sqlite/index.js'
import { armFromEnvironment, faultPoints } from '../../src/testing/index.js'
import type { Address } from './engines/engine.js'

/** What every worker is told when it starts. */
export interface WorkerArguments {
  readonly address: Address
  readonly leaseMs: number
  readonly seed: string
  readonly plant?: string
  /** Whether the faults are over, and it only helps to judge. */
  readonly calm: boolean
}

/** What this worker was told, with what its part adds. */
export function toldOf<Arguments extends WorkerArguments>(): Arguments {
  return JSON.parse(process.argv[2] ?? '{}') as Arguments
}

/** What a worker answers to a call: how it ended, as text that is equal for all who are told it, or an error. */
export type WorkerAnswer = { readonly final: string; readonly replayed: boolean } | { readonly error: string }

/** Says something to the run. */
export function say(said: object): void {
  process.send?.(said, undefined, undefined, () => undefined)
}

/** A pool of PostgreSQL. */
export function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  pool.on('error', () => undefined)
  return pool
}

/** Opens the file, in a way that some of its COMMITs end in an error that says nothing. */
export function losingCommits(file: string, lostCommits: number, seed: string): () => SqliteHandle {
  const random = seededRandom(`${seed}/${process.pid}`)
  return () => {
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
}

/** What an error is called. */
export const codeOf = (error: unknown): string => {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown }
  return String(code ?? message)
}

type Heard<Order> = { readonly fate: string } | { readonly id: number; readonly order: Order }

/** Carries out what the run asks for, until it is over; tells which fault points were reached. */
export function serve<Order>(work: (order: Order) => Promise<unknown>): void {
  let points = faultPoints()
  process.on('message', (heard: Heard<Order>) => {
    if ('fate' in heard) points = armFromEnvironment(heard.fate) ?? points
    else void work(heard.order).then((told) => say({ id: heard.id, told }))
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
  say({ ready: true })
}
