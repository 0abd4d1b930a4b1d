// Brings the records of a store from one pepper to the next, in the transaction of a migration. Each name, scope and
// fingerprint is hidden as it stands, so nobody has to know the keys, and no key is forgotten.

import { recordFormat } from '../../../atomicity/index.js'
import type { Pepper } from '../../../identity/index.js'
import { defined, RepriseError } from '../../../kernel/index.js'

/** Where the names are. */
export interface NamesToHide {
  /** The table of records, quoted. */
  readonly marker: string
  /** The table of audit notes, quoted. */
  readonly audit: string
  /** The table of dedupe windows, quoted. */
  readonly window: string
  /** The table of what they have accepted, quoted. */
  readonly seen: string
  /** An SQL expression for the store's time in ms since 1970. */
  readonly nowMs: string
}

/** Runs a statement of a migration and gives its rows. */
interface Statements {
  run(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

const batch = 500
const map = 'reprise_hidden_names'

/** Hides all names; how many records there were. Refuses with PEPPER_RENAME_REFUSED what cannot be renamed. */
export async function hideNames(target: Statements, tables: NamesToHide, pepper: Pepper): Promise<number> {
  const { marker, audit, window, seen } = tables
  await refuseBound(target, tables)
  // First, so that nobody marks anything meanwhile.
  await target.run(`UPDATE ${window} SET pepper = ${literal(pepper.id)}`)
  await target.run(
    `CREATE TEMPORARY TABLE ${map} (old text PRIMARY KEY, id text NOT NULL, scope text, fingerprint text)`,
  )
  let hidden = 0
  const fill = async (selected: (after: string) => string): Promise<void> => {
    for (let after = "''"; ; ) {
      const rows = await target.run(selected(after))
      if (rows.length === 0) return
      const values = rows.map((row) => `(${cellsOf(row, pepper).map(literal).join(', ')})`)
      await target.run(
        `INSERT INTO ${map} (old, id, scope, fingerprint) VALUES ${values.join(', ')} ON CONFLICT (old) DO NOTHING`,
      )
      hidden += rows.length
      after = literal(String(rows.at(-1)?.['id']))
    }
  }
  await fill((after) => `SELECT id, scope, fingerprint FROM ${marker} WHERE id > ${after} ORDER BY id LIMIT ${batch}`)
  const records = hidden
  // Notes outlive their records.
  await fill((after) => `SELECT DISTINCT id FROM ${audit} WHERE id > ${after} ORDER BY id LIMIT ${batch}`)
  await fill((after) => `SELECT id FROM ${seen} WHERE id > ${after} ORDER BY id LIMIT ${batch}`)
  if (hidden > 0) {
    const set = 'id = h.id, scope = h.scope, fingerprint = h.fingerprint'
    await target.run(`UPDATE ${marker} AS m SET ${set} FROM ${map} AS h WHERE h.old = m.id`)
    await target.run(`UPDATE ${audit} AS a SET id = h.id FROM ${map} AS h WHERE h.old = a.id`)
    await target.run(`UPDATE ${seen} AS s SET id = h.id FROM ${map} AS h WHERE h.old = s.id`)
  }
  await target.run(`DROP TABLE ${map}`)
  return records
}

function cellsOf(row: Readonly<Record<string, unknown>>, pepper: Pepper): readonly (string | null)[] {
  const {
    id,
    scope = null,
    fingerprint = null,
  } = row as {
    readonly id: string
    readonly scope?: string | null
    readonly fingerprint?: string | null
  }
  return [
    id,
    pepper.hide(id),
    scope === null ? null : pepper.hide(scope),
    fingerprint === null ? null : pepper.hide(fingerprint),
  ]
}

function literal(value: string | null): string {
  return value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`
}

// A leased effect that is not over is repeated under the key that was derived from the name, what is encrypted can only
// be read under the name, and nobody knows what in a record of a newer version depends on it.
async function refuseBound(target: Statements, { marker, nowMs }: NamesToHide): Promise<void> {
  const count = async (where: string): Promise<number | undefined> => {
    const [row] = await target.run(`SELECT count(*) AS many FROM ${marker} WHERE ${where}`)
    return Number(row?.['many']) || undefined
  }
  const unfinished = await count("mode = 'leased' AND state IN ('claimed', 'unknown')")
  const encrypted = await count(
    `codec LIKE '%aes-256-gcm%' AND value IS NOT NULL AND (expires_at_ms IS NULL OR expires_at_ms > ${nowMs})`,
  )
  const newer = await count(`format > ${recordFormat}`)
  const details = defined({ unfinished, encrypted, newer })
  if (Object.keys(details).length === 0) return
  throw new RepriseError(
    'PEPPER_RENAME_REFUSED',
    'Some records depend on the names that they have: sweep or settle what is unfinished, wait until the windows of encrypted outcomes are over, and let no newer version work here. Nothing was changed.',
    { details },
  )
}
