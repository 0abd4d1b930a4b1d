// Statements of one transaction on their way: one at a time, watched for errors, for locks they wait for, and for the end of the transaction under them.

import type { BeginSettings, Blocker, HandleLife, Isolation } from '../../atomicity/index.js'
import { type CancelTimer, type Clock, RepriseError } from '../../kernel/index.js'
import { LockTimeoutError, type SavepointTurns, savepointTurns } from '../sql/index.js'
import { endsConnection, signsOf } from './classification.js'
import type { PostgresAnswer, PostgresPoolClient } from './options.js'

/** What the statements of a transaction need. */
export interface WireParts {
  /** The connection. */
  readonly client: PostgresPoolClient
  /** Whether the handle can be used. */
  readonly life: HandleLife
  /** Time. */
  readonly clock: Clock
  /** Who blocks a backend. */
  readonly blockers: (pid: string) => Promise<readonly Blocker[]>
}

/** The way of the statements of one transaction. */
export class Wire {
  /** The longest that a statement waits for a lock, in ms. */
  lockWaitMs = 0
  /** Whether the transaction was declared read-only: then 25006 is the body's mistake, and no sign of a standby. */
  readOnly = false
  /** The backend, where it is known: then it is asked who blocks it. */
  pid: string | undefined
  readonly #parts: WireParts
  readonly #turns: SavepointTurns
  readonly #queue: (() => void)[] = []
  #pending = 0
  #whenIdle: (() => void)[] = []
  #ended = false

  constructor(parts: WireParts) {
    this.#parts = parts
    this.#turns = savepointTurns(parts.life)
  }

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#pending === 0
  }

  /** Sends BEGIN, and what goes with it in one message; some of that may wait for a lock. Poisons nothing. */
  async open(text: string): Promise<PostgresAnswer> {
    this.#pending += 1
    const watch = this.#watchLocks()
    try {
      return await this.#parts.client.query(text)
    } catch (error) {
      throw await this.#lockShown(error, watch)
    } finally {
      watch.cancel()
      this.#pending -= 1
    }
  }

  /** Sends a statement of the body: a text, or a config of pg. */
  send(config: string | object, values: unknown[] | undefined): Promise<PostgresAnswer> {
    const { life, client } = this.#parts
    // pg takes a config too; the type of the port knows texts alone.
    const send = (): Promise<PostgresAnswer> => client.query(config as string, values)
    try {
      life.check()
      const turn = this.#turns.turn()
      // The usual way, in which nobody waits, takes as few promises as can be.
      return turn === undefined ? this.#watched(send) : this.#inTurn(turn, send)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #inTurn(first: Promise<void>, send: () => Promise<PostgresAnswer>): Promise<PostgresAnswer> {
    for (let turn: Promise<void> | undefined = first; turn !== undefined; turn = this.#turns.turn()) {
      await turn
      this.#parts.life.check()
    }
    return this.#watched(send)
  }

  /** Runs the work inside a savepoint. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result> {
    const { life, client } = this.#parts
    const step = (text: string) => async (name: string) => {
      await this.#watched(() => client.query(text.replaceAll('?', name)))
    }
    const steps = {
      open: step('SAVEPOINT ?'),
      release: step('RELEASE SAVEPOINT ?'),
      undo: step('ROLLBACK TO SAVEPOINT ?; RELEASE SAVEPOINT ?'),
    }
    return this.#turns.enter(() => life.savepoint(steps, work))
  }

  /**
   * Runs one statement with a limit of its own for locks. Three statements, and none of another call between them: it would wait for its own lock as long as this one
   * may, or leave its own limit behind.
   */
  withLockWait<Answer>(
    wait: number,
    run: (text: string, values: readonly unknown[]) => Promise<Answer>,
    text: string,
    values: readonly unknown[],
  ): Promise<Answer> {
    return this.#turns.enter(async () => {
      const before = this.lockWaitMs
      const limit = (ms: number) => run("SELECT set_config('lock_timeout', $1, true)", [String(wholeMs(ms))])
      const waitMs = Math.min(wait, before)
      await limit(waitMs)
      this.lockWaitMs = waitMs
      try {
        const answer = await run(text, values)
        await limit(before)
        return answer
      } finally {
        this.lockWaitMs = before
      }
    })
  }

  /** Resolves when nothing is under way any more; undefined: nothing is. */
  untilIdle(): Promise<void> | undefined {
    if (this.#pending === 0) return undefined
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve)
    })
  }

  /** What still waits for its turn is not sent any more. */
  end(): void {
    this.#ended = true
  }

  async #watched(send: () => Promise<PostgresAnswer>): Promise<PostgresAnswer> {
    this.#pending += 1
    let watch = unwatched
    try {
      // One at a time, as pg asks for; a client in its pipeline mode takes as many as come.
      if (this.#pending > 1 && !this.#pipelines) await this.#queued()
      watch = this.#watchLocks()
      const answer = await send()
      // Whatever ended it, what came after ran in no transaction.
      if (this.#parts.client.getTransactionStatus() === 'I') throw endedElsewhere()
      return answer
    } catch (error) {
      throw await this.#failed(error, watch)
    } finally {
      watch.cancel()
      this.#pending -= 1
      this.#queue.shift()?.()
      if (this.#pending === 0 && this.#whenIdle.length > 0) for (const tell of this.#whenIdle.splice(0)) tell()
    }
  }

  // A statement that the body did not wait for still runs before COMMIT, but never after ROLLBACK or on a connection that was given back.
  async #queued(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#queue.push(resolve)
    })
    if (this.#ended) throw new RepriseError('TRANSACTION_OVER', 'The transaction has ended; its handle cannot be used.')
    const first = this.#parts.life.poisoned
    if (first !== undefined) throw first.error
  }

  get #pipelines(): boolean {
    return (this.#parts.client as { readonly pipeline?: boolean }).pipeline === true
  }

  async #failed(error: unknown, watch: LockWatch): Promise<unknown> {
    const { life } = this.#parts
    const shown = this.#explained(await this.#lockShown(error, watch))
    const ended = error instanceof RepriseError && error.code === 'TRANSACTION_ENDED_ELSEWHERE'
    if (ended || endsConnection(error)) life.poison(shown)
    else life.failed(shown)
    return shown
  }

  async #lockShown(error: unknown, watch: LockWatch): Promise<unknown> {
    // One that waited in the queue is refused with the error of the one before it.
    const lockTimeout = signsOf(error).includes('55P03') && !(error instanceof LockTimeoutError)
    return lockTimeout ? new LockTimeoutError(error, (await watch.report) ?? []) : error
  }

  #explained(error: unknown): unknown {
    if (!this.readOnly || error instanceof RepriseError || !signsOf(error).includes('25006')) return error
    return new RepriseError('TRANSACTION_READ_ONLY', 'The transaction was declared read-only.', { cause: error })
  }

  // Half-way through the wait it is likely to end in vain, and there is still somebody to ask about.
  #watchLocks(): LockWatch {
    const { pid } = this
    if (pid === undefined || this.lockWaitMs < shortestReportedMs) return unwatched
    const { clock, blockers } = this.#parts
    let cancel: CancelTimer | undefined
    const watch: LockWatch = { report: undefined, cancel: () => cancel?.() }
    const ask = (): void => {
      watch.report = blockers(pid)
    }
    cancel = clock.setTimer(this.lockWaitMs / 2, ask, { keepAlive: false })
    return watch
  }
}

