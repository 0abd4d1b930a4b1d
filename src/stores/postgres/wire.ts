// Statements of one transaction on their way: one at a time, watched for errors, for locks they wait for, and for the
// end of the transaction under them.

import type { BeginSettings, Blocker, Emission, HandleLife, Isolation, SavepointSteps } from '../../atomicity/index.js'
import { type CancelTimer, type Clock, defined, detached, inTime, RepriseError } from '../../kernel/index.js'
import {
  endedElsewhere,
  type InnerStatement,
  InnerTransactions,
  LockTimeoutError,
  type SavepointTurns,
  savepointTurns,
} from '../sql/index.js'
import type { LockReports } from './asking/lock-report.js'
import { endsConnection, signsOf } from './classification.js'
import type { KnownConnection } from './connection/connections.js'
import { type Held, StandaloneStatements } from './connection/standalone.js'
import type { PostgresAnswer, PostgresPoolClient } from './options.js'

/** What the statements of a transaction need. */
export interface WireParts {
  readonly client: PostgresPoolClient
  readonly life: HandleLife
  readonly watches: LockWatches
  readonly connection: KnownConnection
  readonly clock: Clock
}

/** How a statement is sent when it is its turn: with BEGIN, where that is held back. */
type Sending<Answer> = (held: Held | undefined, sends: () => void) => Promise<Answer>

/** The way of the statements of one transaction. */
export class Wire {
  /** The longest that a statement waits for a lock, in ms. */
  lockWaitMs = 0
  /** Whether the transaction was declared read-only: then 25006 is the body's mistake, and no sign of a standby. */
  readOnly = false
  /** The isolation level that the transaction was begun with. */
  isolation: Isolation = 'read-committed'
  /** The backend, where it is known: then it is asked who blocks it. */
  pid: string | undefined
  /** How many statements are under way or wait for their turn. */
  pending = 0
  /** BEGIN, which goes out with the first statement; undefined: it has gone out. */
  held: Held | undefined
  /** Whether the transaction has ended: what still waits for its turn is not sent any more. */
  ended = false
  readonly #parts: WireParts
  readonly #queue: (() => void)[] = []
  // Made by the first savepoint: most transactions have none.
  #turns: SavepointTurns | undefined
  // Made by the first inner transaction of a query builder.
  #inner: InnerTransactions<SavepointSteps> | undefined
  // Made by the first statement that stands for itself.
  #standalone: StandaloneStatements | undefined
  #underWay = 0
  #whenIdle: (() => void)[] = []

  constructor(parts: WireParts) {
    this.#parts = parts
  }

  /**
   * Waits for the answer to BEGIN, and to what went with it; some of that may wait for a lock. Poisons the handle only
   * where the connection has ended.
   */
  async open<Answer>(sent: Promise<Answer>): Promise<Answer> {
    const { client, life, watches } = this.#parts
    const watch = watches.begin(this.pid, this.lockWaitMs)
    this.pending += 1
    try {
      const answer = await sent
      if (client.getTransactionStatus() !== 'T') throw poolingUnsupported(undefined)
      return answer
    } catch (error) {
      // What poisons decides. A pooler ends the connection with a code that would be worth another try.
      const shown = isStatementPooling(error) ? poolingUnsupported(error) : await this.#lockShown(error, watch)
      if (endsConnection(error)) life.poison(shown)
      throw shown
    } finally {
      if (watch !== undefined) watches.underWay.delete(watch)
      this.pending -= 1
    }
  }

  /**
   * Sends a statement of the body: a text, or a config of pg.
   *
   * @param by The client of a query builder that it comes from. Default: none.
   */
  send(config: string | object, values: unknown[] | undefined, by?: object): Promise<PostgresAnswer> {
    try {
      this.#parts.life.check()
      const turn = this.#turns?.turn()
      // The usual way, in which nobody waits, takes as few promises as can be.
      if (turn !== undefined) return this.#inTurn(turn, config, values, by)
      this.#inner?.demand(by)
      const { client } = this.#parts
      // As `#plain` does, without a call of it: every statement comes this way.
      return this.#watched((held, sends) =>
        held === undefined ? client.query(config as string, values) : held.sendWith(config, values, sends),
      )
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #plain(config: string | object, values: unknown[] | undefined): Sending<PostgresAnswer> {
    // pg takes a config too; the type of the port knows texts alone.
    return (held, sends) =>
      held === undefined ? this.#parts.client.query(config as string, values) : held.sendWith(config, values, sends)
  }

