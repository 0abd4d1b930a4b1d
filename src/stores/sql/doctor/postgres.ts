// What can be wrong with a PostgreSQL database, asked for by statements alone: its settings, its standbys, its tables.

import { codesIn, type Finding } from '../../../atomicity/index.js'
import { markerName } from '../records/statements.js'
import { found, postgresFindings, sharedFindings } from './findings.js'
import {
  clocksApartMs,
  fenceFindings,
  foundOr,
  type Judge,
  type Patient,
  partFindings,
  partNames,
  partsOf,
  upkeepFindings,
  writeFindings,
} from './patient.js'

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
  /** The standbys that are connected and count as synchronous; undefined: the role may not see it. */
  readonly standbysConnected: number | undefined
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

type Code = keyof typeof postgresFindings

/** Whether a finding is there, or what was seen of it. */
const checks: Readonly<Partial<Record<Code, (settings: ServerSettings) => boolean | string>>> = {
  FSYNC_OFF: ({ fsync }) => !fsync,
  SYNCHRONOUS_COMMIT_OFF: ({ synchronousCommit }) => synchronousCommit === 'off',
  SYNCHRONOUS_COMMIT_LOCAL: ({ synchronousCommit, synchronousStandbys }) =>
    synchronousStandbys !== '' &&
    (synchronousCommit === 'local' || synchronousCommit === 'remote_write') &&
    `synchronous_commit is ${synchronousCommit}.`,
  STANDBY_ABSENT: (settings) => {
    const { standbysConnected: connected } = settings
    const waitedFor = standbysWaitedFor(settings)
    return connected !== undefined && connected < waitedFor && `${connected} of ${waitedFor} are connected.`
  },
  STANDBYS_UNREADABLE: (settings) => settings.standbysConnected === undefined && standbysWaitedFor(settings) > 0,
  FULL_PAGE_WRITES_OFF: ({ fullPageWrites }) => !fullPageWrites,
  IN_RECOVERY: ({ inRecovery }) => inRecovery,
  READ_ONLY_BY_DEFAULT: ({ readOnly, inRecovery }) => readOnly && !inRecovery,
  IDLE_IN_TRANSACTION_UNLIMITED: ({ idleInTransactionMs }) => idleInTransactionMs === 0,
  KEEPALIVES_LATE: ({ keepalivesIdleSeconds }) => keepalivesIdleSeconds === 0 || keepalivesIdleSeconds > 600,
  STATEMENT_TIMEOUT_SET: ({ statementTimeoutMs }) => statementTimeoutMs > 0 && `It is ${statementTimeoutMs} ms.`,
  TRANSACTION_TIMEOUT_SET: ({ transactionTimeoutMs }) =>
    transactionTimeoutMs > 0 && `It is ${transactionTimeoutMs} ms.`,
  SERVER_OLD: ({ version }) => version < 130_000,
  POOL_OF_ONE: ({ poolMost }) => poolMost === 1,
  POOL_OVER_SERVER: ({ poolMost, serverMost }) =>
    poolMost !== undefined && poolMost > serverMost && `It may open ${poolMost}, and the server takes ${serverMost}.`,
}

