// Statements on their way into the ORM's transaction: its settings, the mark that tells its inside from its outside,
// and an end to it all at the first error.

import type { BeginSettings, HandleLife } from '../../atomicity/index.js'
import { RepriseError, uuidv4 } from '../../kernel/index.js'
import { LockTimeoutError, type Query, type SqlAnswer } from '../sql/index.js'
import { signsOf } from './classification.js'
import type { CallbackDatabase, LocalSettings } from './database.js'
import { type CallbackOptions, rowsOf, type Send, sendOn } from './options.js'

/** What the statements of a transaction need. */
export interface WireParts<Tx> extends Pick<CallbackOptions<Tx>, 'query'> {
  /** What the ORM hands out for the transaction. */
  readonly tx: Tx
  readonly database: CallbackDatabase
  /** Whether the handle can be used. */
  readonly life: HandleLife
}

/** The waits of a transaction for locks, in ms. */
export interface LockWaits {
  /** Until the claim is made. */
  readonly claimMs: number
  /** From the body on. */
  readonly bodyMs: number
}

/** The way of the statements of one transaction. */
export class CallbackWire<Tx> {
  /** What the ORM hands out. */
  readonly tx: Tx
  /** Sends a statement of Reprise's own. */
  readonly own: Send
  /** Names the transaction for as long as it is open, where the database has settings for it. */
  readonly mark: string = uuidv4()
  readonly #parts: WireParts<Tx>
  readonly #underway = new Set<Promise<unknown>>()
  #ended = false

  constructor(parts: WireParts<Tx>) {
    this.tx = parts.tx
    this.#parts = parts
    this.own = sendOn((_tx, text, values) => this.send(text, values), parts.tx, parts.database.dialect)
  }

  /** Sends a statement. Any error of it ends the transaction. */
  async send(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    const { life, query } = this.#parts
    if (this.#ended) throw over()
    const first = life.poisoned
    if (first !== undefined) throw first.error
    const asked = (async () => query(this.tx, text, [...values]))()
    this.#underway.add(asked)
    try {
      const answer = await asked
      const rows = rowsOf(answer)
      return { rows, rowCount: answer.rowCount ?? rows.length }
    } catch (error) {
      const shown = signsOf(error).includes('55P03') ? new LockTimeoutError(error, []) : error
      life.poison(shown)
      throw shown
    } finally {
      this.#underway.delete(asked)
    }
  }

  /** Waits for what the body did not wait for. */
  async untilIdle(): Promise<void> {
    while (this.#underway.size > 0) await Promise.allSettled(this.#underway)
  }

  /** Nothing is sent any more. */
  end(): void {
    this.#ended = true
  }

  /**
   * Settings that end with the transaction, so that locks, statements and an idle connection have limits whatever those
   * of the ORM are. Refuses a transaction of another level.
   */
  async open(settings: LocalSettings, begin: BeginSettings, { claimMs, bodyMs }: LockWaits): Promise<void> {
    const { isolation, idleMs } = begin
    const limits = { lockMs: claimMs, idleMs, statementMs: Math.max(idleMs, bodyMs + 1_000) }
    const [row] = await this.#rows(settings.open(limits, this.mark))
    if (row?.['isolation'] !== settings.levels[isolation]) throw wrongLevel()
  }

  /**
   * Whether the transaction is still the one that was opened. A database without settings has nothing to tell by; there
   * it is only a statement that works.
   */
  async isInside(): Promise<boolean> {
    const { settings } = this.#parts.database
    if (settings === undefined) return (await this.#rows({ text: 'SELECT 1 AS one', values: [] })).length === 1
    const [row] = await this.#rows(settings.readMark)
    return row?.['mark'] === this.mark
  }

  /** Refuses statements that do not run inside of it with ARGUMENT_INVALID. */
  async refuseOutside(): Promise<void> {
    if (!(await this.isInside())) throw notInside()
  }

  async #rows({ text, values }: Query): Promise<SqlAnswer['rows']> {
    return (await this.send(text, values)).rows
  }
}

function wrongLevel(): RepriseError {
  const message = 'The transaction did not begin with the isolation level that was asked for: pass it on to the ORM.'
  return new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'transaction' } })
}

function notInside(): RepriseError {
  const message =
    'The statements of query do not run inside the transaction: use what work was called with, not the pool.'
  return new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'query' } })
}

/** An error came before the work was allowed to return. */
export function aborted(cause: unknown): RepriseError {
  const message = 'A statement of the transaction failed before its work was allowed to return; nothing was stored.'
  return new RepriseError('TRANSACTION_ABORTED', message, { cause })
}

/** The handle is of the past. */
export function over(): RepriseError {
  return new RepriseError('TRANSACTION_OVER', 'The transaction has ended; its handle cannot be used.')
}
