// One connection for one transaction: begin, claim, record, commit, and the watch over everything in between.

import {
  type AcquireLimits,
  type BeginSettings,
  type Blocker,
  type Expected,
  type HandleLife,
  handleLife,
  type Receipt,
  type RecordDraft,
  type RecordOutcome,
  type Session,
  type Stored,
  type Trace,
  type TransactionControls,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, defined, RepriseError } from '../../kernel/index.js'
import {
  endedElsewhere,
  type InnerStatement,
  LockTimeoutError,
  migrationMissing,
  notClaimed,
  postgresDialect,
  type SqlAnswer,
  type SqlDialect,
  type SqlExecutor,
  seenIn,
} from '../sql/index.js'
import type { LockReports } from './asking/lock-report.js'
import { isUnreplicated, type NoticeSource } from './asking/replicated.js'
import { askAll, askNumber, takeTrace, unreadableBackend } from './asking/trace.js'
import { isServerError, signsOf } from './classification.js'
import { type Connections, type KnownConnection, knownConnection } from './connection/connections.js'
import { type Bind, lastOf, PostgresHandle, type PostgresTransaction, type StatementPort } from './handle.js'
import { beginText, HeldBegin, type Opener } from './held-begin.js'
import type { PostgresAnswer, PostgresNotice, PostgresPoolClient } from './options.js'
import type { ClaimStatements } from './records/claim-statements.js'
import { literal } from './records/literal.js'
import { goneSign, literals } from './records/statements.js'
import { timeoutMs, Wire } from './wire.js'

/** What all sessions of a store share. */
export interface SessionContext<Bound> {
  readonly clock: Clock
  /** Claim and outcome of a key. */
  readonly statements: ClaimStatements
  /** Makes `tx.db`. */
  readonly bind: Bind<Bound>
  /** Whether transactions without a key take their trace with BEGIN. */
  readonly resolvesUnkeyed: boolean
  /** Tells who blocks a backend, and why. */
  readonly locks: LockReports
  /** Where the connection came from. */
  readonly connections: Pick<Connections, 'leave' | 'demandNewest'>
}

/** The sessions of a store, each on a connection of its own. */
export function sessionsOn<Bound>(
  connections: Connections,
  context: SessionContext<Bound>,
): (limits: AcquireLimits) => Promise<PostgresSession<Bound>> {
  return async (limits) => new PostgresSession(await connections.take(limits), context)
}

/** What became of a claim that was sent with BEGIN. */
type SentClaim =
  | { readonly id: StoredKey; readonly token: string; readonly inserted: boolean }
  | { readonly error: unknown }

/** A session on a connection. */
export class PostgresSession<Bound> implements Session<PostgresTransaction<Bound>>, StatementPort, SqlExecutor, Opener {
  readonly dialect: SqlDialect = postgresDialect
  readonly beginsAtOnce = true
  readonly life: HandleLife = handleLife()
  trace: Trace | undefined
  neverBegun = false
  readonly #client: PostgresPoolClient
  readonly #context: SessionContext<Bound>
  readonly #connection: KnownConnection
  readonly #wire: Wire
  readonly #onError = (error: unknown): void => {
    if (this.#wire.held !== undefined) this.neverBegun = true
    this.life.poison(error)
  }
  #lockWaitMs = 0
  #claimWaitMs = 0
  #blockers: Blocker[] = []
  // `sent`: its answer is not asked for yet. `theirs`: somebody else has the key. In both cases the body may do
  // nothing.
  #key: 'none' | 'sent' | 'theirs' | { readonly id: StoredKey; readonly token: string } = 'none'
  #sent: SentClaim | undefined
  // Whether the claim was a call of the prepared statement.
  #called = false
  #outcome: string | undefined
  #released = false

