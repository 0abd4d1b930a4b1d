// The tables that conformance cases work with, in SQL that both engines read.

import { recordColumns } from '../../../src/stores/sql/index.js'
import type { OutboxRow, OutboxWorld } from '../../../src/testing/index.js'

/** The statements that make the tables. */
export const makeTables =
  'create table effects (intent text not null);' +
  'create table items (id text primary key, state text, last_command text, version integer not null default 0, token text, amount integer not null default 0);' +
  'create table commands (command text primary key, fingerprint text not null)'

/** Direct access to the tables of messages by SQL. */
export function outboxDoor(
  query: (text: string, values: readonly (string | number | null)[]) => Promise<readonly unknown[]>,
  placeholder: (position: number) => string,
): Pick<OutboxWorld, 'outboxRows' | 'putOutboxRow' | 'emptyOutboxRows'> {
  return {
    async outboxRows(table) {
      const rows = (await query(`select * from reprise_${table}`, [])) as readonly OutboxRow[]
      // pg gives a bigint as text.
      const cell = (name: string, value: string | number | null): string | number | null =>
        value !== null && whole.has(name) ? Number(value) : value
      return rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(name, value)])),
      )
    },
    async putOutboxRow(table, row) {
      const names = Object.keys(row)
      const places = names.map((_, place) => placeholder(place + 1))
      await query(
        `insert into reprise_${table} (${names.join(', ')}) values (${places.join(', ')})`,
        Object.values(row),
      )
    },
    async emptyOutboxRows(table) {
      await query(`delete from reprise_${table}`, [])
    },
  }
}

const whole: ReadonlySet<string> = new Set([
  'epoch',
  'number',
  'known_epoch',
  'known_number',
  'purged_version',
  'version',
  'at_ms',
  'due_at_ms',
  'attempt',
])

/** The statement that puts a record there, past the adapter. */
export function putRecordText(placeholder: (position: number) => string, table = 'reprise_marker'): string {
  const columns = ['id', ...recordColumns]
  return `insert into ${table} (${columns.join(', ')}) values (${columns.map((_, place) => placeholder(place + 1)).join(', ')})`
}
