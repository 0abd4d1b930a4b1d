// What in the live settings of a server would weaken the promise, each with its fix.

import type { Finding } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { signsOf } from './classification.js'
import { lastOf } from './handle.js'
import { migrationState, type PostgresSchema } from './migrations.js'
import type { PostgresPoolClient } from './options.js'

/** The settings that are looked at, as text; times in ms, 0 for switched off. */
export interface ServerSettings {
  /** As in 150004. */
  readonly version: number
  /** `on`, `off`, `local`, `remote_write`, `remote_apply`. */
  readonly synchronousCommit: string
  /** Whether commits are forced to the disk. */
  readonly fsync: boolean
  /** Whether pages are protected from being torn. */
  readonly fullPageWrites: boolean
  /** Names of standbys that COMMIT waits for, or empty. */
  readonly synchronousStandbys: string
  /** In ms. */
  readonly idleInTransactionMs: number
  /** In ms. */
  readonly statementTimeoutMs: number
  /** In ms; PostgreSQL 17. */
  readonly transactionTimeoutMs: number
  /** In seconds; 0: the system's, or none on a socket. */
  readonly keepalivesIdleSeconds: number
  /** Whether new transactions only read. */
  readonly readOnly: boolean
  /** Whether this is a standby. */
  readonly inRecovery: boolean
  /** The most connections of the pool; undefined: it does not say. */
  readonly poolMost: number | undefined
  /** The most connections of the server. */
  readonly serverMost: number
}

type Check = (settings: ServerSettings) => Finding | undefined

const checks: readonly Check[] = [
  ({ fsync }) =>
    fsync
      ? undefined
      : finding(
          'FSYNC_OFF',
          'broken',
          'fsync is off: a crash of the machine can lose or corrupt what was committed.',
          'Set fsync = on.',
        ),
  ({ synchronousCommit }) =>
    synchronousCommit === 'off'
      ? finding(
          'SYNCHRONOUS_COMMIT_OFF',
          'broken',
          'synchronous_commit is off: COMMIT is answered before it is on the disk, and a crash loses it.',
          'Set synchronous_commit = on, for this role or database at least.',
        )
      : undefined,
  ({ synchronousCommit, synchronousStandbys }) =>
    synchronousStandbys !== '' && (synchronousCommit === 'local' || synchronousCommit === 'remote_write')
      ? finding(
          'SYNCHRONOUS_COMMIT_LOCAL',
          'risk',
          `synchronous_commit is ${synchronousCommit}: COMMIT does not wait until a standby has it on its disk.`,
          'Set synchronous_commit = on if a failover must not lose commits.',
        )
      : undefined,
  ({ fullPageWrites }) =>
    fullPageWrites
      ? undefined
      : finding(
          'FULL_PAGE_WRITES_OFF',
          'risk',
          'full_page_writes is off: a crash can tear pages.',
          'Set full_page_writes = on, unless the file system prevents torn pages.',
        ),
  ({ inRecovery }) =>
    inRecovery
      ? finding(
          'IN_RECOVERY',
          'broken',
          'The server is a standby and cannot write.',
          'Connect to the primary: target_session_attrs, or the right host.',
        )
      : undefined,
  ({ readOnly, inRecovery }) =>
    readOnly && !inRecovery
      ? finding(
          'READ_ONLY_BY_DEFAULT',
          'broken',
          'default_transaction_read_only is on: writes are refused.',
          'Set default_transaction_read_only = off for this role.',
        )
      : undefined,
  ({ idleInTransactionMs }) =>
    idleInTransactionMs === 0
      ? finding(
          'IDLE_IN_TRANSACTION_UNLIMITED',
          'note',
          'idle_in_transaction_session_timeout is off: transactions of others that lost their client keep their locks. Reprise sets it for its own.',
          'Set idle_in_transaction_session_timeout for the database.',
        )
      : undefined,
  ({ keepalivesIdleSeconds }) =>
    keepalivesIdleSeconds === 0 || keepalivesIdleSeconds > 600
      ? finding(
          'KEEPALIVES_LATE',
          'risk',
          'A client that vanished is noticed late: the server probes idle connections after the system’s time, two hours by default on Linux.',
          'Set tcp_keepalives_idle = 60, tcp_keepalives_interval = 10, tcp_keepalives_count = 6.',
        )
      : undefined,
  ({ statementTimeoutMs }) =>
    statementTimeoutMs > 0
      ? finding(
          'STATEMENT_TIMEOUT_SET',
          'note',
          `statement_timeout is ${statementTimeoutMs} ms. It does not bound COMMIT, and Reprise sets it anew for each of its transactions.`,
          'Limit bodies with bodyLimit and deadline, or set it inside the body, above lockWait: a cancelled statement is not repeated.',
        )
      : undefined,
  ({ transactionTimeoutMs }) =>
    transactionTimeoutMs > 0
      ? finding(
          'TRANSACTION_TIMEOUT_SET',
          'note',
          `transaction_timeout is ${transactionTimeoutMs} ms: a longer transaction is ended by the server, and not repeated.`,
          'Keep it above the deadline of the domain.',
        )
      : undefined,
  ({ version }) =>
    version < 130_000
      ? finding(
          'SERVER_OLD',
          'broken',
          'The server is older than PostgreSQL 13 and lacks pg_current_xact_id.',
          'Upgrade the server.',
        )
      : undefined,
  ({ poolMost }) =>
    poolMost === 1
      ? finding(
          'POOL_OF_ONE',
          'risk',
          'The pool has one connection: nothing can be resolved or reported while it is in use.',
          'Give the pool at least two connections.',
        )
      : undefined,
  ({ poolMost, serverMost }) =>
    poolMost !== undefined && poolMost > serverMost
      ? finding(
          'POOL_OVER_SERVER',
          'risk',
          `The pool may open ${poolMost} connections, and the server takes ${serverMost}.`,
          'Lower max of the pool, or raise max_connections.',
        )
      : undefined,
]

