// What can be wrong with a file of SQLite: what statements tell, and what the file system tells of the file.

import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Finding } from '../../../atomicity/index.js'
import { isBusySign } from '../dialects/sqlite-lock.js'
import { markerName } from '../records/statements.js'
import { found, sharedFindings, sqliteFindings } from './findings.js'
import {
  fenceFindings,
  type Patient,
  partFindings,
  partNames,
  partsOf,
  upkeepFindings,
  writeFindings,
} from './patient.js'

/** What is known of the file besides. */
export interface SqlitePatient extends Patient {
  /** Whether the connection is Reprise's own, which waits for locks by itself. */
  readonly ownConnection: boolean
}

const oldestSqlite = [3, 35] as const
const mebibyte = 1024 * 1024
const largeLogBytes = 64 * mebibyte
/** Less is no room at all: the log and its index need as much to begin with. */
const leastRoomBytes = mebibyte
/** As much as the log may need before it is written back. */
const scarceRoomBytes = largeLogBytes
/** A larger file is not read as a whole: meanwhile nothing else runs in this process. */
const mostCheckedBytes = 256 * mebibyte
/** Used up to this share, `max_page_count` is near. */
const nearlyAll = 0.9

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

/** What errors of the file itself are, by their signs. */
const fileErrors = {
  SQLITE_CANTOPEN: 'FILE_UNOPENED',
  SQLITE_PERM: 'FILE_UNOPENED',
  SQLITE_READONLY: 'FILE_READ_ONLY',
  SQLITE_CORRUPT: 'FILE_CORRUPT',
  SQLITE_NOTADB: 'FILE_CORRUPT',
} as const

/** What an error says about the file; undefined: nothing, it is another kind of error. */
export function fileFinding(signs: readonly string[]): Finding | undefined {
  const sign = signs.find((name) => Object.hasOwn(fileErrors, name))
  if (sign === undefined) return undefined
  return found(sqliteFindings, fileErrors[sign as keyof typeof fileErrors], `The answer was ${sign}.`)
}

/** Looks at the file, and at the tables where `migrations` found nothing broken. What it writes it rolls back. */
export async function examineSqlite(
  patient: SqlitePatient,
  migrations: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  try {
    findings.push(...(await settingFindings(patient)), ...(await contentFindings(patient)))
    const tables = await migrations()
    findings.push(...tables)
    if (tables.every(({ code }) => code === 'MIGRATIONS_AHEAD')) findings.push(...(await tableFindings(patient)))
    findings.push(...(await trialFindings(patient, findings)))
  } catch (error) {
    const finding = fileFinding(patient.signsOf(error))
    if (finding === undefined) throw error
    findings.push(finding)
  }
  const [main] = await patient.ask('PRAGMA database_list')
  const file = String(main?.['file'] ?? '')
  return file === '' ? findings : [...findings, ...(await placeFindings(file, findings))]
}

async function pragma({ ask }: Patient, name: string): Promise<unknown> {
  const [row] = await ask(`PRAGMA ${name}`)
  return row === undefined ? undefined : Object.values(row)[0]
}

async function settingFindings(patient: SqlitePatient): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const mode = String(await pragma(patient, 'journal_mode'))
  if (mode !== 'wal') findings.push(found(sqliteFindings, 'JOURNAL_NOT_WAL', `It is ${mode}.`))
  const synchronous = Number(await pragma(patient, 'synchronous'))
  if (synchronous < 2) findings.push(found(sqliteFindings, 'SYNCHRONOUS_NOT_FULL', `It is ${synchronous}.`))
  const busyMs = Number(await pragma(patient, 'busy_timeout'))
  // Whoever else owns the connection may want to wait in its way.
  if (busyMs !== 0 && patient.ownConnection) {
    findings.push(found(sqliteFindings, 'BUSY_TIMEOUT_SET', `It is ${busyMs} ms.`))
  }
  const [version] = await patient.ask('SELECT sqlite_version() AS version')
  const text = String(version?.['version'])
  if (isOlder(text)) findings.push(found(sqliteFindings, 'SQLITE_OLD', `It is ${text}.`))
  return findings
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < oldestSqlite[0] || (major === oldestSqlite[0] && minor < oldestSqlite[1])
}

// Whether the file is whole, and how much of what it may have it uses.
async function contentFindings(patient: SqlitePatient): Promise<readonly Finding[]> {
  const pages = Number(await pragma(patient, 'page_count'))
  const most = Number(await pragma(patient, 'max_page_count'))
  const findings: Finding[] = []
  if (pages >= most * nearlyAll) {
    findings.push(found(sqliteFindings, 'DISK_NEARLY_FULL', `The file has ${pages} pages, and may have ${most}.`))
  }
  if (pages * Number(await pragma(patient, 'page_size')) > mostCheckedBytes) {
    return [...findings, found(sqliteFindings, 'FILE_UNCHECKED')]
  }
  const told = String(await pragma(patient, 'quick_check(1)'))
  return told === 'ok' ? findings : [...findings, found(sqliteFindings, 'FILE_CORRUPT', `SQLite says: ${told}.`)]
}

