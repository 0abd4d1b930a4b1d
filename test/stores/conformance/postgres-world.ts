// PostgreSQL under the conformance suite, through `pg`, in a database of its own.

import pg from 'pg'
import type { Clock } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { recordValues } from '../../../src/stores/sql/index.js'
import { emptyDatabase, giveBack } from './emptied-database.js'
import type { OpenWorld } from './store-under-test.js'
import { outboxDoor, putRecordText } from './tables.js'

const connections = 4

/** An empty database on the server. */
export async function postgresWorld(serverUrl: string): Promise<OpenWorld> {
  const database = await emptyDatabase(serverUrl)
  const pools: pg.Pool[] = []
  const domain = (defaults: { readonly clock?: Clock } = {}) => {
    const pool = new pg.Pool({ connectionString: database.url, max: connections })
    pools.push(pool)
    return postgres({ name: 'postgres', pool, ...defaults })
  }
  const db = domain()
  const raw = new pg.Client({ connectionString: database.url })
  await raw.connect()
  type Handle = Parameters<Parameters<typeof db.transact>[0]>[0]
  return {
    db,
    connections,
    second: async (defaults) => domain(defaults),
    async effect(tx, intent) {
      await (tx as Handle).query('insert into effects values ($1)', [intent])
    },
    async offend(tx) {
      await (tx as Handle).query('select * from nowhere')
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
      for (const pool of pools) await pool.end()
      await raw.end()
      await giveBack(database)
    },
  }
}
