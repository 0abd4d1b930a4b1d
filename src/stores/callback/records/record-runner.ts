// A call to the records as a transaction of its own: begun, worked and committed by the transaction function, and not
// waited for longer than a deadline allows.

import type { RecordLimits, Turns } from '../../../atomicity/index.js'
import { type Clock, earlier, inTime, isRepriseError, pick, RepriseError } from '../../../kernel/index.js'
import {
  BusyWait,
  LockTimeoutError,
  leftMs,
  type Procedure,
  performAsync,
  postgresPatience,
  type Query,
  type RecordRunner,
  type SqlAnswer,
  tooLate,
} from '../../sql/index.js'
import { isBusy, signsOf } from '../classification.js'
import type { CallbackDatabase } from '../database.js'
import { holdsRolledBack, RolledBack } from '../inversion.js'
import { type CallbackOptions, type Send, sendOn } from '../options.js'

/** What the runner needs. */
export interface RecordRunnerParts<Tx> extends Pick<CallbackOptions<Tx>, 'transaction' | 'query'> {
  readonly database: CallbackDatabase
  /** Who may have a connection to write. */
  readonly turns: Turns
  /** Who may have one to read; the same ones where there is no difference. */
  readonly readers: Turns
  readonly clock: Clock
  /** The longest wait for a connection, in ms. */
  readonly connectionWaitMs: number
}

/** A transaction that provably did nothing, because another one was in its way, is run this often. */
const mostRounds = 4
const harmless: ReadonlySet<string> = new Set(['40001', '40P01', 'P2034', 'SQLITE_BUSY_SNAPSHOT'])

/** Runs the statements of a store's records. */
export class CallbackRecordRunner<Tx> implements RecordRunner {
  readonly #parts: RecordRunnerParts<Tx>

  constructor(parts: RecordRunnerParts<Tx>) {
    this.#parts = parts
  }

  read(query: Query, limits: RecordLimits): Promise<SqlAnswer['rows']> {
    return this.#rounds(limits, true, async (send) => (await send(query)).rows)
  }

  write<Result>(procedure: () => Procedure<Result>, limits: RecordLimits): Promise<Result> {
    const { lockStore, settings } = this.#parts.database
    return this.#rounds(limits, false, async (send) => {
      if (lockStore !== undefined) await send(lockStore)
      // What runs on cannot be called off here, so the server is told how long anybody waits for it.
      if (settings !== undefined) await send(settings.limitAll(leftMs(limits, this.#parts.clock)))
      return performAsync(procedure(), send)
    })
  }

  /** Runs a statement that may write, and rolls it back. */
  async tryOut(query: Query, limits: RecordLimits): Promise<SqlAnswer['rows']> {
    const { clock, database } = this.#parts
    const { settings } = database
    const { lockMs, statementMs } = postgresPatience
    let rows: SqlAnswer['rows'] = []
    try {
      await this.#rounds(limits, false, async (send) => {
        if (settings !== undefined) {
          await send(settings.limitAll(Math.min(statementMs, leftMs(limits, clock))))
          await send(settings.limitLocks(lockMs))
        }
        rows = (await send(query)).rows
        throw new RolledBack()
      })
    } catch (error) {
      if (!holdsRolledBack(error)) throw error
    }
    return rows
  }

  // One loop for both reasons to try again: somebody else has the lock of the whole store, until the lock's deadline;
  // or another transaction was in the way of this one, a few times.
  async #rounds<Result>(
    limits: RecordLimits,
    readOnly: boolean,
    work: (send: Send) => Promise<Result>,
  ): Promise<Result> {
    const { clock } = this.#parts
    const { deadline, lockDeadline = deadline } = limits
    const lock = new BusyWait({ waitMs: leftMs({ deadline: earlier(deadline, lockDeadline) }, clock), clock })
    let overtaken = 0
    for (;;) {
      try {
        return await this.#once(limits, readOnly, work)
      } catch (error) {
        if (isBusy(error)) {
          if (!(await lock.pause())) throw new LockTimeoutError(error, [])
          continue
        }
        overtaken += 1
        if (overtaken >= mostRounds || !signsOf(error).some((sign) => harmless.has(sign))) throw error
      }
    }
  }

  async #once<Result>(limits: RecordLimits, readOnly: boolean, work: (send: Send) => Promise<Result>): Promise<Result> {
    const { transaction, query, database, clock } = this.#parts
    const turn = await this.#turn(limits, readOnly)
    const [isolation = 'serializable'] = database.manifest.isolation
    let over = false
    let result: { readonly value: Result } | undefined
    const transacted = async (): Promise<Result> => {
      try {
        await transaction(
          async (tx) => {
            const send = sendOn(query, tx, database.dialect)
            // After the deadline nothing more is sent, and what was is rolled back, unless COMMIT was on its way.
            const sendInTime: Send = async (statement) => {
              if (over) throw new RolledBack()
              return send(statement)
            }
            result = { value: await work(sendInTime) }
            if (over) throw new RolledBack()
          },
          { isolation, readOnly },
        )
      } finally {
        turn.done()
      }
      if (result !== undefined) return result.value
      throw new RepriseError('ARGUMENT_INVALID', 'The transaction function ended without having called its work.')
    }
    const expired = (): RepriseError => {
      over = true
      return tooLate()
    }
    return inTime({ clock, limitMs: leftMs(limits, clock), expired }, transacted())
  }

  async #turn(limits: RecordLimits, readOnly: boolean): Promise<{ done(): void }> {
    const { turns, readers, clock, connectionWaitMs } = this.#parts
    const left = leftMs(limits, clock)
    if (left <= 0) throw tooLate()
    const waitMs = Math.min(connectionWaitMs, left)
    try {
      return await (readOnly ? readers : turns).take({ waitMs, ...pick(limits, ['signal', 'urgent']) })
    } catch (error) {
      throw isRepriseError(error, 'POOL_EXHAUSTED') && waitMs === left ? tooLate(error) : error
    }
  }
}