/** What settings mean. Pure. */
export function findingsOf(settings: ServerSettings): readonly Finding[] {
  return checks.flatMap((check) => check(settings) ?? [])
}

/** Looks at the server behind a connection. */
export async function examinePostgres(
  client: PostgresPoolClient,
  schema: PostgresSchema,
  poolMost: number | undefined,
): Promise<readonly Finding[]> {
  const pooling = await poolingFinding(client)
  if (pooling !== undefined) return [pooling]
  const settings = await readSettings(client, poolMost)
  const migrations = await migrationFindings(client, schema)
  const tables = migrations.length === 0 ? await tableFindings(client, schema) : []
  return [...findingsOf(settings), ...migrations, ...tables]
}

// Two statements of one transaction must meet the same backend and the same transaction.
async function poolingFinding(client: PostgresPoolClient): Promise<Finding | undefined> {
  try {
    const look = 'SELECT pg_backend_pid()::text || now()::text AS place'
    const first = lastOf(await client.query(`BEGIN; ${look}`)).rows[0]?.['place']
    const open = client.getTransactionStatus() === 'T'
    const second = (await client.query(look)).rows[0]?.['place']
    await client.query('ROLLBACK')
    return open && first === second ? undefined : statementPooling
  } catch (error) {
    if (error instanceof Error && /statement pooling/i.test(error.message)) return statementPooling
    throw error
  }
}

const statementPooling: Finding = finding(
  'POOLING_BY_STATEMENT',
  'broken',
  'A pooler hands out connections by the statement, so no transaction can hold.',
  'Set the pooler to transaction or session pooling.',
)

async function readSettings(client: PostgresPoolClient, poolMost: number | undefined): Promise<ServerSettings> {
  const { rows } = await client.query(
    `SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names',
      'idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout', 'tcp_keepalives_idle', 'default_transaction_read_only', 'in_hot_standby', 'max_connections')
     UNION ALL SELECT 'recovery', pg_is_in_recovery()::text`,
  )
  const values = new Map(rows.map((row) => [String(row['name']), String(row['setting'])]))
  const number = (name: string): number => Number(values.get(name) ?? 0)
  return {
    version: number('server_version_num'),
    synchronousCommit: values.get('synchronous_commit') ?? '',
    fsync: values.get('fsync') === 'on',
    fullPageWrites: values.get('full_page_writes') === 'on',
    synchronousStandbys: values.get('synchronous_standby_names') ?? '',
    idleInTransactionMs: number('idle_in_transaction_session_timeout'),
    statementTimeoutMs: number('statement_timeout'),
    transactionTimeoutMs: number('transaction_timeout'),
    keepalivesIdleSeconds: number('tcp_keepalives_idle'),
    readOnly: values.get('default_transaction_read_only') === 'on',
    inRecovery: values.get('recovery') === 'true',
    poolMost,
    serverMost: number('max_connections'),
  }
}