/** Of a shorter wait nobody is asked who stands before it, in ms: the answer would come after its end, and cost a connection. */
const shortestReportedMs = 20

interface LockWatch {
  report: Promise<readonly Blocker[]> | undefined
  readonly cancel: () => void
}

const unwatched: LockWatch = { report: undefined, cancel: () => undefined }

/** The error of a transaction that was ended by something other than its owner. */
export function endedElsewhere(): RepriseError {
  return new RepriseError(
    'TRANSACTION_ENDED_ELSEWHERE',
    'The transaction was ended by something other than its owner; what ran after that ran outside of it.',
  )
}

/** Whether a pooler refused BEGIN: PgBouncer says so in English, whatever the server speaks. */
export function isStatementPooling(error: unknown): boolean {
  return error instanceof Error && /statement pooling/i.test(error.message)
}

/** The error of a connection that is another one with each statement. */
export function poolingUnsupported(cause: unknown): RepriseError {
  const message = 'No transaction is open after BEGIN: a pooler hands out connections by the statement.'
  return new RepriseError('POOLING_UNSUPPORTED', message, cause === undefined ? {} : { cause })
}

const levels: Readonly<Record<Isolation, string>> = {
  'read-committed': 'READ COMMITTED',
  'repeatable-read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
}

/** BEGIN with its limits, and a question behind it where there is one. */
export function beginText(settings: BeginSettings, question: string | undefined): string {
  const mode = settings.readOnly ? ' READ ONLY' : ''
  const begin = `BEGIN ISOLATION LEVEL ${levels[settings.isolation]}${mode}; ${limitsOf(settings)}`
  return question === undefined ? begin : `${begin}; ${question}`
}

// A statement that outlives the body would go on with its locks until it is through; the server ends it. A wait for a lock must end as one, so its limit stays below.
// COMMIT is not bounded by it.
function limitsOf({ idleMs, lockWaitMs }: BeginSettings): string {
  const statementMs = Math.max(idleMs, lockWaitMs + 1_000)
  return `SET LOCAL idle_in_transaction_session_timeout = ${wholeMs(idleMs)}; SET LOCAL lock_timeout = ${wholeMs(lockWaitMs)}; SET LOCAL statement_timeout = ${wholeMs(statementMs)}`
}

/** How long a claim that goes with BEGIN waits for its lock, in ms. */
export function claimWaitMs({ claim, lockWaitMs }: BeginSettings): number {
  return claim === undefined ? 0 : Math.min(claim.waitMs ?? lockWaitMs, lockWaitMs)
}

/** A limit as SET takes it: 0 would switch it off, and a fraction is no number to it. */
export function wholeMs(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms)), 2 ** 31 - 1)
}
