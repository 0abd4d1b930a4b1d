// One transaction inside the ORM's: its work waits while the runner claims, works and records, and returns only after
// the last statement has shown that the transaction is sound.

import {
  type BeginSettings,
  type Emission,
  type EmissionSink,
  type Emitted,
  type Expected,
  type HandleLife,
  handleLife,
  type Manifest,
  type MessageDraft,
  type Outbox,
  type Receipt,
  type RecordDraft,
  type RecordOutcome,
  type Session,
  type Stored,
  type TransactionControls,
  type Turn,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, isRepriseError, RepriseError } from '../../kernel/index.js'
import {
  claimed,
  type EmitStatements,
  emitError,
  endedElsewhere,
  listOfValues,
  notClaimed,
  performAsync,
  reclaimed,
  refuseTransactionStatements,
  type SqlAnswer,
  type SqlDialect,
  whileBusy,
} from '../sql/index.js'
import { isBusy, isOfDatabase } from './classification.js'
import type { CommitCheck } from './commit-check.js'
import type { CallbackDatabase, LocalSettings } from './database.js'
import { type CallbackPort, type CallbackTransaction, callbackHandle } from './handle.js'
import { InvertedTransaction } from './inversion.js'
import { type CallbackOptions, sendOn } from './options.js'
import { aborted, CallbackWire, over } from './wire.js'

/** What all sessions of a store share. */
export interface SessionContext<Tx> extends Pick<CallbackOptions<Tx>, 'transaction' | 'query'> {
  readonly database: CallbackDatabase
  /** What the user says about errors. */
  readonly classify: CallbackOptions<Tx>['classify']
  readonly outbox: Outbox
  /** Writes what transactions emit. */
  readonly emits: EmitStatements
  readonly clock: Clock
  /** Errors of COMMIT under a key. */
  readonly unsure: WeakSet<object>
  /** Whether what the transaction function commits was seen to be there. */
  readonly check: CommitCheck<Tx>
  /** Whether the user's two functions were seen to belong together. */
  wired: boolean
}

/** One transaction of the user's transaction function, driven from outside by the runner's steps. */
export class CallbackSession<Tx> implements Session<CallbackTransaction<Tx>>, CallbackPort<Tx>, EmissionSink {
  readonly trace: undefined = undefined
  emitted: (() => void) | undefined
  readOnly = false
  readonly dialect: SqlDialect
  readonly manifest: Manifest
  readonly #context: SessionContext<Tx>
  readonly #turn: Turn
  readonly #waitMs: number
  readonly life: HandleLife = handleLife()
  #open: InvertedTransaction<Tx> | undefined
  #wire: CallbackWire<Tx> | undefined
  #lockWaitMs = 0
  #locking: Promise<unknown> = Promise.resolve()
  #claimWaitMs = 0
  // `theirs`: somebody else has the key, and nothing may be done under it.
  #claimed: { readonly id: StoredKey; readonly token: string } | 'theirs' | undefined
  #outcome: RecordOutcome | undefined
  #released = false

  /** @param waitMs The longest wait until the transaction function calls its work, in ms. */
  constructor(context: SessionContext<Tx>, turn: Turn, waitMs: number) {
    this.dialect = context.database.dialect
    this.manifest = context.database.manifest
    this.#context = context
    this.#turn = turn
    this.#waitMs = waitMs
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.life.poisoned
  }

  poison(error: unknown): void {
    this.life.poison(error)
  }

