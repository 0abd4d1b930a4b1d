// The work of one call to the records: a read is one statement on a reader, and a write is a transaction on the writer
// that begins, works and commits without waiting for anything in between.

import type { RecordLimits, Ruling } from '../../../atomicity/index.js'
import { type Clock, earlier, isRepriseError, pick, type Random } from '../../../kernel/index.js'
import { storeFull } from '../../../transaction/index.js'
import {
  type BusyLimits,
  LockTimeoutError,
  leftMs,
  migrationMissing,
  type Procedure,
  perform,
  type Query,
  type RecordRow,
  type RecordRunner,
  type SqlAnswer,
  sqliteDialect,
  tooLate,
  type WrittenRecord,
  whileBusy,
} from '../../sql/index.js'
import type { Connections, Taken } from '../connection/connections.js'
import { isBusy, isOpen, type SqliteHandle, type SqliteValue } from '../connection/driver.js'
import { listIn, rowsIn, writesIn } from '../connection/statements.js'

/** What the runner needs. */
export interface RecordRunnerParts {
  /** The name of the store. */
  readonly domain: string
  readonly connections: Connections
  readonly clock: Clock
  readonly random: Random
  /** The longest wait for the writer's turn, in ms, where a call says until when it waits for a lock. */
  readonly connectionWaitMs: number
  /** What an answer to COMMIT means. */
  readonly classify: (error: unknown, phase: 'committing') => Ruling
}

/**
 * Runs a statement on records on one connection. Where the tables are not there, or of an older version, it is refused
 * with MIGRATION_MISSING.
 */
export function sendTo(handle: SqliteHandle, query: Query): SqlAnswer {
  const { text } = query
  const values = query.values as readonly SqliteValue[]
  try {
    if (query.counts === true) return { rows: [], rowCount: writesIn(handle, text, values) }
    if (query.single === true) {
      // A row as a list costs some drivers half as much as one by name.
      const row = listIn(handle, text, values)
      const rows = (row === undefined ? [] : [row]) as unknown as SqlAnswer['rows']
      return { rows, rowCount: rows.length }
    }
    const rows = rowsIn(handle, text, values)
    return { rows, rowCount: rows.length }
  } catch (error) {
    throw error instanceof Error && sqliteDialect.isMissing([], error.message) ? migrationMissing(error) : error
  }
}

/** Runs the statements of a store's records. */
export class SqliteRecordRunner implements RecordRunner {
  readonly #parts: RecordRunnerParts

  constructor(parts: RecordRunnerParts) {
    this.#parts = parts
  }

  async read(query: Query, limits: RecordLimits): Promise<readonly RecordRow[]> {
    const rows = this.#readAtOnce(query, limits)
    if (rows !== undefined) return rows
    return this.#inTime(limits, () => whileBusy(this.#busy(limits), isBusy, () => this.#readInTurn(query, limits)))
  }

  async write<Result>(
    procedure: () => Procedure<Result>,
    limits: RecordLimits,
    about?: WrittenRecord,
  ): Promise<Result> {
    const work = async (left: number): Promise<Result> => {
      const waitMs = this.#turnWaitMs(limits, left)
      const taken = await this.#parts.connections.take({
        waitMs,
        readOnly: false,
        ...pick(limits, ['signal', 'urgent']),
      })
      const { handle } = taken
      let fate: 'keep' | 'drop' | 'condemn' = 'drop'
      try {
        await whileBusy(this.#lock(limits), isBusy, () => handle.exec('BEGIN IMMEDIATE'))
        const result = perform(procedure(), (query) => sendTo(handle, query))
        await this.#commit(handle, limits, () => {
          fate = 'condemn'
        })
        fate = 'keep'
        return result
      } catch (error) {
        if ((fate as string) === 'drop' && isRolledBack(handle)) fate = 'keep'
        throw error
      } finally {
        taken.giveBack(fate)
      }
    }
    return this.#inTime(limits, work, about)
  }

  // A connection that was busy is not asked again: in libsql a statement that could not have its lock counts as one
  // that reads until it is collected, and the next one would leave its snapshot open.
  async #readInTurn(query: Query, limits: RecordLimits): Promise<readonly RecordRow[]> {
    const { clock, connections } = this.#parts
    const waitMs = Math.max(0, leftMs(limits, clock))
    const taken = await connections.take({ waitMs, readOnly: true, ...pick(limits, ['signal', 'urgent']) })
    return readOn(taken, query)
  }

  // The usual way, in which nobody waits, without a promise. Undefined: somebody is in the way, or it is too late.
  #readAtOnce(query: Query, limits: RecordLimits): readonly RecordRow[] | undefined {
    const { clock, connections } = this.#parts
    if (leftMs(limits, clock) <= 0) return undefined
    const taken = connections.takeAtOnce({ readOnly: true, signal: limits.signal })
    if (taken === undefined) return undefined
    try {
      return readOn(taken, query)
    } catch (error) {
      if (isBusy(error)) return undefined
      throw error
    }
  }

  // BUSY in answer to COMMIT leaves the transaction open and whole: COMMIT alone is sent again.
  async #commit(handle: SqliteHandle, limits: RecordLimits, condemn: () => void): Promise<void> {
    try {
      await whileBusy(this.#busy(limits), isBusy, () => handle.exec('COMMIT'))
    } catch (error) {
      if (this.#parts.classify(error, 'committing').outcome !== 'aborted') condemn()
      throw error
    }
  }

  #busy(limits: RecordLimits): BusyLimits {
    const { clock, random } = this.#parts
    return { waitMs: leftMs(limits, clock), clock, random }
  }

  #lock({ deadline, lockDeadline = deadline }: RecordLimits): BusyLimits {
    return this.#busy({ deadline: earlier(deadline, lockDeadline) })
  }

  // Who has the turn has the lock, or waits for it: it is worth waiting for both equally long, and for the turn as long
  // as a transaction does.
  #turnWaitMs({ lockDeadline }: RecordLimits, left: number): number {
    const { clock, connectionWaitMs } = this.#parts
    if (lockDeadline === undefined) return left
    return Math.min(left, Math.max(connectionWaitMs, lockDeadline.expiresAtMs - clock.monotonicMs()))
  }

  async #inTime<Result>(
    limits: RecordLimits,
    work: (left: number) => Promise<Result>,
    about?: WrittenRecord,
  ): Promise<Result> {
    const { clock } = this.#parts
    const left = leftMs(limits, clock)
    if (left <= 0) throw tooLate()
    try {
      return await work(left)
    } catch (error) {
      if (this.#parts.classify(error, 'committing').sign === 'SQLITE_FULL') {
        throw storeFull(this.#parts.domain, 'SQLITE_FULL', error, about)
      }
      const shown = isBusy(error) ? new LockTimeoutError(error, []) : error
      const waited = shown !== error || isRepriseError(error, 'POOL_EXHAUSTED')
      throw waited && leftMs(limits, clock) <= 0 ? tooLate(shown) : shown
    }
  }
}

function readOn({ handle, giveBack }: Taken, query: Query): readonly RecordRow[] {
  let fate: 'keep' | 'drop' = 'drop'
  try {
    const { rows } = sendTo(handle, query)
    fate = 'keep'
    return rows
  } finally {
    giveBack(fate)
  }
}

function isRolledBack(handle: SqliteHandle): boolean {
  try {
    if (isOpen(handle)) handle.exec('ROLLBACK')
    return !isOpen(handle)
  } catch {
    return false
  }
}
