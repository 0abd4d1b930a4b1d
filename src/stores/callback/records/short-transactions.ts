// A call to the records as a transaction of its own: begun, worked and committed by the transaction function, no longer waited for than a deadline allows.

import type { Isolation, RecordLimits, Turns } from '../../../atomicity/index.js'
import { type Clock, earlier, isRepriseError, RepriseError } from '../../../kernel/index.js'
import { LockTimeoutError } from '../../sql/index.js'
import { signsOf } from '../classification.js'
import { RolledBack } from '../inversion.js'
import { type CallbackOptions, rowsOf } from '../options.js'
import { isBusy, whileBusy } from './file-lock.js'
import type { RecordStatements, Run } from './statements.js'

/** What they need. */
export interface ShortTransactionParts<Tx> extends Pick<CallbackOptions<Tx>, 'dialect' | 'transaction' | 'query'> {
  /** Statements on records. */
  readonly statements: RecordStatements
  /** Who may have a connection to write. */
  readonly turns: Turns
  /** Who may have one to read; the same ones where there is no difference. */
  readonly readers: Turns
  /** Time. */
  readonly clock: Clock
  /** The longest wait for a connection, in ms. */
  readonly connectionWaitMs: number
}

/** A transaction that provably did nothing, because another one was in its way, is run this often. */
const mostRounds = 4
const harmless: ReadonlySet<string> = new Set(['40001', '40P01', 'P2034'])

type Kind = 'reading' | 'writing'

/** Short transactions of a store. */
export class ShortTransactions<Tx> {
  readonly #parts: ShortTransactionParts<Tx>

  constructor(parts: ShortTransactionParts<Tx>) {
    this.#parts = parts
  }

  /** Reads. */
  reading<Result>(limits: RecordLimits, work: (run: Run) => Promise<Result>): Promise<Result> {
    return this.#rounds(limits, 'reading', work)
  }

  /** Works, and commits. Work that throws leaves nothing behind. */
  writing<Result>(limits: RecordLimits, work: (run: Run) => Promise<Result>): Promise<Result> {
    return this.#rounds(limits, 'writing', async (run) => {
      await this.#limit(run, limits)
      return work(run)
    })
  }

  // What runs on cannot be called off here, so the server is told how long anybody waits for it.
  async #limit(run: Run, limits: RecordLimits): Promise<void> {
    const { dialect, statements } = this.#parts
    if (dialect === 'sqlite') return statements.lockFile(run)
    const ms = String(Math.min(Math.max(1, Math.ceil(this.#leftMs(limits))), 2 ** 31 - 1))
    await run("SELECT set_config('lock_timeout', $1, true) AS a, set_config('statement_timeout', $2, true) AS b", [
      ms,
      ms,
    ])
  }

  async #rounds<Result>(limits: RecordLimits, kind: Kind, work: (run: Run) => Promise<Result>): Promise<Result> {
    for (let round = 1; ; round++) {
      try {
        return await whileBusy({ waitMs: this.#lockLeftMs(limits), clock: this.#parts.clock }, () =>
          this.#once(limits, kind, work),
        )
      } catch (error) {
        if (isBusy(error)) throw new LockTimeoutError(error, [])
        if (round >= mostRounds || !signsOf(error).some((sign) => harmless.has(sign))) throw error
      }
    }
  }

  async #once<Result>(limits: RecordLimits, kind: Kind, work: (run: Run) => Promise<Result>): Promise<Result> {
    const { transaction, dialect, turns, readers } = this.#parts
    const readOnly = kind === 'reading'
    const turn = await this.#turn(limits, readOnly ? readers : turns)
    const isolation: Isolation = dialect === 'postgres' ? 'read-committed' : 'serializable'
    const call = { over: false }
    let result: { readonly value: Result } | undefined
    const transacted = async (): Promise<Result> => {
      try {
        await transaction(
          async (tx) => {
            result = { value: await work(this.#runner(tx, call)) }
            if (call.over) throw new RolledBack()
          },
          { isolation, readOnly },
        )
      } finally {
        turn.done()
      }
      if (result !== undefined) return result.value
      throw new RepriseError('ARGUMENT_INVALID', 'The transaction function ended without having called its work.')
    }
    return this.#inTime(limits, transacted(), call)
  }

  // After the deadline nothing more is sent, and what was is rolled back, unless COMMIT was on its way.
  #runner(tx: Tx, call: { readonly over: boolean }): Run {
    return async (text, values) => {
      if (call.over) throw new RolledBack()
      return rowsOf(await this.#parts.query(tx, text, [...values]))
    }
  }

  async #turn(limits: RecordLimits, turns: Turns): Promise<{ done(): void }> {
    const leftMs = this.#leftMs(limits)
    if (leftMs <= 0) throw tooLate()
    const waitMs = Math.min(this.#parts.connectionWaitMs, leftMs)
    const { signal, urgent = false } = limits
    try {
      return await turns.take(signal === undefined ? { waitMs, urgent } : { waitMs, urgent, signal })
    } catch (error) {
      throw isRepriseError(error, 'POOL_EXHAUSTED') && waitMs === leftMs ? tooLate(error) : error
    }
  }

  #inTime<Result>(limits: RecordLimits, transacted: Promise<Result>, call: { over: boolean }): Promise<Result> {
    return new Promise((resolve, reject) => {
      const cancel = this.#parts.clock.setTimer(Math.max(0, this.#leftMs(limits)), () => {
        call.over = true
        reject(tooLate())
      })
      transacted.then(resolve, reject).finally(cancel)
    })
  }

  #lockLeftMs({ deadline, lockDeadline = deadline }: RecordLimits): number {
    return this.#leftMs({ deadline: earlier(deadline, lockDeadline) })
  }

  #leftMs({ deadline }: RecordLimits): number {
    return deadline.expiresAtMs - this.#parts.clock.monotonicMs()
  }
}

function tooLate(cause?: unknown): RepriseError {
  const message = 'The deadline passed before the store answered.'
  return new RepriseError('DEADLINE_EXCEEDED', message, cause === undefined ? {} : { cause })
}
