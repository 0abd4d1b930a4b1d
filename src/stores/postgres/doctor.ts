// What in a live server would weaken the promise, each with its fix: whether transactions hold on a connection of the
// pool at all, and then what every PostgreSQL is asked.

import type { Finding } from '../../atomicity/index.js'
import type { Clock } from '../../kernel/index.js'
import {
  examinePostgres,
  found,
  migrationFindings,
  postgresDialect,
  postgresFindings,
  postgresPatience,
} from '../sql/index.js'
import { signsOf } from './classification.js'
import { lastOf } from './handle.js'
import { migrationState, type PostgresSchema } from './migrations.js'
import type { PostgresPoolClient } from './options.js'
import { isStatementPooling } from './wire.js'

/** Looks at the server behind a connection. */
export async function doctor(
  client: PostgresPoolClient,
  schema: PostgresSchema,
  { clock, poolMost }: { readonly clock: Clock; readonly poolMost: number | undefined },
): Promise<readonly Finding[]> {
  if (!(await keepsTransactions(client))) return [found(postgresFindings, 'POOLING_BY_STATEMENT')]
  const { prefix, schema: schemaName, named } = schema
  const ask = async (text: string, values: readonly string[] = []) => (await client.query(text, [...values])).rows
  const tryOut = (text: string) => patiently(client, () => ask(text))
  const pepper = schema.plan.records?.pepper
  const settings = { prefix, schema: schemaName, named, pepper, clock, poolMost }
  const patient = { dialect: postgresDialect, ...settings, ask, tryOut, signsOf }
  return examinePostgres(patient, () => migrationsOf(client, schema))
}

// In a transaction that is rolled back: settings of the session would stay with whoever has it next behind a pooler.
async function patiently<Result>(client: PostgresPoolClient, work: () => Promise<Result>): Promise<Result> {
  const { lockMs, statementMs } = postgresPatience
  try {
    // A message of its own: the time of a message is measured by the limit that it began with.
    await client.query(`BEGIN; SET LOCAL lock_timeout = ${lockMs}; SET LOCAL statement_timeout = ${statementMs}`)
    return await work()
  } finally {
    await client.query('ROLLBACK').catch(() => undefined)
  }
}

// Two statements of one transaction must meet the same backend and the same transaction.
async function keepsTransactions(client: PostgresPoolClient): Promise<boolean> {
  try {
    const look = 'SELECT pg_backend_pid()::text || now()::text AS place'
    const first = lastOf(await client.query(`BEGIN; ${look}`)).rows[0]?.['place']
    const open = client.getTransactionStatus() === 'T'
    const second = (await client.query(look)).rows[0]?.['place']
    await client.query('ROLLBACK')
    return open && first === second
  } catch (error) {
    if (isStatementPooling(error)) return false
    throw error
  }
}

async function migrationsOf(client: PostgresPoolClient, schema: PostgresSchema): Promise<readonly Finding[]> {
  try {
    return migrationFindings(
      await patiently(client, () => migrationState(client, schema)),
      schema.plan.migrations.length,
      schema.plan.records?.pepper,
    )
  } catch (error) {
    if (!signsOf(error).includes('42501')) throw error
    return [found(postgresFindings, 'MIGRATIONS_UNREADABLE')]
  }
}
