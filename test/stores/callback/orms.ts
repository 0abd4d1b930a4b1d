// Two stacks that own their transactions, each as a callback domain: TypeORM, and a wrapper around `pg` as many
// programs have one.

import Libsql from 'libsql'
import pg from 'pg'
import { DataSource, type EntityManager, EntitySchema } from 'typeorm'
import type { Isolation } from '../../../src/atomicity/index.js'
import { type CallbackDomain, type CallbackOptions, callback } from '../../../src/stores/callback/index.js'

/** A row that TypeORM stores. */
export interface Payment {
  id: string
  intent: string
}

/** The table `payment`, as TypeORM knows it. */
export const paymentEntity: EntitySchema<Payment> = new EntitySchema<Payment>({
  name: 'payment',
  columns: { id: { type: 'text', primary: true }, intent: { type: 'text' } },
})

// Limits that no machine is too busy for; whoever is about a limit sets its own.
const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' } as const

const levels = {
  'read-committed': 'READ COMMITTED',
  'repeatable-read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
} as const satisfies Record<Isolation, string>

/** What differs from one test to the other. */
export type More<Tx> = Partial<CallbackOptions<Tx>>

/** A stack and its domain. */
export interface Stack<Tx> {
  readonly db: CallbackDomain<Tx>
  close(): Promise<void>
}

/** TypeORM on a database. */
export async function typeormStack(
  url: string,
  more: More<EntityManager> = {},
): Promise<Stack<EntityManager> & { readonly source: DataSource }> {
  const poolSize = more.connections ?? 4
  const source = new DataSource({
    type: 'postgres',
    url,
    entities: [paymentEntity],
    poolSize,
    poolErrorHandler: () => undefined,
  })
  await source.initialize()
  const db = callback<EntityManager>({
    name: 'typeorm',
    ...patient,
    dialect: 'postgres',
    connections: poolSize,
    transaction: (work, { isolation }) => source.transaction(levels[isolation], work),
    async query({ queryRunner }, text, values) {
      const { records, affected } = (await queryRunner?.query(text, values, true)) ?? {}
      return { rows: records ?? [], rowCount: affected }
    },
    ...more,
  })
  return { db, source, close: () => source.destroy() }
}

/** A function around a pool of `pg`, which knows nothing of Reprise. */
export async function inTransaction<Result>(
  pool: pg.Pool,
  level: string,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  client.on('error', ignore)
  let broken: Error | undefined
  try {
    await client.query(`BEGIN ISOLATION LEVEL ${level}`)
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch((reason: Error) => {
      broken = reason
    })
    throw error
  } finally {
    client.removeListener('error', ignore)
    client.release(broken)
  }
}

const ignore = (): void => undefined

/** The wrapper as a domain. */
export function pgStack(
  url: string,
  more: More<pg.PoolClient> = {},
): Stack<pg.PoolClient> & { readonly pool: pg.Pool } {
  const max = more.connections ?? 4
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', ignore)
  const db = callback<pg.PoolClient>({
    name: 'pg',
    ...patient,
    dialect: 'postgres',
    connections: max,
    transaction: (work, { isolation }) => inTransaction(pool, levels[isolation], work),
    // Without a count of rows, as an ORM may be.
    query: async (client, text, values) => ({ rows: (await client.query(text, values)).rows }),
    ...more,
  })
  return { db, pool, close: () => pool.end() }
}

/** A function around a few connections of libsql. */
export function libsqlStack(
  file: string,
  connections: number,
  more: More<Libsql.Database> = {},
): Stack<Libsql.Database> {
  const all = Array.from({ length: connections }, () => {
    const connection = new Libsql(file)
    connection.exec('PRAGMA busy_timeout = 0')
    return connection
  })
  const idle = [...all]
  const db = callback<Libsql.Database>({
    name: 'libsql',
    dialect: 'sqlite',
    connections,
    async transaction(work, { readOnly }) {
      const connection = idle.pop()
      if (connection === undefined) throw new Error('more transactions than connections')
      try {
        connection.exec(readOnly ? 'BEGIN' : 'BEGIN IMMEDIATE')
        await work(connection)
        connection.exec('COMMIT')
      } finally {
        if (connection.inTransaction) connection.exec('ROLLBACK')
        idle.push(connection)
      }
    },
    async query(connection, text, values) {
      const statement = connection.prepare(text)
      if (statement.reader) return { rows: statement.all(values) as Record<string, unknown>[] }
      return { rows: [], rowCount: statement.run(values).changes }
    },
    ...more,
  })
  return {
    db,
    async close() {
      for (const connection of all) connection.close()
    },
  }
}
