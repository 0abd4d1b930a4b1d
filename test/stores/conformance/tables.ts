// The tables that conformance cases work with, in SQL that both engines read.

import { recordColumns } from '../../../src/stores/sql/index.js'

/** The statements that make the tables. */
export const makeTables =
  'create table effects (intent text not null);' +
  'create table items (id text primary key, state text, last_command text, version integer not null default 0, token text, amount integer not null default 0);' +
  'create table commands (command text primary key, fingerprint text not null)'

/** The statement that puts a record there, past the adapter. */
export function putRecordText(placeholder: (position: number) => string, table = 'reprise_marker'): string {
  const columns = ['id', ...recordColumns]
  return `insert into ${table} (${columns.join(', ')}) values (${columns.map((_, place) => placeholder(place + 1)).join(', ')})`
}
