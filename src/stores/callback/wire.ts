// Statements on their way into the ORM's transaction: its settings, the mark that tells its inside from its outside, and an end to it all at the first error.

import type { BeginSettings, HandleLife, Isolation } from '../../atomicity/index.js'
import { RepriseError, uuidv4 } from '../../kernel/index.js'
import { LockTimeoutError, type SqlAnswer, type SqlDialect, storeNowMs } from '../sql/index.js'
import { signsOf } from './classification.js'
import { type CallbackOptions, rowsOf } from './options.js'
import { markSetting, type Run } from './records/statements.js'
import { over } from './refusals.js'

/** What the statements of a transaction need. */
export interface WireParts<Tx> extends Pick<CallbackOptions<Tx>, 'dialect' | 'query'> {
  /** What the ORM hands out for the transaction. */
  readonly tx: Tx
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
  /** Names the transaction on PostgreSQL, for as long as it is open. */
  readonly mark: string = uuidv4()
  readonly #parts: WireParts<Tx>
  readonly #underway = new Set<Promise<unknown>>()
  #ended = false

  constructor(parts: WireParts<Tx>) {
    this.tx = parts.tx
    this.#parts = parts
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

  /** The same, for its rows. */
  readonly run: Run = async (text, values) => (await this.send(text, values)).rows

  /** Waits for what the body did not wait for. */
  async untilIdle(): Promise<void> {
    while (this.#underway.size > 0) await Promise.allSettled(this.#underway)
  }

  /** Nothing is sent any more. */
  end(): void {
    this.#ended = true
  }

  /**
   * PostgreSQL: settings that end with the transaction, so that locks, statements and an idle connection have limits whatever those of the ORM are. Answers with the server's time in ms.
   * Refuses a transaction of another level.
   */
  async open({ isolation, idleMs }: BeginSettings, { claimMs, bodyMs }: LockWaits): Promise<number> {
    const limits = [claimMs, idleMs, Math.max(idleMs, bodyMs + 1_000)].map(wholeMs)
    const [row] = await this.run(openingText, [...limits, this.mark])
    if (row?.['isolation'] !== levels[isolation]) throw wrongLevel()
    return Number(row['now_ms'])
  }

  /** Whether the transaction is still the one that was opened. SQLite has nothing to tell by; there it is only a statement that works. */
  async isInside(): Promise<boolean> {
    if (this.#dialect === 'sqlite') return (await this.run('SELECT 1 AS one', [])).length === 1
    const [row] = await this.run(`SELECT current_setting('${markSetting}', true) AS mark`, [])
    return row?.['mark'] === this.mark
  }

  /** Refuses statements that do not run inside of it with ARGUMENT_INVALID. */
  async refuseOutside(): Promise<void> {
    if (!(await this.isInside())) throw notInside()
  }

  /** PostgreSQL: the longest wait for a lock from here on. */
  async limitLocks(waitMs: number): Promise<void> {
    await this.run("SELECT set_config('lock_timeout', $1, true) AS a", [wholeMs(waitMs)])
  }

  get #dialect(): SqlDialect {
    return this.#parts.dialect
  }
}

const openingText = `SELECT set_config('lock_timeout', $1, true) AS a, set_config('idle_in_transaction_session_timeout', $2, true) AS b, set_config('statement_timeout', $3, true) AS c,
  set_config('${markSetting}', $4, true) AS d, current_setting('transaction_isolation') AS isolation, ${storeNowMs.postgres} AS now_ms`

const levels: Readonly<Record<Isolation, string>> = {
  'read-committed': 'read committed',
  'repeatable-read': 'repeatable read',
  serializable: 'serializable',
}

// 0 would switch a limit off, and settings are texts.
function wholeMs(ms: number): string {
  return String(Math.min(Math.max(1, Math.ceil(ms)), 2 ** 31 - 1))
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
