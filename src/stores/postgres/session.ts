// One connection for one transaction: begin, claim, record, commit, and the watch over everything in between.

import {
  type AcquireLimits,
  type BeginSettings,
  type Blocker,
  type Emission,
  type EmissionSink,
  type Emitted,
  type Expected,
  type HandleLife,
  handleLife,
  type MessageDraft,
  type Outbox,
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
  type EmitStatements,
  emitError,
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
  storableMs,
} from '../sql/index.js'
import { isUnreplicated, type NoticeSource } from './asking/replicated.js'
import { askAll, askNumber, takeTrace, unreadableBackend } from './asking/trace.js'
import { isServerError, signsOf } from './classification.js'
import type { AmbientTransactions } from './connection/ambient.js'
import { Batch, ownStatement, type Step, type StepAnswer, sendBatch } from './connection/batch.js'
import { type Connections, type KnownConnection, knownConnection } from './connection/connections.js'
import { countOf, isUnprepared, mostLost, sendEach } from './connection/steps.js'
import { type Bind, lastOf, PostgresHandle, type PostgresTransaction, type StatementPort } from './handle.js'
import { beginSteps, beginText, HeldBegin, lockLimit, type Opener } from './held-begin.js'
import type { PostgresAnswer, PostgresNotice, PostgresPoolClient } from './options.js'
import { commitStep, goneSign, type KeyStatements, rowOfRecord, utf8Step } from './records/key-statements.js'
import { type LockWatches, timeoutMs, Wire } from './wire.js'