// What the migrations made, as it is now: somebody may have changed it since.
async function tableFindings(patient: SqlitePatient): Promise<readonly Finding[]> {
  const { ask, prefix, named } = patient
  const parts = partsOf(await ask(lookAtParts, [JSON.stringify(partNames(patient))]))
  const findings = [...partFindings(patient, parts)]
  const marker = prefix + markerName(patient.pepper?.id)
  if (!parts.has(marker)) return findings
  const [row] = await ask(lookAtTables, [
    marker,
    marker,
    ...['audit', 'fence', 'window', 'seen', 'sequence'].map((table) => prefix + table),
  ])
  if (Number(row?.['keyed']) === 0) findings.push(found(sharedFindings, 'PRIMARY_KEY_MISSING'))
  if (Number(row?.['triggers']) > 0) findings.push(found(sharedFindings, 'TRIGGERS_PRESENT'))
  if (findings.some(({ code }) => code === 'TABLES_INCOMPLETE')) return findings
  const [fence] = await ask(`SELECT count(*) AS rows FROM ${named('fence')}`)
  if (Number(fence?.['rows']) === 1) {
    findings.push(...(await fenceFindings(patient, `(SELECT number FROM ${named('fence')})`)))
    return [...findings, ...(await upkeepFindings(patient))]
  }
  return [...findings, found(sharedFindings, 'TABLES_INCOMPLETE', `It is missing: the one row of ${prefix}fence.`)]
}

const lookAtParts = `SELECT m.name AS name, c.name AS "column" FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) c
  WHERE m.name IN (SELECT value FROM json_each(?))`

const lookAtTables = `SELECT (SELECT count(*) FROM pragma_index_list(?) l
    WHERE l."unique" = 1 AND l.partial = 0 AND (SELECT group_concat(i.name) FROM pragma_index_info(l.name) i) = 'id') AS keyed,
  (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN (?, ?, ?, ?, ?, ?)) AS triggers`

// Becomes the writer, and writes where there are tables to write to.
async function trialFindings(patient: SqlitePatient, before: readonly Finding[]): Promise<readonly Finding[]> {
  const whole = !before.some(
    ({ code }) => code.startsWith('MIGRATIONS_M') || code === 'TABLES_INCOMPLETE' || code === 'PEPPER_MISMATCH',
  )
  try {
    if (whole) {
      const refusal = (error: unknown) => patient.signsOf(error).find((sign) => sign.startsWith('SQLITE_CONSTRAINT'))
      return await writeFindings(patient, 'hex(zeroblob($bytes / 2))', { full: 'SQLITE_FULL', refusal })
    }
    await patient.tryOut('SELECT 1')
    return []
  } catch (error) {
    if (!patient.signsOf(error).some(isBusySign)) throw error
    return [found(sqliteFindings, 'FILE_LOCKED')]
  }
}

async function placeFindings(file: string, before: readonly Finding[]): Promise<readonly Finding[]> {
  const folder = dirname(file)
  const findings: Finding[] = []
  const knows = (code: string): boolean => before.some((finding) => finding.code === code)
  const writable = await Promise.all([file, folder].map((path) => access(path, constants.W_OK))).then(
    () => true,
    () => false,
  )
  if (!writable && !knows('FILE_READ_ONLY')) {
    findings.push(found(sqliteFindings, 'FILE_READ_ONLY', 'The rights of the file or of its folder say so.'))
  }
  const { type, bavail, bsize } = await statfs(folder)
  const network = networkFileSystems[Number(type) >>> 0]
  if (network !== undefined) findings.push(found(sqliteFindings, 'NETWORK_FILE_SYSTEM', `It is ${network}.`))
  const leftBytes = bavail * bsize
  const seen = `${leftBytes} bytes are left on the disk.`
  if (leftBytes < leastRoomBytes && !knows('DISK_FULL')) findings.push(found(sharedFindings, 'DISK_FULL', seen))
  else if (leftBytes < scarceRoomBytes) findings.push(found(sqliteFindings, 'DISK_NEARLY_FULL', seen))
  const log = await stat(`${file}-wal`).catch(() => undefined)
  if (log !== undefined && log.size > largeLogBytes) {
    findings.push(found(sqliteFindings, 'LOG_LARGE', `It has ${log.size} bytes.`))
  }
  return findings
}