  /**
   * Sends a statement that stands for itself, as on a pool: one that fails is undone alone. Inside an inner transaction
   * of its client it is part of that. Beside one of another client it waits for the end of that.
   *
   * @param by The client that it comes from.
   */
  async sendAlone(config: string | object, values: unknown[] | undefined, by: object): Promise<PostgresAnswer> {
    const { client, connection, life } = this.#parts
    life.check()
    for (let wait = this.#othersEnd(by); wait !== undefined; wait = this.#othersEnd(by)) {
      await wait
      life.check()
    }
    if (this.#inner?.isOf(by)) return this.#watched(this.#plain(config, values))
    this.#standalone ??= new StandaloneStatements(client, connection)
    const statement = this.#standalone.statement(config, values)
    return this.#watched(statement.send, statement.undo)
  }

  // What to wait for before asking again: a savepoint or an inner transaction of others. Code in the callback of an
  // inner transaction that uses the pool instead of the handle it got would wait for itself, so the wait for one has a
  // limit: that for a lock.
  #othersEnd(by: object): Promise<void> | undefined {
    const turn = this.#turns?.turn()
    if (turn !== undefined) return turn
    const ends = this.#inner?.otherEnds(by)
    if (ends === undefined) return undefined
    return inTime({ clock: this.#parts.clock, limitMs: this.lockWaitMs, expired: waitedInVain }, ends)
  }

  async #inTurn(
    first: Promise<void>,
    config: string | object,
    values: unknown[] | undefined,
    by: object | undefined,
  ): Promise<PostgresAnswer> {
    for (let turn: Promise<void> | undefined = first; turn !== undefined; turn = this.#turns?.turn()) {
      await turn
      this.#parts.life.check()
    }
    this.#inner?.demand(by)
    return this.#watched(this.#plain(config, values))
  }

  /** Keeps what the body emits until COMMIT, when it is its turn. */
  keep(emissions: readonly Emission[]): Promise<void> | void {
    const { life } = this.#parts
    life.check()
    const turn = this.#turns?.turn()
    if (turn !== undefined) return turn.then(() => this.keep(emissions))
    this.#inner?.demand(undefined)
    life.emit(emissions)
  }

  /** Runs the work inside a savepoint. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#enter(async () => {
      this.#inner?.demand(undefined)
      return this.#parts.life.savepoint(this.#steps(), work)
    })
  }

  /**
   * Does in savepoints what a query builder says about a transaction of its own. False: it is a statement to be sent.
   *
   * @param by The client that it comes from.
   * @param waits Whether it waits for the inner transaction of another client; else it is refused.
   */
  async nest(statement: InnerStatement, by: object, waits: boolean): Promise<boolean> {
    const next = () => (waits ? this.#othersEnd(by) : this.#turns?.turn())
    for (let wait = next(); wait !== undefined; wait = next()) await wait
    this.#inner ??= new InnerTransactions(this.#parts.life, this.#steps(), (modes) => refuseOtherModes(modes, this))
    return this.#inner.perform(statement, by)
  }

  #steps(): SavepointSteps {
    const step = (text: string) => async (name: string) => {
      const said = text.replaceAll('?', name)
      await this.#watched((held, sends) => {
        // When it is its turn: what is before it may be a statement that stands for itself.
        const closing = this.#standalone?.close() ?? ''
        return this.#plain(text === open ? closing + said : said, undefined)(held, sends)
      })
    }
    return {
      open: step(open),
      release: step('RELEASE SAVEPOINT ?'),
      undo: step('ROLLBACK TO SAVEPOINT ?; RELEASE SAVEPOINT ?'),
    }
  }

  /**
   * Runs one statement with a limit of its own for locks. Three statements, and none of another call between them: it
   * would wait for its own lock as long as this one may, or leave its own limit behind.
   */
  withLockWait<Answer>(
    wait: number,
    run: (text: string, values: readonly unknown[]) => Promise<Answer>,
    text: string,
    values: readonly unknown[],
  ): Promise<Answer> {
    return this.#enter(async () => {
      const before = this.lockWaitMs
      const limit = (ms: number) => run("SELECT set_config('lock_timeout', $1, true)", [String(timeoutMs(ms))])
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

  #enter<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#turns ??= savepointTurns(this.#parts.life)
    return this.#turns.enter(work)
  }

  /** Resolves when nothing is under way any more. */
  async untilIdle(): Promise<void> {
    if (this.pending > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve))
  }

  /** Sends statements of Reprise's own inside the transaction; some of them may wait for a lock. */
  own<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    return this.#watched(send)
  }

  async #watched<Answer = PostgresAnswer>(
    send: Sending<Answer>,
    undo?: (error: unknown) => Promise<boolean>,
  ): Promise<Answer> {
    const { client, watches } = this.#parts
    let watch: LockWatch | undefined
    const sends = (): void => {
      if (watch !== undefined) watches.underWay.delete(watch)
      watch = watches.begin(this.pid, this.lockWaitMs)
    }
    let isSent = false
    this.pending += 1
    try {
      // One at a time, as pg asks for. A client in its pipeline mode takes as many as come, but not beside those that
      // stand for themselves, which are several statements each.
      const sideBySide = (client as { readonly pipeline?: boolean }).pipeline === true && this.#standalone === undefined
      if (this.pending > 1 && !sideBySide) await this.#queued()
      isSent = true
      this.#underWay += 1
      const { held } = this
      this.held = undefined
      if (held === undefined) watch = watches.begin(this.pid, this.lockWaitMs)
      const answer = await send(held, sends)
      // Whatever ended it, what came after ran in no transaction.
      if (client.getTransactionStatus() === 'I') throw endedElsewhere()
      return answer
    } catch (error) {
      throw await this.#failed(error, watch, undo)
    } finally {
      if (watch !== undefined) watches.underWay.delete(watch)
      this.pending -= 1
      if (isSent) this.#underWay -= 1
      if (this.#underWay === 0) this.#queue.shift()?.()
      if (this.pending === 0 && this.#whenIdle.length > 0) for (const tell of this.#whenIdle.splice(0)) tell()
    }
  }

  // A statement that the body did not wait for still runs before COMMIT, but never after ROLLBACK or on a connection
  // that was given back.
  async #queued(): Promise<void> {
    await new Promise<void>((resolve) => this.#queue.push(resolve))
    if (this.ended) throw new RepriseError('TRANSACTION_OVER', 'The transaction has ended; its handle cannot be used.')
    const first = this.#parts.life.poisoned
    if (first !== undefined) throw first.error
  }

  async #failed(
    error: unknown,
    watch: LockWatch | undefined,
    undo: ((error: unknown) => Promise<boolean>) | undefined,
  ): Promise<unknown> {
    const { life } = this.#parts
    const shown = this.#readOnlyShown(await this.#lockShown(error, watch))
    const ended = error instanceof RepriseError && error.code === 'TRANSACTION_ENDED_ELSEWHERE'
    if (ended || endsConnection(error)) life.poison(shown)
    else if (undo !== undefined && (await undo(error))) life.undone(shown)
    else life.failed(shown)
    return shown
  }

  async #lockShown(error: unknown, watch: LockWatch | undefined): Promise<unknown> {
    // One that waited in the queue is refused with the error of the one before it.
    if (error instanceof LockTimeoutError) return error
    const { watches, life } = this.#parts
    const { reports: locks } = watches
    const signs = signsOf(error)
    if (signs.includes('40P01') && life.poisoned?.error !== error) locks.deadlocked()
    if (!signs.includes('55P03')) return error
    // Without a question half-way it did not wait, as with NOWAIT, or too short.
    if (watch?.report === undefined) return new LockTimeoutError(error, [])
    const blockers = await watch.report
    const evidence = locks.evidenceFor(blockers, watch.waitMs)
    locks.timedOut(watch.waitMs)
    return new LockTimeoutError(error, blockers, evidence)
  }

  #readOnlyShown(error: unknown): unknown {
    if (!this.readOnly || error instanceof RepriseError || !signsOf(error).includes('25006')) return error
    return new RepriseError('TRANSACTION_READ_ONLY', 'The transaction was declared read-only.', { cause: error })
  }
}

