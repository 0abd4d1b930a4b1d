// The messages of an SQL store: the ports of readers and of upkeep, on statements that all of them share and the runner
// of their records.

import { type RecordLimits, TransactionHandle } from '../../../atomicity/index.js'
import type { LaneStore, LetterStore } from '../../../messaging/index.js'
import type { SqlDialect } from '../dialect.js'
import type { SqlAnswer } from '../executor.js'
import { type Procedure, performAsync } from '../records/procedures.js'
import type { RecordRunner } from '../records/records.js'
import type { Query } from '../records/statements.js'
import type { QueryHandle } from '../sequences.js'
import { arriving, keeping } from './arrivals.js'
import { claiming } from './claim.js'
import { messageOf, type Row } from './content.js'
import { deciding } from './decide.js'
import { burying, ending, extending } from './ends.js'
import {
  causedBy,
  groupIn,
  groupsOf,
  letterIn,
  letterOf,
  lettersAbout,
  lettersOf,
  readersOf,
  traceIn,
} from './letters.js'
import { messageTables } from './migration.js'
import { registering } from './register.js'
import type { MessageSql } from './statements.js'
import { beginningEpochs, forgetting, purging, readerStateIn, readerStates } from './upkeep.js'

/** Runs a statement inside a transaction, by its handle. */
export type SendInside = (tx: QueryHandle, query: Query) => Promise<Pick<SqlAnswer, 'rows' | 'rowCount'>>

/**
 * The messages of a store.
 *
 * @param named The quoted name of a table of Reprise, by what follows the prefix.
 * @param send How statements inside of transactions are run. Default: like any other of the caller's body.
 */
export function sqlMessages(
  dialect: SqlDialect,
  named: (table: string) => string,
  runner: RecordRunner,
  send: SendInside = (tx, { text, values }) => tx.query(text, values),
): LaneStore<QueryHandle> & LetterStore {
  const inside = <Result>(tx: QueryHandle, procedure: Procedure<Result>): Promise<Result> =>
    performAsync(procedure, (query) => send(tx, query))
  const sql: MessageSql = { dialect, tables: messageTables(named) }
  const read = async (query: Query, limits: RecordLimits): Promise<readonly Row[]> =>
    (await runner.read(query, limits)) as readonly Row[]
  return {
    register: (reader, limits) => runner.write(() => registering(sql, reader), limits),
    claim: (query, limits) => runner.write(() => claiming(sql, query), limits),
    end: (ends, limits) => runner.write(() => ending(sql, ends), limits),
    extend: (claim, leaseMs, limits) => runner.write(() => extending(sql, claim, leaseMs), limits),
    endIn: async (tx, end) => (await inside(tx, ending(sql, [end], TransactionHandle.keysEmittedBy(tx))))[0] === true,
    arrive: (tx, arrival, gapMs) => inside(tx, arriving(sql, arrival, gapMs)),
    keep: (tx, arrival, then) => inside(tx, keeping(sql, arrival, then)),
    bury: (tx, reader, letter) => inside(tx, burying(sql, { reader, letter })),
    letters: async (query, limits) => (await read(lettersOf(sql, query), limits)).map(letterIn),
    letter: async (which, limits) => (await read(letterOf(sql, which), limits)).map(letterIn)[0],
    groups: async (limits) => (await read(groupsOf(sql), limits)).map(groupIn),
    caused: async (query, limits) => (await read(causedBy(sql, query), limits)).map(messageOf),
    trace: async (message, limits) => ({
      readers: (await read(readersOf(sql, message), limits)).flatMap((row) => traceIn(row, message.place) ?? []),
      letters: (await read(lettersAbout(sql, message), limits)).map(letterIn),
    }),
    decide: (which, decided, limits) => runner.write(() => deciding(sql, which, decided), limits),
    readers: async (limits) => (await read(readerStates(sql), limits)).map(readerStateIn),
    forget: (reader, limits) => runner.write(() => forgetting(sql, reader), limits),
    newEpochs: (limits) => runner.write(() => beginningEpochs(sql), limits),
    purge: (query, limits) => runner.write(() => purging(sql, query), limits),
  }
}
