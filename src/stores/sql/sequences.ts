// The rows of producers, as SQL, once for all engines that speak it. Each statement goes through the handle of the
// caller's transaction, like any other of its body.

import { RepriseError } from '../../kernel/index.js'
import type { AcceptedMark, ProducerName, ProducerRow, SequencePlace, SequenceStore } from '../../sequence/index.js'
import type { SqlDialect } from './dialect.js'
import type { SqlAnswer } from './executor.js'
import type { ColumnTypes } from './records/migration.js'
import { Values } from './values.js'

/** The name of the migration that makes the table. */
export const sequenceMigrationName = 'producers of sequences'

/** What the table is made of. No index on the time: an update that changes no index is cheaper, and a purge is rare. */
export function sequenceColumns({ text, bigint }: ColumnTypes): readonly string[] {
  return [
    `sequence ${text} NOT NULL`,
    `producer ${text} NOT NULL`,
    `epoch ${bigint} NOT NULL`,
    `number ${bigint} NOT NULL`,
    `fingerprint ${text}`,
    `value ${text}`,
    `used_at_ms ${bigint} NOT NULL`,
    'PRIMARY KEY (sequence, producer)',
  ]
}

// As often as a row that others delete is looked for.
const mostRounds = 4

/** A handle whose statements have the engine's own placeholders. */
export interface QueryHandle {
  query(text: string, values?: readonly unknown[]): Promise<Pick<SqlAnswer, 'rows' | 'rowCount'>>
}

/**
 * The rows of producers of a store.
 *
 * @param named The quoted name of a table of Reprise, by what follows the prefix.
 */
export function sqlSequences(dialect: SqlDialect, named: (table: string) => string): SequenceStore<QueryHandle> {
  return new SqlSequences(dialect, named)
}

class SqlSequences implements SequenceStore<QueryHandle> {
  readonly #dialect: SqlDialect
  readonly #table: string
  readonly #fence: string

  constructor(dialect: SqlDialect, named: (table: string) => string) {
    this.#dialect = dialect
    this.#table = named('sequence')
    this.#fence = named('fence')
  }

  // An insert that finds the row does not lock it, so that a purge may have deleted it before the update.
  async open(tx: QueryHandle, name: ProducerName): Promise<number> {
    for (let round = 1; round <= mostRounds; round += 1) {
      const epoch = await this.#opened(tx, name)
      if (epoch !== undefined) return epoch
    }
    const message = `The row of the producer came and went ${mostRounds} times while its epoch was opened.`
    throw new RepriseError('ROW_UNSETTLED', message, { details: { rounds: mostRounds } })
  }

  // The epoch is taken by the statement that has the lock of the row, and not by the insert: one that was taken before
  // the wait for the lock could be below the one that somebody else wrote meanwhile. Undefined: the row is gone.
  async #opened(tx: QueryHandle, name: ProducerName): Promise<number | undefined> {
    const { fence, nowMs } = this.#dialect
    const insert = this.#values()
    const row = `VALUES (${insert.text(name.sequence)}, ${insert.text(name.producer)}, 0, 0, ${nowMs})`
    const columns = 'sequence, producer, epoch, number, used_at_ms'
    await tx.query(this.#dialect.insertNew(this.#table, columns, row, 'sequence, producer'), insert.list)
    const advance = fence.advance?.(this.#fence)
    if (advance !== undefined) await tx.query(advance)
    const update = this.#values()
    const set = `epoch = ${fence.next(this.#fence)}, number = 0, fingerprint = NULL, value = NULL, used_at_ms = ${nowMs}`
    const { rows } = await tx.query(
      `UPDATE ${this.#table} SET ${set} WHERE ${whose(update, name)}${this.#dialect.returning('epoch')}`,
      update.list,
    )
    const [opened] = rows
    return opened && Number(opened['epoch'])
  }

  async advance(tx: QueryHandle, at: SequencePlace, { fingerprint, value }: AcceptedMark): Promise<boolean> {
    const update = this.#values()
    const set =
      `number = ${update.number(at.number)}, fingerprint = ${update.text(fingerprint ?? null)}, ` +
      `value = ${update.text(value ?? null)}, used_at_ms = ${this.#dialect.nowMs}`
    const where = `${whose(update, at)} AND epoch = ${update.number(at.epoch)} AND number = ${update.number(at.number - 1)}`
    // Some ORMs tell how many rows they changed only where they get these back.
    const { rows, rowCount } = await tx.query(
      `UPDATE ${this.#table} SET ${set} WHERE ${where}${this.#dialect.returning('number')}`,
      update.list,
    )
    return rows.length + rowCount > 0
  }

  async read(tx: QueryHandle, name: ProducerName): Promise<ProducerRow | undefined> {
    const select = this.#values()
    const { rows } = await tx.query(
      `SELECT epoch, number, fingerprint, value FROM ${this.#table} WHERE ${whose(select, name)}`,
      select.list,
    )
    const [row] = rows
    if (row === undefined) return undefined
    const { epoch, number, fingerprint, value } = row
    return { epoch: Number(epoch), number: Number(number), fingerprint: textIn(fingerprint), value: textIn(value) }
  }

  async keep(tx: QueryHandle, at: SequencePlace, value: string): Promise<void> {
    const update = this.#values()
    const set = `value = ${update.text(value)}`
    const where = `${whose(update, at)} AND epoch = ${update.number(at.epoch)} AND number = ${update.number(at.number)}`
    await tx.query(`UPDATE ${this.#table} SET ${set} WHERE ${where}`, update.list)
  }

  // In no order: all of them are to go, and sorting what is left for every batch would make a purge quadratic.
  async forget(tx: QueryHandle, sequence: string, idleMs: number, most: number): Promise<number> {
    const { nowMs, skipLocked, among, returning } = this.#dialect
    const remove = this.#values()
    const outer = remove.text(sequence)
    const idle =
      `SELECT producer FROM ${this.#table} WHERE sequence = ${remove.text(sequence)} ` +
      `AND used_at_ms < ${nowMs} - ${remove.number(idleMs)} LIMIT ${remove.number(most)}${skipLocked}`
    const { rows } = await tx.query(
      `DELETE FROM ${this.#table} WHERE sequence = ${outer} AND producer ${among(idle)}${returning('producer')}`,
      remove.list,
    )
    return rows.length
  }

  #values(): Values {
    return new Values(this.#dialect)
  }
}

function whose(values: Values, { sequence, producer }: ProducerName): string {
  return `sequence = ${values.text(sequence)} AND producer = ${values.text(producer)}`
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
