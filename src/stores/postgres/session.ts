// One connection for one transaction: begin, claim, record, commit, and the watch over everything in between.

import {
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
import { type Clock, RepriseError } from '../../kernel/index.js'
import type { SqlAnswer, SqlExecutor } from '../sql/index.js'
import type { Traces } from './asking/trace.js'
import { endsConnection, isServerError } from './classification.js'
import {
  lastOf,
  type PostgresTransaction,
  postgresHandle,
  type StatementPort,
  type TransactionClient,
  type TransactionPool,
} from './handle.js'
import type { PostgresAnswer, PostgresNotice, PostgresPoolClient } from './options.js'
import { TransactionClaim } from './records/claim.js'
import type { KeptStatements } from './records/kept-statements.js'
import type { RecordTables } from './records/statements.js'
import { beginText, claimWaitMs, endedElsewhere, isStatementPooling, poolingUnsupported, Wire } from './wire.js'

/** What all sessions of a store share. */
export interface SessionContext<Bound> {
  /** Time. */
  readonly clock: Clock
  /** Reprise's own tables. */
  readonly tables: RecordTables
  /** Those of its statements that are prepared on connections. */
  readonly kept: KeptStatements
  /** Makes `tx.db`. */
  readonly bind: (client: TransactionClient, pool: TransactionPool) => Bound
  /** What is known of the servers behind the connections. */
  readonly traces: Traces
  /** Whether transactions without a key take their trace with BEGIN. */
  readonly resolvesUnkeyed: boolean
  /** Who blocks a backend. */
  readonly blockers: (pid: string) => Promise<readonly Blocker[]>
}

/** A session on a connection. */
export class PostgresSession<Bound> implements Session<PostgresTransaction<Bound>>, StatementPort, SqlExecutor {
  readonly dialect = 'postgres'
  readonly beginWaitMs: (settings: BeginSettings) => number = claimWaitMs
  readonly #client: PostgresPoolClient
  readonly #context: SessionContext<Bound>
  readonly life: HandleLife = handleLife()
  readonly #wire: Wire
  readonly #claim: TransactionClaim
  readonly #onError = (error: unknown): void => this.life.poison(error)
  #trace: Trace | undefined
  #lockWaitMs = 0
  #released = false

  constructor(client: PostgresPoolClient, context: SessionContext<Bound>) {
    this.#client = client
    this.#context = context
    const { clock, blockers } = context
    this.#wire = new Wire({ client, life: this.life, clock, blockers })
    this.#claim = new TransactionClaim(context.tables, (text) => this.#wire.send(text, undefined))
    client.on('error', this.#onError)
  }

  get trace(): Trace | undefined {
    return this.#trace
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.life.poisoned
  }

  poison(error: unknown): void {
    this.life.poison(error)
  }

  async begin(settings: BeginSettings, controls: TransactionControls): Promise<PostgresTransaction<Bound>> {
    const { traces } = this.#context
    const { claim, lockWaitMs } = settings
    this.#lockWaitMs = lockWaitMs
    this.#wire.lockWaitMs = claim === undefined ? lockWaitMs : claimWaitMs(settings)
    if (this.#wire.lockWaitMs < lockWaitMs) {
      this.#claim.limit({ waitMs: this.#wire.lockWaitMs, afterwardsMs: lockWaitMs })
    }
    this.#wire.readOnly = settings.readOnly
    const traced = settings.traced !== false && this.#context.resolvesUnkeyed
    const asked = settings.readOnly ? undefined : traces.statement(this.#client, traced)
    const text = beginText(settings, asked)
    this.#wire.pid = traces.pidOf(this.#client)
    // A connection whose backend is not known yet is asked first: nobody could tell who stands before its claim.
    if (claim !== undefined && asked === undefined && !settings.readOnly) {
      await this.#beginWithClaim(text, claim)
    } else {
      const answer = lastOf(await this.#begin(text))
      if (asked !== undefined) {
        const taken = traces.take(this.#client, answer.rows[0] ?? {})
        this.#trace = taken instanceof Promise ? await taken : taken
      }
      this.#wire.pid = this.#trace?.['pid'] ?? traces.pidOf(this.#client)
    }
    return postgresHandle(this, this, controls, this.#context.bind)
  }

  async #begin(text: string): Promise<PostgresAnswer> {
    let answer: PostgresAnswer
    try {
      answer = await this.#wire.open(text)
    } catch (error) {
      throw this.#beginFailed(error)
    }
    if (this.#client.getTransactionStatus() !== 'T') throw poolingUnsupported(undefined)
    return answer
  }

  // An error of the server may be the claim's: it is told by `claim`, where it means what it means in a transaction that has begun.
  async #beginWithClaim(text: string, { id, draft }: NonNullable<BeginSettings['claim']>): Promise<void> {
    const claim = this.#claim
    try {
      const kept = await this.#beginKept(text, id, draft)
      const answer = kept ?? (await this.#begin(`${text}; ${claim.message(id, draft)}`))
      claim.sent(id, draft, { inserted: claim.insertedBy(answer) })
    } catch (error) {
      if (!isServerError(error)) throw error
      this.life.poison(error)
      claim.sent(id, draft, { error })
    }
  }

  // Undefined: nothing is begun, since the backend has no statement of that name, or has one that was not expected.
  async #beginKept(text: string, id: StoredKey, draft: RecordDraft): Promise<PostgresAnswer | undefined> {
    const { kept } = this.#context
    const message = this.#claim.keptMessage(kept, this.#client, id, draft)
    if (message === undefined) return undefined
    try {
      const answer = await this.#begin(`${text}; ${message}`)
      kept.areOn(this.#client)
      this.#claim.wasKept(kept, this.#client)
      return answer
    } catch (error) {
      if (!kept.isLost(this.#client, error)) throw error
      await this.#client.query('ROLLBACK')
      return undefined
    }
  }

  #beginFailed(error: unknown): unknown {
    // What poisons decides. A pooler ends the connection with a code that would be worth another try.
    const shown = isStatementPooling(error) ? poolingUnsupported(error) : error
    if (endsConnection(error)) this.life.poison(shown)
    return shown
  }

  async claim(id: StoredKey, draft: RecordDraft): Promise<'claimed' | Stored> {
    const claimed = await this.#claim.claim(id, draft)
    if (claimed === 'claimed') this.#wire.lockWaitMs = this.#lockWaitMs
    return claimed
  }

  async reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Promise<boolean> {
    const reclaimed = await this.#claim.reclaim(id, over, draft)
    if (reclaimed) this.#wire.lockWaitMs = this.#lockWaitMs
    return reclaimed
  }

  async record(id: StoredKey, outcome: RecordOutcome): Promise<void> {
    // Else it would wait for a savepoint that the body did not, and then commit.
    this.life.checkBeforeCommit()
    this.#claim.record(id, outcome)
  }

  settle(): Promise<void> | undefined {
    this.life.checkBeforeCommit()
    return this.life.settle()
  }

  async commit(): Promise<Receipt> {
    try {
      this.#refusePoisoned()
      this.life.checkBeforeCommit()
      const { refusal } = this.#claim
      if (refusal !== undefined) throw refusal
    } finally {
      // From here on nobody can send anything that would run behind COMMIT, in no transaction at all.
      this.life.end()
    }
    const busy = this.#wire.untilIdle()
    if (busy !== undefined) await busy
    this.#refusePoisoned()
    const status = this.#client.getTransactionStatus()
    if (status !== 'T' && status !== 'E') throw endedElsewhere()
    const notices: PostgresNotice[] = []
    const onNotice = (notice: PostgresNotice): void => {
      notices.push(notice)
    }
    const listening = this.#client as unknown as NoticeSource
    listening.on('notice', onNotice)
    try {
      // In a transaction that has failed nothing can be written any more, and COMMIT alone says so by its tag.
      const text = status === 'E' ? 'COMMIT' : this.#claim.commit
      const { command } = lastOf(await this.#client.query(text))
      return this.#receipt(command, notices)
    } catch (error) {
      throw this.#claim.explained(error)
    } finally {
      listening.removeListener('notice', onNotice)
    }
  }

  #receipt(command: string, notices: readonly PostgresNotice[]): Receipt {
    if (command === 'ROLLBACK') {
      const first = this.life.poisoned
      const message = 'COMMIT was answered with ROLLBACK: a statement had failed before, and nothing was stored.'
      throw new RepriseError('COMMIT_ROLLED_BACK', message, first === undefined ? {} : { cause: first.error })
    }
    if (notices.some(({ code }) => code === '25P01')) throw endedElsewhere()
    if (command !== 'COMMIT') {
      throw new RepriseError('COMMIT_UNCLEAR', 'COMMIT was answered with something else.')
    }
    // By the function's name, since a trigger of the user's may warn with the same code and messages are translated.
    const unreplicated = notices.some(({ routine }) => routine === 'SyncRepWaitForLSN')
    return { durability: unreplicated ? 'local' : 'promised' }
  }

  async rollback(): Promise<void> {
    this.life.end()
    this.#wire.end()
    // The driver would queue it behind what is under way, and warn.
    const busy = this.#wire.untilIdle()
    if (busy !== undefined) await busy
    await this.#client.query('ROLLBACK')
  }

  release(fate: 'keep' | 'discard'): void {
    if (this.#released) return
    this.#released = true
    this.#wire.end()
    this.life.end()
    try {
      const sound = fate === 'keep' && this.#wire.idle && this.#client.getTransactionStatus() === 'I'
      if (sound) this.#client.release()
      else this.#client.release(true)
      // After the pool has put its own listener on.
      this.#client.removeListener('error', this.#onError)
    } catch {
      // Released by somebody else; there is nothing left to give back.
    }
  }

  /** Sends a statement of the body. */
  send(config: string | object, values: unknown[] | undefined): Promise<PostgresAnswer> {
    const { refusal } = this.#claim
    return refusal === undefined ? this.#wire.send(config, values) : Promise.reject(refusal)
  }

  /** Sends a statement for the body. */
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
    const { refusal } = this.#claim
    if (refusal !== undefined) return Promise.reject(refusal)
    return this.life.call(() => this.#wire.savepoint(work), 'poisoned')
  }

  // COMMIT was not sent, so whatever it was, the transaction is dead.
  #refusePoisoned(): void {
    const first = this.life.poisoned
    if (first === undefined) return
    const message = 'A statement of the transaction failed before COMMIT was sent; nothing was stored.'
    throw new RepriseError('TRANSACTION_ABORTED', message, { cause: first.error })
  }
}

interface NoticeSource {
  on(event: 'notice', listener: (notice: PostgresNotice) => void): unknown
  removeListener(event: 'notice', listener: (notice: PostgresNotice) => void): unknown
}