const open = 'SAVEPOINT ?'

function waitedInVain(): RepriseError {
  const message =
    'An inner transaction on another client was still open when the wait for a lock was over. They share one connection: inside the callback of an inner transaction use the handle that it got, and not the pool.'
  return new RepriseError('SAVEPOINT_ORDER', message)
}

/**
 * Of a shorter wait nobody is asked who blocks it, in ms: the answer would come after its end, and cost a connection.
 */
const shortestReportedMs = 20

interface LockWatch {
  readonly pid: string
  /** How long the wait may take in all. */
  readonly waitMs: number
  readonly askAtMs: number
  report: Promise<readonly Blocker[]> | undefined
}

/**
 * The statements of a store that may be waiting for a lock. Half-way through its wait one is likely to end in vain, and
 * there is still somebody to ask about. One timer is for all of them, and goes on to the next one when it rings: one
 * for each would be set and cancelled with nearly every statement.
 */
export class LockWatches {
  /** Tells who blocks a backend, and why. */
  readonly reports: LockReports
  /** Of statements that were sent. Whoever gets the answer takes its watch out. */
  readonly underWay: Set<LockWatch> = new Set()
  readonly #clock: Clock
  #ringsAtMs = Number.POSITIVE_INFINITY
  #cancel: CancelTimer | undefined

