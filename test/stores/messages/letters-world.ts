// Stores with messages that could not be delivered or handled, for the tests of dead letters: in memory, SQLite and
// PostgreSQL.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import { memoryBroker } from '../../../src/brokers/memory/index.js'
import {
  type ConsumerDomain,
  consume,
  type LetterDomain,
  type Message,
  type RelayDomain,
  relay,
} from '../../../src/messaging/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { createDatabase } from '../../servers/fresh-database.js'

/** What every domain has. */
type AnyDomain = LetterDomain & RelayDomain & ConsumerDomain<EmittingHandle>
type EmittingHandle = Parameters<Parameters<ReturnType<typeof memory>['transact']>[0]>[0]

/** A store, and how its messages are read. */
export interface LettersWorld {
  readonly db: AnyDomain
  /** Emits messages of an id and a key, each in a transaction of its own. */
  emit(...messages: readonly (readonly [id: string, key: string])[]): Promise<void>
  /** Names of messages that a reader cannot take for now. */
  readonly bad: Set<string>
  /** Reads the outbox until nothing is due; what is bad becomes a dead letter. Gives the ids that were handled. */
  consumed(): Promise<readonly string[]>
  /** Publishes until nothing is due; what is bad is refused. Gives all messages on the wire. */
  relayed(): Promise<readonly Message[]>
  /** All rows of a table of Reprise, by what follows the prefix. */
  rows(table: string): Promise<readonly Record<string, unknown>[]>
}

type Named = readonly [name: string, inWorld: (work: (world: LettersWorld) => Promise<void>) => Promise<void>]
type Rows = LettersWorld['rows']

const patient = { connectionWait: '60s' } as const

function worldOn(db: AnyDomain, rows: Rows): LettersWorld {
  const bad = new Set<string>()
  const handled: string[] = []
  const broker = memoryBroker()
  broker.faults.refuses = ({ id }) => (bad.has(id) ? 'not this one' : undefined)
  const out = relay(db, { name: 'out', to: broker.publisher('shop'), attempts: 1 })
  const receipts = consume(db, {
    name: 'receipts',
    from: db,
    handle: (_tx, { id }) => {
      if (bad.has(id)) throw new TypeError('it cannot be handled')
      handled.push(id)
    },
  })
  return {
    db,
    bad,
    rows,
    emit: async (...messages) => {
      for (const [id, key] of messages) {
        await db.transact((tx) => tx.emit({ type: 'order.placed', id, key, data: { of: id } }), transactOptions)
      }
    },
    consumed: async () => {
      await receipts.drain()
      return [...handled]
    },
    relayed: async () => {
      await out.drain()
      return broker.published('shop')
    },
  }
}

const transactOptions = { deadline: '60s', bodyLimit: '60s', connectionWait: '60s' } as const

/** Every store that keeps messages. */
export const letterWorlds: readonly Named[] = [
  [
    'memory',
    async (work) => {
      const db = memory({ name: 'shop' })
      await work(worldOn(db as never, async (table) => db.rows(`reprise_${table}`)))
    },
  ],
  [
    'SQLite',
    async (work) => {
      const folder = mkdtempSync(join(tmpdir(), 'reprise-letters-'))
      const db = sqlite({ name: 'shop', file: join(folder, 'store.db'), ...patient })
      try {
        await db.migrate()
        const rows: Rows = (table) => db.transact(async (tx) => (await tx.query(`select * from reprise_${table}`)).rows)
        await work(worldOn(db as never, rows))
      } finally {
        await db.close()
        rmSync(folder, { recursive: true })
      }
    },
  ],
  [
    'PostgreSQL',
    async (work) => {
      const database = await createDatabase(inject('postgresUrl'))
      const pool = new pg.Pool({ connectionString: database.url, max: 5 })
      const db = postgres({ name: 'shop', pool, ...patient })
      try {
        await db.migrate()
        await work(worldOn(db as never, async (table) => (await pool.query(`select * from reprise_${table}`)).rows))
      } finally {
        await db.close()
        await pool.end()
        await database.drop()
      }
    },
  ],
]