/** For how many standbys COMMIT waits; `FIRST 2 (a, b, c)`, `ANY 2 (…)`, `2 (…)`, or a list, of which one is enough. */
function standbysWaitedFor({ synchronousStandbys, synchronousCommit, inRecovery }: ServerSettings): number {
  if (synchronousStandbys.trim() === '' || inRecovery || ['off', 'local'].includes(synchronousCommit)) return 0
  return Number(/^\s*(?:(?:first|any)\s+)?(\d+)\s*\(/i.exec(synchronousStandbys)?.[1] ?? 1)
}

/** What settings mean. Pure. */
export function settingFindings(settings: ServerSettings): readonly Finding[] {
  return Object.entries(checks).flatMap(([code, check]) => {
    const seen = check(settings)
    if (seen === false) return []
    return [found(postgresFindings, code as Code, seen === true ? undefined : seen)]
  })
}

/** What the doctor waits for at most, in ms. */
export const postgresPatience = {
  /** The lock of a table: longer than others hold it who only work there. */
  lockMs: 2_000,
  /** One statement on a table. */
  statementMs: 5_000,
  /** All answers together. */
  wholeMs: 10_000,
} as const

/** What is known of the database besides. */
export interface PostgresPatient extends Patient {
  /** The same, for at most {@link postgresPatience}; the answer is its rows. All that touches a table is asked so. */
  tryOut(text: string): ReturnType<Patient['ask']>
  /** The schema of Reprise's tables. */
  readonly schema: string
  /** The most connections of the pool; undefined: it does not say. */
  readonly poolMost: number | undefined
}

/**
 * Looks at the server, and at the tables where `migrations` found nothing broken. Every question is a statement of its
 * own, and the only one that writes is rolled back.
 */
export async function examinePostgres(
  patient: PostgresPatient,
  migrations: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const settings = await readSettings(patient)
  const findings = [...settingFindings(settings)]
  if (!settings.inRecovery) findings.push(...(await timelineFindings(patient)))
  const apartMs = await clocksApartMs(patient)
  if (apartMs !== 0) {
    const seen = `The server is ${Math.abs(apartMs)} ms ${apartMs > 0 ? 'ahead' : 'behind'}, at least.`
    findings.push(found(postgresFindings, 'CLOCKS_APART', seen))
  }
  const held: Judge = (error) => lockFinding(patient, error)
  const tables = await foundOr(held, migrations)
  findings.push(...tables)
  if (tables.every(({ code }) => code === 'MIGRATIONS_AHEAD')) findings.push(...(await tableFindings(patient)))
  if (findings.some(({ code }) => unwritable.has(code))) return findings
  return [...findings, ...(await foundOr(held, () => writeFindings(patient, noise, { full: '53100', refusal })))]
}

// Not where the connection or the server ended, and not where a lock was waited for.
function refusal(error: unknown): string | undefined {
  const { sqlState } = codesIn(error)
  return sqlState === undefined || /^(?:08|57P|55P03)/.test(sqlState) ? undefined : sqlState
}

function lockFinding({ signsOf }: PostgresPatient, error: unknown): Finding | undefined {
  if (!signsOf(error).includes('55P03')) return undefined
  return found(postgresFindings, 'TABLES_LOCKED', `It was waited for ${postgresPatience.lockMs} ms.`)
}

/** Where these are found, an attempt to write says nothing more. */
const unwritable: ReadonlySet<string> = new Set<Code | keyof typeof sharedFindings>([
  'IN_RECOVERY',
  'READ_ONLY_BY_DEFAULT',
  'MIGRATIONS_MISSING',
  'MIGRATIONS_NEWER',
  'MIGRATIONS_UNREADABLE',
  'PEPPER_MISMATCH',
  'TABLES_INCOMPLETE',
  'TABLES_LOCKED',
  'RIGHTS_MISSING',
])

// Text that does not become much smaller where it is stored compressed.
const noise = `(SELECT string_agg(md5(n::text), '') FROM generate_series(1, $bytes / 32) AS n)`

async function readSettings({ ask, poolMost }: PostgresPatient): Promise<ServerSettings> {
  const rows = await ask(
    `SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names',
      'idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout', 'tcp_keepalives_idle', 'default_transaction_read_only', 'max_connections')
     UNION ALL SELECT 'recovery', pg_is_in_recovery()::text
     UNION ALL SELECT 'standbys', count(*)::text FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')
     UNION ALL SELECT 'unseen', count(*)::text FROM pg_stat_replication WHERE sync_state IS NULL`,
  )
  const values = new Map(rows.map((row) => [String(row['name']), String(row['setting'])]))
  const number = (name: string): number => Number(values.get(name) ?? 0)
  return {
    version: number('server_version_num'),
    synchronousCommit: values.get('synchronous_commit') ?? '',
    fsync: values.get('fsync') === 'on',
    fullPageWrites: values.get('full_page_writes') === 'on',
    synchronousStandbys: values.get('synchronous_standby_names') ?? '',
    // Whoever may not see them still sees that there is one.
    standbysConnected: number('unseen') > 0 ? undefined : number('standbys'),
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

/** Where the server stands; only a role that may ask for both can be kept from an old primary. */
async function timelineFindings({ ask, signsOf }: PostgresPatient): Promise<readonly Finding[]> {
  try {
    await ask('SELECT pg_walfile_name(pg_current_wal_lsn()), (SELECT system_identifier::text FROM pg_control_system())')
    return []
  } catch (error) {
    if (!signsOf(error).includes('42501')) throw error
    return [found(postgresFindings, 'TIMELINE_UNREADABLE')]
  }
}

// What the migrations made, as it is now: somebody may have changed it since.
async function tableFindings(patient: PostgresPatient): Promise<readonly Finding[]> {
  const { ask, prefix, schema, named } = patient
  const parts = partsOf(await ask(lookAtParts, [schema, JSON.stringify(partNames(patient))]))
  const findings = [...partFindings(patient, parts)]
  const marker = prefix + markerName(patient.pepper?.id)
  if (!parts.has(marker)) return findings
  const [row = {}] = await ask(lookAtTables, [schema, prefix, marker])
  if (row['keyed'] !== 'true') findings.push(found(sharedFindings, 'PRIMARY_KEY_MISSING'))
  if (row['interfered'] === 'true') findings.push(found(sharedFindings, 'TRIGGERS_PRESENT'))
  const states = {
    unlogged: 'TABLES_UNLOGGED',
    forbidden: 'RIGHTS_MISSING',
    unvacuumed: 'AUTOVACUUM_OFF',
  } as const
  for (const [column, code] of Object.entries(states)) {
    if (row[column] === 'true') findings.push(found(postgresFindings, code))
  }
  if (findings.some(({ code }) => code === 'TABLES_INCOMPLETE' || code === 'RIGHTS_MISSING')) return findings
  const last = `coalesce(pg_sequence_last_value('${named('fence')}'), 0)`
  const patiently = { ...patient, ask: patient.tryOut }
  const contents = await foundOr(
    (error) => lockFinding(patient, error),
    async () => [...(await fenceFindings(patiently, last)), ...(await upkeepFindings(patiently))],
  )
  return [...findings, ...contents]
}

const lookAtParts = `SELECT c.relname::text AS name, a.attname::text AS column FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE n.nspname = $1 AND c.relname IN (SELECT json_array_elements_text($2::json))`

const lookAtTables = `WITH there AS (SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname IN ($3, $2 || 'audit', $2 || 'fence', $2 || 'window', $2 || 'seen', $2 || 'sequence')),
  marker AS (SELECT * FROM there WHERE relname = $3)
  SELECT EXISTS (SELECT FROM pg_index i JOIN marker t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = t.oid
      WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
        AND i.indkey[0] = a.attnum AND a.attname = 'id')::text AS keyed,
    coalesce((SELECT bool_or(relpersistence = 'u') FROM there), false)::text AS unlogged,
    coalesce((SELECT bool_or(CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') ELSE
      NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
        AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) END) FROM there
      WHERE relname <> $2 || 'audit' OR NOT has_table_privilege(oid, 'INSERT')), false)::text AS forbidden,
    (EXISTS (SELECT FROM there WHERE relrowsecurity)
      OR EXISTS (SELECT FROM pg_trigger t JOIN there ON there.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgenabled <> 'D')
      OR EXISTS (SELECT FROM pg_rewrite r JOIN there ON there.oid = r.ev_class))::text AS interfered,
    (current_setting('autovacuum') = 'off' OR EXISTS (SELECT FROM marker, unnest(reloptions) AS o(option)
      WHERE option IN ('autovacuum_enabled=false', 'autovacuum_enabled=off')))::text AS unvacuumed`