  constructor(reports: LockReports, clock: Clock) {
    this.reports = reports
    this.#clock = clock
  }

  /** A statement is about to be sent. Undefined: nobody is asked about it. */
  begin(pid: string | undefined, waitMs: number): LockWatch | undefined {
    if (pid === undefined || waitMs < shortestReportedMs) return undefined
    const askAtMs = this.#clock.monotonicMs() + waitMs / 2
    const watch: LockWatch = { pid, waitMs, askAtMs, report: undefined }
    this.underWay.add(watch)
    if (askAtMs < this.#ringsAtMs) this.#ring()
    return watch
  }

  // Asks about those whose time has come, and sets the timer for the next one.
  readonly #ring = (): void => {
    const nowMs = this.#clock.monotonicMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const watch of this.underWay) {
      const { pid, waitMs, askAtMs } = watch
      if (askAtMs > nowMs) nextMs = Math.min(nextMs, askAtMs)
      // It has nothing to do with the work of whoever happened to set the timer.
      else watch.report ??= detached(() => this.reports.blockersOf(pid, waitMs))
    }
    this.#cancel?.()
    this.#ringsAtMs = nextMs
    const rings = Number.isFinite(nextMs)
    this.#cancel = rings ? this.#clock.setTimer(nextMs - nowMs, this.#ring, { keepAlive: false }) : undefined
  }
}

/** Whether a pooler refused BEGIN: PgBouncer says so in English, whatever the server speaks. */
export function isStatementPooling(error: unknown): boolean {
  return error instanceof Error && /statement pooling/i.test(error.message)
}

/** The error of a connection that is another one with each statement. */
export function poolingUnsupported(cause: unknown): RepriseError {
  const message = 'No transaction is open after BEGIN: a pooler hands out connections by the statement.'
  return new RepriseError('POOLING_UNSUPPORTED', message, defined({ cause }))
}

/** The isolation levels, in the words of PostgreSQL. */
export const levels: Readonly<Record<Isolation, string>> = {
  'read-committed': 'READ COMMITTED',
  'repeatable-read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
}

const eachMode =
  /isolation level (?:serializable|repeatable read|read (?:un)?committed)|read only|read write|(?:not )?deferrable|\S+/g

// A savepoint has no isolation level or access mode of its own. READ UNCOMMITTED is READ COMMITTED to PostgreSQL.
function refuseOtherModes(
  modes: readonly string[],
  { isolation, readOnly }: Pick<BeginSettings, 'isolation' | 'readOnly'>,
): void {
  const level = levels[isolation]
  const access = readOnly ? 'READ ONLY' : 'READ WRITE'
  const asked = modes.filter((word) => word !== ',').join(' ')
  for (const [mode] of asked.replaceAll('read uncommitted', 'read committed').matchAll(eachMode)) {
    const shown = mode.toUpperCase()
    if (shown === `ISOLATION LEVEL ${level}` || shown === access || shown === 'NOT DEFERRABLE') continue
    const message =
      `An inner transaction is a savepoint of the open one, which is ${level} and ${access}, and cannot be otherwise: ` +
      'give isolation or readOnly to the call that opens the transaction.'
    throw new RepriseError('TRANSACTION_STATEMENT', message, { details: { isolation, readOnly } })
  }
}

/** A time limit as SET takes it: 0 would switch it off, and a fraction is no number to it. */
export function timeoutMs(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms)), 2 ** 31 - 1)
}