async function migrationFindings(client: PostgresPoolClient, schema: PostgresSchema): Promise<readonly Finding[]> {
  const known = schema.plan.migrations.length
  try {
    const applied = (await migrationState(client, schema))?.applied
    if (applied === known) return []
    if (applied !== undefined && applied > known) {
      const what = `A newer version has brought Reprise’s tables to migration ${applied}; this version knows ${known}, and works with them.`
      return [finding('MIGRATIONS_NEWER', 'note', what, 'Nothing: a deployment can be rolled back to this version.')]
    }
    const what =
      applied === undefined
        ? 'Reprise’s tables are not there.'
        : `Reprise’s tables are at migration ${applied} of ${known}.`
    return [finding('MIGRATIONS_MISSING', 'broken', what, 'Call migrate(), or run what migrationSql() prints.')]
  } catch (error) {
    if (error instanceof RepriseError && error.code === 'MIGRATION_NEWER') {
      return [finding('MIGRATIONS_NEWER', 'broken', error.message, 'Upgrade the code.')]
    }
    if (!signsOf(error).includes('42501')) throw error
    return [
      finding(
        'MIGRATIONS_UNREADABLE',
        'broken',
        'The role may not read Reprise’s tables.',
        'Grant the role rights on them.',
      ),
    ]
  }
}

// What the migrations made, as it is now: somebody may have changed it since.
async function tableFindings(client: PostgresPoolClient, schema: PostgresSchema): Promise<readonly Finding[]> {
  const { rows } = await client.query(lookAtTables, [schema.schema, schema.prefix])
  const row = rows[0] ?? {}
  const found: Finding[] = []
  const missing = String(row['missing'] ?? '')
  if (missing !== '') {
    const what = `Of what the migrations made, this is missing: ${missing}.`
    found.push(finding('TABLES_INCOMPLETE', 'broken', what, 'Make it again as migrationSql() prints it.'))
  }
  if (row['keyed'] !== 'true') {
    const what = 'The table of markers has no valid primary key on id: two calls with one key would both run.'
    found.push(finding('PRIMARY_KEY_MISSING', 'broken', what, 'Remove duplicates, then add PRIMARY KEY (id).'))
  }
  if (row['unlogged'] === 'true') {
    const what = 'A table or the sequence of Reprise is UNLOGGED: a crash empties it, and keys are forgotten.'
    found.push(finding('TABLES_UNLOGGED', 'broken', what, 'ALTER TABLE … SET LOGGED, for each of them.'))
  }
  if (row['forbidden'] === 'true') {
    const what = 'The role may not select, insert, update and delete in all of Reprise’s tables, or not use the fence.'
    found.push(finding('RIGHTS_MISSING', 'broken', what, 'Grant the role these rights.'))
  }
  if (row['unvacuumed'] === 'true') {
    const what = 'Autovacuum is off for the table of markers: it grows with each claim, and its indexes with it.'
    found.push(finding('AUTOVACUUM_OFF', 'risk', what, 'Set autovacuum = on, and RESET (autovacuum_enabled).'))
  }
  return found
}

const lookAtTables = `WITH made AS (
    SELECT $2 || name AS name, kind FROM (VALUES ('marker', 'r'), ('audit', 'r'), ('fence', 'S'),
      ('marker_due', 'i'), ('marker_expires', 'i'), ('audit_id', 'i'), ('audit_at', 'i')) AS v(name, kind)),
  there AS (SELECT c.*, made.kind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN made ON made.name = c.relname AND c.relkind::text IN (made.kind, 'p', 'I') WHERE n.nspname = $1)
  SELECT (SELECT string_agg(name, ', ' ORDER BY name) FROM made WHERE name NOT IN (SELECT relname FROM there)) AS missing,
    EXISTS (SELECT FROM pg_index i JOIN there t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = t.oid
      WHERE t.relname = $2 || 'marker' AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
        AND i.indkey[0] = a.attnum AND a.attname = 'id')::text AS keyed,
    coalesce((SELECT bool_or(relpersistence = 'u') FROM there), false)::text AS unlogged,
    coalesce((SELECT bool_or(CASE kind WHEN 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') WHEN 'r' THEN
      NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
        AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) END) FROM there
      WHERE relname <> $2 || 'audit' OR NOT has_table_privilege(oid, 'INSERT')), false)::text AS forbidden,
    (current_setting('autovacuum') = 'off' OR EXISTS (SELECT FROM there, unnest(reloptions) AS o(option)
      WHERE relname = $2 || 'marker' AND option IN ('autovacuum_enabled=false', 'autovacuum_enabled=off')))::text AS unvacuumed`

function finding(code: string, severity: Finding['severity'], what: string, fix: string): Finding {
  return { code, severity, what, fix }
}