/** What all sessions of a store share. */
export interface SessionContext<Bound> {
  readonly clock: Clock
  /** Claim and outcome of a key. */
  readonly statements: KeyStatements
  readonly outbox: Outbox
  /** Writes what transactions emit. */
  readonly emits: EmitStatements
  /** Makes `tx.db`. */
  readonly bind: Bind<Bound>
  /** Whether transactions without a key take their trace with BEGIN. */
  readonly resolvesUnkeyed: boolean
  /** Finds out who blocks a statement, and why. */
  readonly watches: LockWatches
  /** Finds the transaction that code runs in; undefined: nobody asks. */
  readonly ambient: { transactions: AmbientTransactions | undefined }
  /** Where the connection came from. */
  readonly connections: Pick<Connections, 'leave' | 'demandNewest'>
  /** Whether statements of our own inside the body have names: until a backend turns out to have lost one. */
  readonly keeping: { plans: boolean }
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
export class PostgresSession<Bound>
  implements Session<PostgresTransaction<Bound>>, StatementPort, SqlExecutor, EmissionSink, Opener
{
  readonly dialect: SqlDialect = postgresDialect
  readonly beginsAtOnce = true
  readonly life: HandleLife = handleLife()
  trace: Trace | undefined
  enters: Session<PostgresTransaction<Bound>>['enters']
  emitted: (() => void) | undefined
  neverBegun = false
  named = false
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
  #endsAtMs: number | undefined
  #blockers: Blocker[] = []
  // `sent`: its answer is not asked for yet. `theirs`: somebody else has the key. In both cases the body may do
  // nothing.
  #key: 'none' | 'sent' | 'theirs' | { readonly id: StoredKey; readonly token: string } = 'none'
  #sent: SentClaim | undefined
  // The outcome and COMMIT.
  #end: readonly Step[] | undefined
  #released = false

  constructor(client: PostgresPoolClient, context: SessionContext<Bound>) {
    this.#client = client
    this.#context = context
    this.#connection = knownConnection(client)
    const { watches, clock } = context
    this.#wire = new Wire({ client, life: this.life, watches, connection: this.#connection, clock })
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
    this.#endsAtMs = settings.endsAtMs
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
    this.enters = this.#context.ambient.transactions?.entering(this)
    if (question === undefined && claim !== undefined && !readOnly && batches) {
      return this.#beginWithClaim(settings, claim.id, claim.draft, handle)
    }
    if (settings.mayHold === undefined || answerMs === undefined || !batches)
      return this.open(settings, question, handle)
    const parts = { client: this.#client, connection: this.#connection, wire, clock: this.#context.clock, opener: this }
    wire.held = new HeldBegin(parts, settings, question, answerMs)
    return handle
  }

  /**
   * Sends BEGIN by itself.
   *
   * @param opened What is returned when the transaction is open.
   */
  async open<Opened>(settings: BeginSettings, question: string | undefined, opened: Opened): Promise<Opened> {
    const text = beginText(settings, question)
    // A connection whose backend is not known yet is asked first: nobody could tell who blocks its claim.
    const isKnown = this.#connection.backend !== undefined || question === undefined
    const answer = isKnown ? await this.#wire.open(this.#client.query(text)) : await this.#openFirst(text, settings)
    if (question !== undefined) await this.takeTrace(lastOf(answer).rows[0])
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
      return await this.#wire.open(this.#client.query(text))
    } catch (error) {
      if (!signsOf(error).includes('42501')) throw error
      await this.#client.query('ROLLBACK')
      this.#connection.backend = unreadableBackend(this.#client)
      return this.#wire.open(this.#client.query(beginText(settings, askNumber)))
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
  async #beginWithClaim<Opened>(
    settings: BeginSettings,
    id: StoredKey,
    draft: RecordDraft,
    opened: Opened,
  ): Promise<Opened> {
    const { statements } = this.#context
    const client = this.#client
    const connection = this.#connection
    const begin = beginSteps(settings, undefined, this.#claimWaitMs)
    const { mode, token, operation = null, scope = null, fingerprint = null, input = null } = draft
    const values = [id, mode, token, operation, scope, fingerprint, input]
    const steps = [...begin, ...statements.prepareEnd, { statement: statements.claim, values }]
    // What comes after the claim waits for as long as the body's statements do.
    if (this.#claimWaitMs < this.#lockWaitMs) {
      steps.push({ statement: lockLimit, values: [String(timeoutMs(this.#lockWaitMs))] })
    }
    for (;;) {
      const named = connection.lost < mostLost
      const sent = sendBatch<readonly StepAnswer[]>(client, connection, new Batch(steps, undefined, undefined, named))
      if (sent === undefined) {
        await client.query('ROLLBACK')
        return this.open(settings, undefined, opened)
      }
      this.#key = 'sent'
      try {
        const answers = await this.#wire.open(sent)
        this.named = named
        this.#sent = { id, token, inserted: answers[2]?.tag === 'INSERT 0 1' }
        return opened
      } catch (error) {
        if (!isServerError(error)) throw error
        // Nothing is begun where the backend has lost what was prepared.
        if (named && isUnprepared(client, connection, error)) await client.query('ROLLBACK')
        else {
          this.life.poison(error)
          this.#sent = { error }
          return opened
        }
      }
    }
  }

  // A statement that waits no longer than a claim may.
  async #withinClaimWait(step: Step): Promise<StepAnswer | undefined> {
    if (this.#claimWaitMs >= this.#lockWaitMs) return (await this.#sendOwn([step]))[0]
    const limit = (ms: number): Step => ({ statement: lockLimit, values: [String(timeoutMs(ms))] })
    return (await this.#sendOwn([limit(this.#claimWaitMs), step, limit(this.#lockWaitMs)]))[1]
  }

  // Without names: an error of them would end the transaction.
  #sendOwn(steps: readonly Step[]): Promise<readonly StepAnswer[]> {
    const client = this.#client
    const batch = new Batch(steps, undefined, undefined, false)
    return this.#wire.own(() => sendBatch(client, this.#connection, batch) ?? sendEach(client, steps))
  }

  claim(id: StoredKey, draft: RecordDraft): 'claimed' | Promise<'claimed' | Stored | undefined> {
    const sent = this.#sent
    this.#sent = undefined
    if (sent === undefined || 'error' in sent) return this.#claimApart(id, draft, sent)
    const { token } = draft
    if (sent.id !== id || sent.token !== token) {
      return Promise.reject(new RepriseError('MARKER_INVALID', 'Another claim than this one was sent with BEGIN.'))
    }
    if (!sent.inserted) return this.#readTheirs(id)
    this.#key = { id, token }
    this.#wire.lockWaitMs = this.#lockWaitMs
    return 'claimed'
  }

  async #claimApart(
    id: StoredKey,
    draft: RecordDraft,
    failed: { readonly error: unknown } | undefined,
  ): Promise<'claimed' | Stored | undefined> {
    this.#sent = { id, token: draft.token, inserted: await this.#insert(id, draft, failed) }
    return this.claim(id, draft)
  }

  async #readTheirs(id: StoredKey): Promise<Stored | undefined> {
    this.#key = 'theirs'
    const [answer] = await this.#sendOwn([this.#context.statements.read(id)])
    const { record, nowMs } = seenIn(rowOfRecord(answer?.rows[0]))
    return record === undefined ? undefined : { record, nowMs }
  }

  // Sends the claim, or throws what the one that was sent with BEGIN failed with.
  async #insert(id: StoredKey, draft: RecordDraft, sent: { readonly error: unknown } | undefined): Promise<boolean> {
    try {
      if (sent !== undefined) throw sent.error
      return countOf(await this.#withinClaimWait(this.#context.statements.claimAlone(id, draft))) === 1
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
      const evidence = this.#context.watches.reports.evidenceFor(this.#blockers, this.#lockWaitMs)
      return new LockTimeoutError(error.cause, [...this.#blockers], evidence)
    }
    return error
  }

  async reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Promise<boolean> {
    const answer = await this.#withinClaimWait(this.#context.statements.reclaim(id, over, draft))
    if (countOf(answer) !== 1) return false
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
    const { state, codec = null, value = null, rememberedMs } = outcome
    const expiresInMs = rememberedMs === Number.POSITIVE_INFINITY ? null : String(storableMs(rememberedMs))
    const values = [id, key.token, state, codec, value, expiresInMs]
    if (value?.includes('\0')) {
      throw new RepriseError('ARGUMENT_INVALID', 'A text with NUL cannot be stored in PostgreSQL.')
    }
    this.#end = [{ statement: this.#context.statements.outcome, values }, commitStep]
  }

  settle(): Promise<void> | undefined {
    this.life.checkBeforeCommit()
    const settling = this.life.settle()
    if (settling === undefined && this.life.emissions === undefined) return undefined
    return this.#settled(settling)
  }

  // A body that sent nothing has begun nothing: what it emitted needs a transaction to commit with. It is begun apart
  // from COMMIT, so that its trace is known should the answer to COMMIT be lost.
  async #settled(settling: Promise<void> | undefined): Promise<void> {
    await settling
    if (this.life.emissions === undefined) return
    if (this.#wire.held !== undefined) await this.#wire.send('SELECT 1', undefined)
    this.emitted = this.#context.outbox.wake
  }

  async commit(): Promise<Receipt> {
    const { life } = this
    const client = this.#client
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
    const status = client.getTransactionStatus()
    if (status !== 'T' && status !== 'E') throw endedElsewhere()
    const notices: PostgresNotice[] = []
    const onNotice = (notice: PostgresNotice): void => void notices.push(notice)
    const listening = client as unknown as NoticeSource
    listening.on('notice', onNotice)
    this.#wire.pending += 1
    try {
      // Where the outcome cannot be written, the server does not come to COMMIT. In a transaction that has failed
      // nothing can be written any more, and COMMIT alone says so by its tag.
      let end = this.#end
      if (status === 'E') end = undefined
      else if (life.emissions !== undefined) end = this.#emitting(life.emissions)
      // What a body has set for its own statements must not change what is stored.
      if (end !== undefined && !this.#connection.isUtf8) end = [utf8Step, ...end]
      let command: string
      if (end === undefined) command = lastOf(await client.query('COMMIT')).command
      else {
        const batch = new Batch(end, undefined, undefined, this.named)
        const sent = sendBatch<readonly StepAnswer[]>(client, this.#connection, batch) ?? sendEach(client, end)
        command = (await sent).at(-1)?.tag ?? ''
      }
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

  // What leaves with COMMIT. Behind the outcome, so that the heads of keys, which others wait for, are locked as late
  // as can be. Their wait ends as one for a lock, which is certain, before that for COMMIT does, which is not.
  #emitting(emissions: readonly Emission[]): readonly Step[] {
    const { clock, emits } = this.#context
    const leftMs = this.#endsAtMs === undefined ? Number.POSITIVE_INFINITY : this.#endsAtMs - clock.monotonicMs()
    const waitMs = Math.min(this.#wire.lockWaitMs, leftMs / 2)
    const { text, values } = emits.atOnce(emissions)
    // Behind a pooler the backend may be one on which another connection prepared what begins a transaction, and this
    // not.
    const statement = this.#connection.backend?.changes === false ? ownStatement(text) : { name: '', text }
    return [
      ...(this.#end?.slice(0, -1) ?? []),
      { statement: lockLimit, values: [String(timeoutMs(waitMs))] },
      { statement, values },
      commitStep,
    ]
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

  // The server's error stays the cause: it says that nothing was stored.
  #commitError(error: unknown): unknown {
    const emits = this.life.emissions !== undefined
    if (this.#end === undefined && !emits) return error
    // The body may have thrown away what is prepared.
    isUnprepared(this.#client, this.#connection, error)
    const signs = signsOf(error)
    if (signs.includes('22P02') && error instanceof Error && error.message.includes(goneSign)) {
      return new RepriseError('MARKER_INVALID', 'The marker that this transaction claimed is gone.', { cause: error })
    }
    if (!emits) return error
    if (signs.includes('55P03')) return new LockTimeoutError(error, [])
    return postgresDialect.isMissing(signs, '') ? migrationMissing(error) : emitError(error)
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

  /** Sends a statement of the ambient pool, which stands for itself. */
  sendAlone(config: string | object, values: unknown[] | undefined, by: object): Promise<PostgresAnswer> {
    if (this.#key === 'sent' || this.#key === 'theirs') return Promise.reject(notClaimed())
    return this.#wire.sendAlone(config, values, by)
  }

  /**
   * Sends a statement of our own inside the body, under a name where nothing speaks against it. Behind a pooler it is
   * not known before the answer whether the backend is still the same one: whoever finds out that it is not has its
   * transaction repeated, and from then on nobody of this store uses names.
   */
  async sendKept(text: string, values: unknown[]): Promise<PostgresAnswer> {
    const { keeping } = this.#context
    if (!keeping.plans || this.#connection.backend?.changes !== false) return this.send(text, values)
    try {
      return await this.send({ text, name: ownStatement(text).name }, values)
    } catch (error) {
      if (isUnprepared(this.#client, this.#connection, error)) keeping.plans = false
      throw error
    }
  }

  get readOnly(): boolean {
    return this.#wire.readOnly
  }

  emit(given: MessageDraft | readonly MessageDraft[]): Emitted | Promise<Emitted> {
    return this.#context.outbox.emit(given, this)
  }

  /** Keeps what the body emits until COMMIT. */
  keep(emissions: readonly Emission[]): Promise<void> | void {
    if (this.#key === 'sent' || this.#key === 'theirs') throw notClaimed()
    return this.#wire.keep(emissions)
  }

  /** Does in savepoints what a query builder says about a transaction of its own. */
  nest(statement: InnerStatement, by: object, waits: boolean = false): Promise<boolean> {
    if (this.#key === 'sent' || this.#key === 'theirs') return Promise.reject(notClaimed())
    return this.#wire.nest(statement, by, waits)
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
