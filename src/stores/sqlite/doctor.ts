// What could go wrong with a file of SQLite, found before it does.

import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Finding } from '../../atomicity/index.js'
import { schemaState } from '../sql/index.js'
import { type Connections, pragma } from './connection/connections.js'
import { isBusy, rowsOf, type SqliteHandle } from './connection/driver.js'
import { targetOf } from './migrate.js'
import { sqliteMigrations } from './migrations.js'

/** What the doctor looks at. */
interface Patient {
  readonly connections: Connections
  readonly prefix: string
}

const connectionWaitMs = 2_000
const oldestSqlite = [3, 35, 0] as const
const largeLogBytes = 64 * 1024 * 1024

// Magic numbers of statfs(2).
const networkFileSystems: Readonly<Record<number, string>> = {
  26985: 'nfs',
  20859: 'smb',
  4283649346: 'cifs',
  4266872130: 'smb2',
  16914839: '9p',
  1397113167: 'afs',
  12805120: 'ceph',
}

/** Looks at file, settings, lock and tables. Throws only where no connection can be had. */
export async function doctor({ connections, prefix }: Patient): Promise<readonly Finding[]> {
  const taken = await connections.take({ waitMs: connectionWaitMs, readOnly: false })
  let fate: 'keep' | 'drop' = 'drop'
  try {
    const { handle } = taken
    const findings = [...settingsOf(handle), ...lockOf(handle), ...(await tablesOf(handle, prefix))]
    const [main] = rowsOf(handle.prepare('PRAGMA database_list'), [])
    findings.push(...(await placeOf(String(main?.['file'] ?? ''))))
    fate = 'keep'
    return findings
  } finally {
    taken.giveBack(fate)
  }
}

function settingsOf(handle: SqliteHandle): Finding[] {
  const findings: Finding[] = []
  const mode = pragma(handle, 'journal_mode')
  if (mode !== 'wal') {
    findings.push({
      code: 'journal-mode',
      severity: 'risk',
      what: `The journal mode is ${String(mode)}, not wal: readers hold up COMMIT, and writers hold up readers.`,
      fix: 'Let the factory open a file on a local disk, with a driver that has WAL, and do not change journal_mode.',
    })
  }
  const synchronous = Number(pragma(handle, 'synchronous'))
  if (synchronous < 2) {
    findings.push({
      code: 'synchronous',
      severity: 'broken',
      what: `synchronous is ${synchronous}: a commit that was answered can be lost with the power.`,
      fix: 'Use a driver that lets synchronous be FULL.',
    })
  }
  const busyMs = Number(pragma(handle, 'busy_timeout'))
  if (busyMs !== 0) {
    findings.push({
      code: 'busy-timeout',
      severity: 'risk',
      what: `busy_timeout is ${busyMs} ms: while the driver waits for a lock, the event loop stands still.`,
      fix: 'Leave busy_timeout at 0; Reprise waits without holding up the event loop.',
    })
  }
  const version = String(rowsOf(handle.prepare('SELECT sqlite_version() AS version'), [])[0]?.['version'])
  if (isOlder(version)) {
    findings.push({
      code: 'version',
      severity: 'broken',
      what: `SQLite ${version} has no RETURNING.`,
      fix: `Use a driver with SQLite ${oldestSqlite.join('.')} or newer.`,
    })
  }
  return findings
}

function lockOf(handle: SqliteHandle): Finding[] {
  try {
    handle.exec('BEGIN IMMEDIATE')
    handle.exec('ROLLBACK')
    return []
  } catch (error) {
    if (!isBusy(error)) throw error
    return [
      {
        code: 'locked',
        severity: 'note',
        what: 'Somebody outside of this store holds the lock of the file at this moment.',
        fix: 'Nothing, if it passes. If it stays, find the other process: writers wait for it, at most lockWait each.',
      },
    ]
  }
}

async function tablesOf(handle: SqliteHandle, prefix: string): Promise<Finding[]> {
  const plan = sqliteMigrations(prefix)
  const known = plan.migrations.length
  const there = rowsOf(handle.prepare('SELECT 1 AS there FROM sqlite_schema WHERE name = ?'), [`${prefix}migration`])
  const { applied, needed } = there.length === 0 ? { applied: 0, needed: 0 } : await schemaState(targetOf(handle), plan)
  if (applied === known) return []
  if (applied < known) {
    return [
      {
        code: 'migration-missing',
        severity: 'broken',
        what: `The tables are at migration ${applied}; this version needs ${known}.`,
        fix: 'Call migrate(), or run migrationSql().',
      },
    ]
  }
  const broken = needed > known
  const what = `A newer version has brought the tables to migration ${applied}; this version knows ${known}`
  return [
    {
      code: 'migration-newer',
      severity: broken ? 'broken' : 'note',
      what: broken ? `${what}.` : `${what}, and works with them.`,
      fix: broken
        ? `Deploy a version that knows migration ${needed} or a later one.`
        : 'Nothing: a deployment can be rolled back to this version.',
    },
  ]
}

async function placeOf(file: string): Promise<Finding[]> {
  const findings: Finding[] = []
  const { type } = await statfs(dirname(file))
  const network = networkFileSystems[Number(type) >>> 0]
  if (network !== undefined) {
    findings.push({
      code: 'network-file-system',
      severity: 'broken',
      what: `The file lies on a network file system (${network}): WAL needs memory shared by one machine, and locks there are not reliable.`,
      fix: 'Move the file to a local disk, or use a database with a server.',
    })
  }
  const log = await stat(`${file}-wal`).catch(() => undefined)
  if (log !== undefined && log.size > largeLogBytes) {
    findings.push({
      code: 'log-size',
      severity: 'risk',
      what: `The log has ${log.size} bytes: something keeps it from being written back.`,
      fix: 'End transactions that read for long, here and in other processes.',
    })
  }
  return findings
}

function isOlder(version: string): boolean {
  const parts = version.split('.').map(Number)
  const [major = 0, minor = 0] = parts
  return major < oldestSqlite[0] || (major === oldestSqlite[0] && minor < oldestSqlite[1])
}
