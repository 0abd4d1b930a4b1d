// A message as cells of a row, in the outbox, in the inbox and in dead letters alike.

import type { MessagePlace, StoredMessage } from '../../../atomicity/index.js'

/** The columns of what is stored of a message, with their types. */
export const content = {
  source: 'text',
  id: 'text',
  type: 'text',
  subject: 'text',
  key: 'text',
  epoch: 'number',
  number: 'number',
  version: 'number',
  at_ms: 'number',
  intent: 'text',
  traceparent: 'text',
  schema: 'text',
  codec: 'text',
  data: 'text',
} as const

/** A row by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>

/** A cell that a statement is given. */
export type Cell = string | number | null

/** The names of the columns, as a list in SQL. */
export const contentNames: string = Object.keys(content).join(', ')

/**
 * The columns as a list in SQL.
 *
 * @param table What stands before each column, such as `'m.'`.
 */
export function contentColumns(table: string): string {
  return Object.keys(content)
    .map((name) => `${table}${name}`)
    .join(', ')
}

/** The cells of a message, in the order of the columns. */
export function cellsOf(message: StoredMessage): Cell[] {
  const { source, id, type, subject, key, place, version, atMs, intent, traceparent, schema, codec, data } = message
  const given = [source, id, type, subject, key, place.epoch, place.number, version, atMs]
  return [...given, intent, traceparent, schema, codec, data].map((cell) => cell ?? null)
}

/** The message of a row. PostgreSQL gives 64-bit numbers as text. */
export function messageOf(row: Row): StoredMessage {
  return {
    source: String(row['source']),
    id: String(row['id']),
    type: String(row['type']),
    subject: textIn(row['subject']),
    key: String(row['key']),
    place: { epoch: Number(row['epoch']), number: Number(row['number']) },
    version: row['version'] === null ? undefined : Number(row['version']),
    atMs: Number(row['at_ms']),
    intent: textIn(row['intent']),
    traceparent: textIn(row['traceparent']),
    schema: textIn(row['schema']),
    codec: textIn(row['codec']),
    data: String(row['data']),
  }
}

/** A text, or undefined where there is none. */
export function textIn(cell: unknown): string | undefined {
  return cell === null || cell === undefined ? undefined : String(cell)
}

/** A place, or undefined where nothing is there yet. */
export function placeIn(epoch: unknown, number: unknown): MessagePlace | undefined {
  return Number(number) === 0 ? undefined : { epoch: Number(epoch), number: Number(number) }
}