  bodyThrew(error: unknown): void {
    if (isOfDatabase(error, this.#context.classify)) this.life.poison(error)
  }

  async begin(settings: BeginSettings, controls: TransactionControls): Promise<CallbackTransaction<Tx>> {
    const { lockWaitMs, claim } = settings
    this.readOnly = settings.readOnly
    this.#lockWaitMs = lockWaitMs
    this.#claimWaitMs = Math.min(lockWaitMs, claim?.waitMs ?? lockWaitMs)
    const { settings: local } = this.#context.database
    if (local !== undefined) {
      const wire = await this.#start(settings)
      await wire.open(local, settings, { claimMs: this.#claimWaitMs, bodyMs: lockWaitMs })
      // Once is enough to see that the user's two functions belong together.
      if (!this.#context.wired) await wire.refuseOutside()
      this.#context.wired = true
    } else {
      const limits = { waitMs: this.#claimWaitMs, clock: this.#context.clock }
      await whileBusy(limits, isBusy, () => this.#startAsWriter(settings))
    }
    return callbackHandle(this, controls)
  }

  async claim(id: StoredKey, draft: RecordDraft): Promise<'claimed' | Stored | undefined> {
    const { statements } = this.#context.database
    this.#claimed = 'theirs'
    const found = await performAsync(claimed(statements, id, draft), this.#opened.own)
    if (found === 'claimed') await this.#hold(id, draft)
    return found
  }

  async reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Promise<boolean> {
    const { statements } = this.#context.database
    if (!(await performAsync(reclaimed(statements, id, over, draft), this.#opened.own))) return false
    await this.#hold(id, draft)
    return true
  }

  async record(id: StoredKey, outcome: RecordOutcome): Promise<void> {
    this.life.check()
    if (typeof this.#claimed !== 'object' || this.#claimed.id !== id) throw notClaimed()
    this.#outcome = outcome
  }

  settle(): Promise<void> | undefined {
    this.life.checkBeforeCommit()
    const settling = this.life.settle()
    if (settling === undefined && this.life.emissions === undefined) return undefined
    return this.#settled(settling)
  }

  // What the body emitted goes before the last statement: an ORM sends them one by one.
  async #settled(settling: Promise<void> | undefined): Promise<void> {
    await settling
    const { emissions } = this.life
    if (emissions === undefined) return
    const { emits, outbox } = this.#context
    await performAsync(emits.emitted(emissions), this.#opened.own).catch((error: unknown) => {
      const shown = emitError(error)
      this.life.poison(shown)
      throw shown
    })
    this.emitted = outbox.wake
  }

  async commit(): Promise<Receipt> {
    const open = this.#open
    try {
      this.#refusePoisoned()
      this.life.checkBeforeCommit()
      if (open === undefined || this.#claimed === 'theirs') throw notClaimed()
    } finally {
      this.life.end()
    }
    await this.#opened.untilIdle()
    this.#refusePoisoned()
    await this.#lastStatement()
    this.#refusePoisoned()
    try {
      // Whoever waited may have given up meanwhile, and taken it for dead or unknown: then it was abandoned, and is not
      // committed any more.
      await open.commit()
    } catch (error) {
      if (this.#outcome !== undefined && typeof error === 'object' && error !== null) this.#context.unsure.add(error)
      throw error
    }
    if (typeof this.#claimed === 'object' && this.#outcome !== undefined) {
      await this.#context.check.confirm(this.#claimed)
    }
    return { durability: 'promised' }
  }

  async rollback(): Promise<void> {
    this.life.end()
    const open = this.#open
    await open?.rollback().finally(() => this.#context.check.doubtIf(open.endedWell))
  }

  release(): void {
    if (this.#released) return
    this.#released = true
    this.life.end()
    this.#wire?.end()
    const open = this.#open
    open?.abandon()
    // The ORM has the connection until then, so nobody else is let in its place.
    if (open === undefined) this.#turn.done()
    else void open.settled.then(() => this.#turn.done())
  }

  tx(): Tx {
    this.#mayAct()
    return this.#opened.tx
  }

  emit(given: MessageDraft | readonly MessageDraft[]): Emitted | Promise<Emitted> {
    return this.#context.outbox.emit(given, this)
  }

  /** Keeps what the body emits until its end. What the ORM nests is not seen here. */
  keep(emissions: readonly Emission[]): void {
    this.#mayAct()
    this.life.emit(emissions)
  }

  async ask(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    if (typeof text !== 'string') throw new RepriseError('ARGUMENT_INVALID', 'tx.query takes a text and its values.')
    refuseTransactionStatements(text, this.dialect)
    this.#mayAct()
    return this.#opened.send(text, listOfValues(values))
  }

  /**
   * Runs a statement of the repeatable writes. How many rows an UPDATE touched is asked of its rows, since an ORM may
   * not tell.
   */
  async run(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    this.#mayAct()
    if (!text.startsWith('UPDATE ')) return this.#opened.send(text, values)
    const { rows } = await this.#opened.send(text + this.dialect.returning('1 AS written'), values)
    return { rows, rowCount: rows.length }
  }

  async lock(select: string, values: readonly unknown[], wait: 'nowait' | number | undefined): Promise<SqlAnswer> {
    const { settings } = this.#context.database
    // The writer has the whole store to itself, so a row that it sees is locked already.
    if (settings === undefined) return this.run(select, values)
    if (wait === 'nowait') return this.run(settings.lockingRows(select, 'nowait'), values)
    const text = settings.lockingRows(select, 'wait')
    if (wait === undefined) return this.run(text, values)
    const locked = this.#locking.then(() => this.#lockWithin(text, values, wait, settings))
    this.#locking = locked.catch(() => undefined)
    return locked
  }

  // One after the other: the limit of one must not be that of another.
  async #lockWithin(
    text: string,
    values: readonly unknown[],
    wait: number,
    { limitLocks }: LocalSettings,
  ): Promise<SqlAnswer> {
    await this.#opened.own(limitLocks(Math.min(wait, this.#lockWaitMs)))
    const answer = await this.run(text, values)
    await this.#opened.own(limitLocks(this.#lockWaitMs))
    return answer
  }

  async #start({ isolation }: BeginSettings): Promise<CallbackWire<Tx>> {
    if (this.#released) throw over()
    const open = new InvertedTransaction<Tx>(
      (work) => this.#context.transaction(work, { isolation, readOnly: false }),
      (error) => {
        // One that came to nothing before it was begun may be tried again.
        if (open.called) this.life.poison(error)
      },
    )
    this.#open = open
    const { database, query, clock } = this.#context
    const wire = new CallbackWire<Tx>({
      tx: await open.begunWithin(this.#waitMs, clock),
      database,
      query,
      life: this.life,
    })
    this.#wire = wire
    return wire
  }

  async #startAsWriter(settings: BeginSettings): Promise<void> {
    const { query, database } = this.#context
    const { tx } = await this.#start(settings)
    try {
      // Past the wire: a lock that was not granted does not poison the handle, since it is tried again.
      if (database.lockStore !== undefined) await sendOn(query, tx, database.dialect)(database.lockStore)
    } catch (error) {
      await this.#open?.rollback().catch(() => undefined)
      throw error
    }
  }

  /**
   * The last statement before the work returns. In a transaction that an error has ended it fails, where COMMIT would
   * only be answered with ROLLBACK.
   */
  async #lastStatement(): Promise<void> {
    const { statements, settings } = this.#context.database
    const wire = this.#opened
    const claimed = this.#claimed
    try {
      if (typeof claimed !== 'object' || this.#outcome === undefined) {
        if (!(await wire.isInside())) throw endedElsewhere()
        return
      }
      const { id, token } = claimed
      const outcome = statements.outcome(id, token, this.#outcome, settings?.isInside(wire.mark))
      if ((await wire.own(outcome)).rowCount === 1) return
      if (!(await wire.isInside())) throw endedElsewhere()
      throw new RepriseError('MARKER_INVALID', 'The marker that this transaction claimed is gone.')
    } catch (error) {
      throw isRepriseError(error) && saysEnough.has(error.code) ? error : aborted(error)
    }
  }

  async #hold(id: StoredKey, { token }: RecordDraft): Promise<void> {
    this.#claimed = { id, token }
    // From the body on the whole wait counts.
    const { settings } = this.#context.database
    if (settings !== undefined && this.#claimWaitMs < this.#lockWaitMs) {
      await this.#opened.own(settings.limitLocks(this.#lockWaitMs))
    }
  }

  get #opened(): CallbackWire<Tx> {
    if (this.#wire === undefined) throw over()
    return this.#wire
  }

  #mayAct(): void {
    this.life.check()
    if (this.#claimed === 'theirs') throw notClaimed()
  }

  #refusePoisoned(): void {
    if (this.life.poisoned !== undefined) throw aborted(this.life.poisoned.error)
  }
}

// Of all errors before the work returns, these say themselves that nothing was committed, or that it is not for us to
// say.
const saysEnough: ReadonlySet<string> = new Set(['MARKER_INVALID', 'TRANSACTION_ENDED_ELSEWHERE'])