  constructor(client: PostgresPoolClient, context: SessionContext<Bound>) {
    this.#client = client
    this.#context = context
    this.#connection = knownConnection(client)
    this.#wire = new Wire({ client, life: this.life, clock: context.clock, locks: context.locks })
    client.on('error', this.#onError)
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.life.poisoned
  }

  poison(error: unknown): void {
    this.life.poison(error)
  }

  bodyThrew(error: unknown): void {
    this.life.threw(error)
  }

  begin(
    settings: BeginSettings,
    controls: TransactionControls,
  ): Promise<PostgresTransaction<Bound>> | PostgresTransaction<Bound> {
    const { claim, lockWaitMs, readOnly, answerMs } = settings
    const { backend, batches } = this.#connection
    const wire = this.#wire
    this.#lockWaitMs = lockWaitMs
    this.#claimWaitMs = Math.min(claim?.waitMs ?? lockWaitMs, lockWaitMs)
    if (claim?.blockers !== undefined) this.#blockers = claim.blockers
    wire.lockWaitMs = this.#claimWaitMs
    wire.readOnly = readOnly
    wire.isolation = settings.isolation
    if (backend?.changes === false) wire.pid = backend.pid
    const traced = settings.traced !== false && this.#context.resolvesUnkeyed
    let question: string | undefined
    if (!readOnly) {
      // The first transaction of a connection is always traced, so that its backend is known.
      if (backend === undefined || (traced && backend.changes)) question = askAll
      else if (traced) question = askNumber
    }
    const handle = new PostgresHandle(this, controls, this.#context.bind)
    if (settings.mayHold === undefined || answerMs === undefined || !batches)
      return this.open(settings, question, handle)
    const parts = { client: this.#client, connection: this.#connection, wire, clock: this.#context.clock, opener: this }
    wire.held = new HeldBegin(parts, settings, question, answerMs)
    return handle
  }

  /**
   * Sends BEGIN, and the claim with it where there is one.
   *
   * @param opened What is returned when the transaction is open.
   */
  async open<Opened>(settings: BeginSettings, question: string | undefined, opened: Opened): Promise<Opened> {
    const { claim, readOnly } = settings
    const wire = this.#wire
    const text = beginText(settings, question)
    if (question !== undefined) {
      // A connection whose backend is not known yet is asked first: nobody could tell who blocks its claim.
      const isKnown = this.#connection.backend !== undefined
      const answer = isKnown ? await wire.open(text) : await this.#openFirst(text, settings)
      await this.takeTrace(lastOf(answer).rows[0])
    } else if (claim !== undefined && !readOnly) await this.#beginWithClaim(text, claim.id, claim.draft)
    else await wire.open(text)
    return opened
  }

  /** Takes the trace out of the answer to the question. */
  async takeTrace(row: Readonly<Record<string, unknown>> | undefined): Promise<void> {
    const before = this.#connection.backend
    this.trace = await takeTrace(this.#client, row)
    this.#wire.pid = this.trace['pid']
    if (before === undefined || this.#connection.backend?.changes) this.#demandNewest()
  }

  // A role may be forbidden to ask where the server stands: then its transactions go on without that.
  async #openFirst(text: string, settings: BeginSettings): Promise<PostgresAnswer> {
    try {
      return await this.#wire.open(text)
    } catch (error) {
      if (!signsOf(error).includes('42501')) throw error
      await this.#client.query('ROLLBACK')
      this.#connection.backend = unreadableBackend(this.#client)
      return this.#wire.open(beginText(settings, askNumber))
    }
  }

  #demandNewest(): void {
    const { backend } = this.#connection
    if (backend === undefined) return
    try {
      this.#context.connections.demandNewest(backend)
    } catch (error) {
      this.life.poison(error)
      throw error
    }
  }

  // An error of the server may be the claim's: it is thrown by `claim`, where it means what it means in a transaction
  // that has begun.
  async #beginWithClaim(begin: string, id: StoredKey, draft: RecordDraft): Promise<void> {
    const { statements } = this.#context
    this.#key = 'sent'
    try {
      let answer: PostgresAnswer | undefined
      const call = statements.claimCall(this.#connection, id, draft)
      if (call !== undefined) {
        try {
          answer = await this.#wire.open(`${begin}; ${this.#limited(call)}`)
          if (call.startsWith('PREPARE')) statements.arePrepared(this.#connection)
          this.#called = true
        } catch (error) {
          // Nothing is begun: the backend has no statement of that name, or has one that was not expected.
          if (!statements.areLost(this.#connection, error)) throw error
          await this.#client.query('ROLLBACK')
        }
      }
      answer ??= await this.#wire.open(`${begin}; ${this.#limited(statements.claim(id, draft))}`)
      this.#sent = { id, token: draft.token, inserted: this.#rowCountOf(answer) === 1 }
    } catch (error) {
      if (!isServerError(error)) throw error
      this.life.poison(error)
      this.#sent = { error }
    }
  }

  // All of it in one message; where the statement fails, its transaction has failed, and the limit with it.
  #limited(text: string): string {
    if (this.#claimWaitMs >= this.#lockWaitMs) return text
    const [claimMs, afterwardsMs] = [timeoutMs(this.#claimWaitMs), timeoutMs(this.#lockWaitMs)]
    return `SET LOCAL lock_timeout = ${claimMs}; ${text}; SET LOCAL lock_timeout = ${afterwardsMs}`
  }

  // Of the statement inside a message that `#limited` made.
  #rowCountOf(answer: PostgresAnswer | readonly PostgresAnswer[]): number | null | undefined {
    const fromEnd = this.#claimWaitMs < this.#lockWaitMs ? -2 : -1
    return Array.isArray(answer) ? answer.at(fromEnd)?.rowCount : (answer as PostgresAnswer).rowCount
  }

  async claim(id: StoredKey, draft: RecordDraft): Promise<'claimed' | Stored | undefined> {
    const sent = this.#sent
    this.#sent = undefined
    let inserted: boolean
    if (sent === undefined || 'error' in sent) inserted = await this.#insert(id, draft, sent)
    else if (sent.id === id && sent.token === draft.token) inserted = sent.inserted
    else throw new RepriseError('MARKER_INVALID', 'Another claim than this one was sent with BEGIN.')
    if (inserted) {
      this.#key = { id, token: draft.token }
      this.#wire.lockWaitMs = this.#lockWaitMs
      return 'claimed'
    }
    this.#key = 'theirs'
    const { rows } = await this.#wire.send(this.#context.statements.records.readText(literal(id)), undefined)
    const { record, nowMs } = seenIn(rows[0])
    return record === undefined ? undefined : { record, nowMs }
  }

  // Sends the claim, or throws what the one that was sent with BEGIN failed with.
  async #insert(id: StoredKey, draft: RecordDraft, sent: { readonly error: unknown } | undefined): Promise<boolean> {
    try {
      if (sent !== undefined) throw sent.error
      const text = this.#limited(this.#context.statements.claim(id, draft))
      return this.#rowCountOf(await this.#wire.send(text, undefined)) === 1
    } catch (error) {
      throw postgresDialect.isMissing(signsOf(error), '') ? migrationMissing(error) : this.#withBlockers(error)
    }
  }

  // When the wait for a claim is nearly over, its last attempts are too short to ask who blocks them: it is those of
  // whom an earlier one was told.
  #withBlockers(error: unknown): unknown {
    if (!(error instanceof LockTimeoutError)) return error
    if (error.blockers.length > 0) this.#blockers.splice(0, this.#blockers.length, ...error.blockers)
    else if (this.#blockers.length > 0) {
      const evidence = this.#context.locks.evidenceFor(this.#blockers, this.#lockWaitMs)
      return new LockTimeoutError(error.cause, [...this.#blockers], evidence)
    }
    return error
  }

  async reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Promise<boolean> {
    const text = this.#limited(this.#context.statements.records.reclaimText(id, over, draft, literals))
    if (this.#rowCountOf(await this.#wire.send(text, undefined)) !== 1) return false
    this.#key = { id, token: draft.token }
    this.#wire.lockWaitMs = this.#lockWaitMs
    return true
  }

  /** Keeps the outcome until COMMIT, with which it is sent. */
  record(id: StoredKey, outcome: RecordOutcome): void {
    // Else it would wait for a savepoint that the body did not, and then commit.
    this.life.checkBeforeCommit()
    const key = this.#key
    if (typeof key !== 'object' || key.id !== id) {
      throw new RepriseError('MARKER_INVALID', 'The marker of the key was not claimed by this transaction.')
    }
    this.#outcome = this.#context.statements.outcome(this.#called, id, key.token, outcome)
  }

  settle(): Promise<void> | undefined {
    this.life.checkBeforeCommit()
    return this.life.settle()
  }

  async commit(): Promise<Receipt> {
    const { life } = this
    try {
      if (life.poisoned !== undefined) throw failedBefore(life.poisoned.error)
      life.checkBeforeCommit()
      if (this.#key === 'sent' || this.#key === 'theirs') throw notClaimed()
    } finally {
      // From here on nobody can send anything that would run behind COMMIT, in no transaction at all.
      life.end()
    }
    if (this.#wire.pending > 0) await this.#wire.untilIdle()
    const poisoned = this.poisoned
    if (poisoned !== undefined) throw failedBefore(poisoned.error)
    // The body sent nothing, so nothing was begun.
    if (this.#wire.held !== undefined) return { durability: 'promised' }
    const status = this.#client.getTransactionStatus()
    if (status !== 'T' && status !== 'E') throw endedElsewhere()
    const notices: PostgresNotice[] = []
    const onNotice = (notice: PostgresNotice): void => void notices.push(notice)
    const listening = this.#client as unknown as NoticeSource
    listening.on('notice', onNotice)
    this.#wire.pending += 1
    try {
      // Where the outcome cannot be written, the server does not come to COMMIT. In a transaction that has failed
      // nothing can be written any more, and COMMIT alone says so by its tag.
      const text = this.#outcome === undefined || status === 'E' ? 'COMMIT' : `${this.#outcome}; COMMIT`
      const { command } = lastOf(await this.#client.query(text))
      this.#wire.pending -= 1
      if (command !== 'COMMIT' || notices.length > 0) return this.#receipt(command, notices)
      return { durability: 'promised' }
    } catch (error) {
      // What has not answered is still under way, also where the connection is gone.
      if (isServerError(error)) this.#wire.pending -= 1
      throw this.#commitError(error)
    } finally {
      listening.removeListener('notice', onNotice)
    }
  }

  #receipt(command: string, notices: readonly PostgresNotice[]): Receipt {
    if (command === 'ROLLBACK') {
      const message = 'COMMIT was answered with ROLLBACK: a statement had failed before, and nothing was stored.'
      throw new RepriseError('COMMIT_ROLLED_BACK', message, defined({ cause: this.life.poisoned?.error }))
    }
    if (notices.some(({ code }) => code === '25P01')) throw endedElsewhere()
    if (command !== 'COMMIT') {
      throw new RepriseError('COMMIT_UNCLEAR', 'COMMIT was answered with something else.')
    }
    return { durability: notices.some(isUnreplicated) ? 'local' : 'promised' }
  }

  // Where the marker is gone, the server's error is the cause, and says that nothing was stored.
  #commitError(error: unknown): unknown {
    // The body may have thrown away what is prepared.
    if (this.#called) this.#context.statements.areLost(this.#connection, error)
    const isGone =
      this.#outcome !== undefined &&
      signsOf(error).includes('22P02') &&
      error instanceof Error &&
      error.message.includes(goneSign)
    return isGone
      ? new RepriseError('MARKER_INVALID', 'The marker that this transaction claimed is gone.', { cause: error })
      : error
  }

  async rollback(): Promise<void> {
    this.life.end()
    this.#wire.ended = true
    // The driver would queue it behind what is under way, and warn.
    await this.#wire.untilIdle()
    if (this.#wire.held === undefined) await this.#client.query('ROLLBACK')
  }

  release(fate: 'keep' | 'discard'): void {
    if (this.#released) return
    this.#released = true
    this.#wire.ended = true
    this.life.end()
    try {
      const answered = this.#wire.pending === 0
      if (!answered) this.#context.connections.leave(this.#client)
      else this.#client.release(fate !== 'keep' || this.#client.getTransactionStatus() !== 'I')
      // After the pool has put its own listener on.
      this.#client.removeListener('error', this.#onError)
    } catch {
      // Released by somebody else; there is nothing left to give back.
    }
  }

  /** Sends a statement of the body. */
  send(config: string | object, values: unknown[] | undefined, by?: object): Promise<PostgresAnswer> {
    if (this.#key === 'sent' || this.#key === 'theirs') return Promise.reject(notClaimed())
    return this.#wire.send(config, values, by)
  }

  /** Does in savepoints what a query builder says about a transaction of its own. */
  nest(statement: InnerStatement, by: object): Promise<boolean> {
    if (this.#key === 'sent' || this.#key === 'theirs') return Promise.reject(notClaimed())
    return this.#wire.nest(statement, by)
  }

  /** Sends a statement of the repeatable writes. */
  async run(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    const { rows, rowCount } = await this.send(text, [...values])
    return { rows, rowCount: rowCount ?? 0 }
  }

  /** Locks the rows of a SELECT. */
  async lock(select: string, values: readonly unknown[], wait: 'nowait' | number | undefined): Promise<SqlAnswer> {
    if (wait === 'nowait') return this.run(`${select} FOR UPDATE NOWAIT`, values)
    if (wait === undefined) return this.run(`${select} FOR UPDATE`, values)
    return this.#wire.withLockWait(wait, (text, given) => this.run(text, given), `${select} FOR UPDATE`, values)
  }

  /** Runs the work inside a savepoint. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#key === 'sent' || this.#key === 'theirs') return Promise.reject(notClaimed())
    return this.life.call(() => this.#wire.savepoint(work), 'poisoned')
  }
}

// COMMIT was not sent, so whatever it was, the transaction is dead.
function failedBefore(cause: unknown): RepriseError {
  const message = 'A statement of the transaction failed before COMMIT was sent; nothing was stored.'
  return new RepriseError('TRANSACTION_ABORTED', message, { cause })
}
