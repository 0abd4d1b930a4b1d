// The tables of messages, as every SQL store makes them: what was emitted, how far each reader has come, what came from
// brokers, and dead letters.

import type { ColumnTypes } from '../records/migration.js'

/** What the migration is for. */
export const messageMigrationName = 'messages'

/** What the migration is for that lets a reader say how long its memory is. */
export const memoryMigrationName = 'memory of consumers'

/** The statements of that migration. The memory is in ms; null: the reader has none. */
export function memoryStatements(
  { bigint }: ColumnTypes,
  { reader }: Pick<MessageTables, 'reader'>,
): readonly string[] {
  return [`ALTER TABLE ${reader} ADD COLUMN memory_ms ${bigint}`]
}

/** The tables, by what follows the prefix. */
export const messageTableNames = ['head', 'message', 'reader', 'lane', 'processed', 'inbox', 'dead_letter'] as const

/** The indexes beside the primary keys, by what follows the prefix. */
export const messageIndexNames = [
  'message_identity',
  'message_version',
  'message_at',
  'lane_due',
  'processed_at',
  'inbox_identity',
  'dead_letter_open',
] as const

/** The quoted names of the tables. */
export type MessageTables = Readonly<Record<(typeof messageTableNames)[number] | 'fence', string>>

/** The names, by how the store names a table. */
export function messageTables(named: (table: string) => string): MessageTables {
  const names = [...messageTableNames, 'fence'] as const
  return Object.fromEntries(names.map((name) => [name, named(name)])) as MessageTables
}

// What is stored of a message, in the outbox, in the inbox and in dead letters alike.
function contentColumns({ text, bigint }: ColumnTypes): readonly string[] {
  return [
    `source ${text} NOT NULL`,
    `id ${text} NOT NULL`,
    `type ${text} NOT NULL`,
    `subject ${text}`,
    `key ${text} NOT NULL`,
    `epoch ${bigint} NOT NULL`,
    `number ${bigint} NOT NULL`,
    `version ${bigint}`,
    `at_ms ${bigint} NOT NULL`,
    `intent ${text}`,
    `traceparent ${text}`,
    `schema ${text}`,
    `codec ${text}`,
    `data ${text} NOT NULL`,
  ]
}

/**
 * The statements of the migration.
 *
 * @param index The quoted name of an index, by what follows the prefix.
 */
export function messageStatements(
  types: ColumnTypes,
  tables: MessageTables,
  index: (name: string) => string,
): readonly string[] {
  return [...outboxStatements(types, tables, index), ...readerStatements(types, tables, index)]
}

const table = (name: string, columns: readonly string[]): string => `CREATE TABLE ${name} (${columns.join(', ')})`

// What transactions emit.
function outboxStatements(
  types: ColumnTypes,
  { head, message }: MessageTables,
  index: (name: string) => string,
): readonly string[] {
  const { text, bigint } = types
  const content = contentColumns(types)
  return [
    // The last number of a key, and the highest version that was purged.
    table(head, [
      `key ${text} NOT NULL PRIMARY KEY`,
      `epoch ${bigint} NOT NULL`,
      `number ${bigint} NOT NULL`,
      `purged_version ${bigint}`,
      `at_ms ${bigint} NOT NULL`,
    ]),
    // Rows are only ever inserted, and deleted when they are purged.
    table(message, [...content, 'PRIMARY KEY (key, epoch, number)']),
    `CREATE UNIQUE INDEX ${index('message_identity')} ON ${message} (source, id)`,
    `CREATE UNIQUE INDEX ${index('message_version')} ON ${message} (subject, version) WHERE version IS NOT NULL`,
    `CREATE INDEX ${index('message_at')} ON ${message} (at_ms)`,
  ]
}

// Who reads it, how far they are, what came from brokers, and what they could not do.
function readerStatements(
  types: ColumnTypes,
  { reader, lane, processed, inbox, dead_letter }: MessageTables,
  index: (name: string) => string,
): readonly string[] {
  const { text, integer, bigint } = types
  const content = contentColumns(types)
  return [
    table(reader, [
      `name ${text} NOT NULL PRIMARY KEY`,
      `kind ${text} NOT NULL`,
      `reads ${text} NOT NULL`,
      // Up to which key it was told of what had been emitted before; null: of all.
      `told_to ${text}`,
      `at_ms ${bigint} NOT NULL`,
    ]),
    // epoch and number: the last message that is done. state: 0 idle, 1 has messages, 2 parked. due_at_ms: when a lane
    // with messages may be claimed: the end of a rest, of a delay, or of a lease.
    table(lane, [
      `reader ${text} NOT NULL`,
      `key ${text} NOT NULL`,
      `epoch ${bigint} NOT NULL DEFAULT 0`,
      `number ${bigint} NOT NULL DEFAULT 0`,
      `known_epoch ${bigint} NOT NULL DEFAULT 0`,
      `known_number ${bigint} NOT NULL DEFAULT 0`,
      `state ${integer} NOT NULL DEFAULT 0`,
      `due_at_ms ${bigint} NOT NULL DEFAULT 0`,
      `owner ${text}`,
      `attempt ${bigint} NOT NULL DEFAULT 0`,
      `claims ${integer} NOT NULL DEFAULT 0`,
      `failures ${integer} NOT NULL DEFAULT 0`,
      `history ${text} NOT NULL DEFAULT ''`,
      'PRIMARY KEY (reader, key)',
    ]),
    `CREATE INDEX ${index('lane_due')} ON ${lane} (reader, due_at_ms) WHERE state = 1`,
    table(processed, [
      ...['reader', 'source', 'id', 'fingerprint'].map((name) => `${name} ${text} NOT NULL`),
      `at_ms ${bigint} NOT NULL`,
      'PRIMARY KEY (reader, source, id)',
    ]),
    `CREATE INDEX ${index('processed_at')} ON ${processed} (at_ms)`,
    // epoch and number: its place in the lane of its reader, by arrival, or by its own numbers where these are checked.
    table(inbox, [
      `reader ${text} NOT NULL`,
      `fingerprint ${text} NOT NULL`,
      ...content,
      'PRIMARY KEY (reader, key, epoch, number)',
    ]),
    `CREATE UNIQUE INDEX ${index('inbox_identity')} ON ${inbox} (reader, source, id)`,
    table(dead_letter, [
      `reader ${text} NOT NULL`,
      `kind ${text} NOT NULL`,
      ...content,
      `state ${text} NOT NULL`,
      `parks ${integer} NOT NULL`,
      `code ${text} NOT NULL`,
      `reason ${text} NOT NULL`,
      `history ${text} NOT NULL`,
      // What was decided, as JSON, until it is done; and who decided, and why.
      `decision ${text}`,
      `note ${text}`,
      `first_at_ms ${bigint} NOT NULL`,
      `last_at_ms ${bigint} NOT NULL`,
      'PRIMARY KEY (reader, source, id)',
    ]),
    `CREATE INDEX ${index('dead_letter_open')} ON ${dead_letter} (reader, key) WHERE state <> 'closed'`,
  ]
}
