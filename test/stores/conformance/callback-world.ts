// Callback domains under the conformance suite: what an ORM's transaction function leaves of PostgreSQL, and of SQLite.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Libsql from 'libsql'
import pg from 'pg'
import type { Clock } from '../../../src/kernel/index.js'
import { recordValues } from '../../../src/stores/sql/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import type { ConformanceDomain } from '../../../src/testing/index.js'
import { libsqlStack } from '../callback/orms.js'
import { emptyDatabase, giveBack } from './emptied-database.js'
import type { OpenWorld } from './store-under-test.js'
import { makeTables, outboxDoor, putRecordText } from './tables.js'

const connections = 4
/** SQLite: one of them writes. */
const files = 3

/** A stack on a database: its domain, and how to end it. */
export type OpenStack = (
  url: string,
  defaults?: { readonly clock?: Clock },
) => Promise<{ readonly db: ConformanceDomain & { close(): Promise<void> }; close(): Promise<void> }>

interface Queries {
  query(text: string, values?: readonly unknown[]): Promise<unknown>
}

/** An empty database on the server, behind a stack that owns its transactions. */
export async function callbackWorld(serverUrl: string, open: OpenStack): Promise<OpenWorld> {
  const database = await emptyDatabase(serverUrl)
  const raw = new pg.Client({ connectionString: database.url })
  await raw.connect()
  const stacks = [await open(database.url)]
  const [{ db }] = stacks as [Awaited<ReturnType<OpenStack>>]
  return {
    db,
    connections,
    async second(defaults) {
      const stack = await open(database.url, defaults)
      stacks.push(stack)
      return stack.db
    },
    async effect(tx, intent) {
      await (tx as unknown as Queries).query('insert into effects values ($1)', [intent])
    },
    async offend(tx) {
      await (tx as unknown as Queries).query('select * from nowhere')
    },
    async effectsOf(intent) {
      const { rows } = await raw.query('select count(*)::int as n from effects where intent = $1', [intent])
      return rows[0].n
    },
    async putRecord(id, record) {
      await raw.query(
        putRecordText((position) => `$${position}`),
        [id, ...recordValues(record)],
      )
    },
    item: async (id) => (await raw.query('select * from items where id = $1', [id])).rows[0],
    async putItem({ id, state = 'new', amount = 0 }) {
      await raw.query('insert into items (id, state, amount) values ($1, $2, $3)', [id, state, amount])
    },
    ...outboxDoor(
      async (text, values) => (await raw.query(text, [...values])).rows,
      (position) => `$${position}`,
    ),
    async close() {
      for (const stack of stacks) {
        await stack.db.close()
        await stack.close()
      }
      await raw.end()
      await giveBack(database)
    },
  }
}

/** A fresh file of SQLite, behind a function that begins and commits on libsql. */
export async function sqliteCallbackWorld(): Promise<OpenWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-'))
  const file = join(folder, 'callback.db')
  const maker = sqlite({ name: 'maker', open: () => new Libsql(file) as unknown as SqliteHandle })
  await maker.migrate()
  await maker.close()
  const raw = new Libsql(file)
  raw.exec(makeTables)
  const stacks = [libsqlStack(file, files)]
  const [{ db }] = stacks as [ReturnType<typeof libsqlStack>]
  return {
    db,
    connections: 1,
    async second(defaults) {
      const stack = libsqlStack(file, files, defaults)
      stacks.push(stack)
      return stack.db
    },
    async effect(tx, intent) {
      await (tx as unknown as Queries).query('insert into effects values (?)', [intent])
    },
    async offend(tx) {
      await (tx as unknown as Queries).query('select * from nowhere')
    },
    effectsOf: async (intent) =>
      (raw.prepare('select count(*) as n from effects where intent = ?').get(intent) as { n: number }).n,
    async putRecord(id, record) {
      raw.prepare(putRecordText(() => '?')).run(id, ...recordValues(record))
    },
    item: async (id) => raw.prepare('select * from items where id = ?').get(id) as Record<string, unknown> | undefined,
    async putItem({ id, state = 'new', amount = 0 }) {
      raw.prepare('insert into items (id, state, amount) values (?, ?, ?)').run(id, state, amount)
    },
    ...outboxDoor(
      async (text, values) => {
        const statement = raw.prepare(text)
        if (text.startsWith('select')) return statement.all(...values) as unknown[]
        statement.run(...values)
        return []
      },
      () => '?',
    ),
    async close() {
      for (const stack of stacks) {
        await stack.db.close()
        await stack.close()
      }
      raw.close()
      rmSync(folder, { recursive: true })
    },
  }
}
