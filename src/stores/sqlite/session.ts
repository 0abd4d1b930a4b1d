// One transaction on one connection: BEGIN, the marker, COMMIT with its answer checked, and the connection's fate
// afterwards.

import {
  type BeginSettings,
  type Expected,
  handleLife,
  type Receipt,
  type RecordDraft,
  type RecordOutcome,
  type Ruling,
  type Session,
  type Stored,
  type TransactionControls,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, type Random, RepriseError } from '../../kernel/index.js'
import {
  claimed,
  perform,
  type Query,
  type RecordStatements,
  reclaimed,
  type SqlAnswer,
  whileBusy,
} from '../sql/index.js'
import type { Taken } from './connection/connections.js'
import { isBusy, isOpen, type SqliteHandle } from './connection/driver.js'
import { type Bind, type SqliteTransaction, sqliteHandle } from './handle.js'
import { sendTo } from './records/record-runner.js'

/** What all sessions of a store share. */
export interface SessionContext<Bound> {
  /** Makes what the body works with. */
  readonly bind: Bind<Bound>
  /** The statements on the records of the file. */
  readonly statements: RecordStatements
  readonly clock: Clock
  readonly random: Random
  /** What an answer to COMMIT means. */
  readonly classify: (error: unknown, phase: 'committing') => Ruling
}

/** One transaction in SQLite. */
export class SqliteSession<Bound> implements Session<SqliteTransaction<Bound>> {
  readonly trace: undefined = undefined
  readonly #taken: Taken
  readonly #context: SessionContext<Bound>
  readonly #life = handleLife()
  #lockWaitMs = 0
  // True from the first COMMIT until its outcome is certain.
  #uncertain = false
  #released = false
  #claimed: { readonly id: StoredKey; readonly token: string } | undefined

  constructor(taken: Taken, context: SessionContext<Bound>) {
    this.#taken = taken
    this.#context = context
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.#life.poisoned
  }

  // This and what follows wait for nothing, unless somebody else holds the lock of the file; then there is a promise.
  begin(
    settings: BeginSettings,
    controls: TransactionControls,
  ): SqliteTransaction<Bound> | Promise<SqliteTransaction<Bound>> {
    const { readOnly, lockWaitMs, claim } = settings
    this.#lockWaitMs = lockWaitMs
    // IMMEDIATE: a transaction that reads first and takes the lock later can lose its snapshot and never get it.
    const text = readOnly ? 'BEGIN DEFERRED' : 'BEGIN IMMEDIATE'
    const waitMs = Math.min(claim?.waitMs ?? lockWaitMs, lockWaitMs)
    const begun = (): SqliteTransaction<Bound> =>
      sqliteHandle({ handle: this.#handle, readOnly }, this.#life, controls, this.#context.bind)
    return this.#whileBusy(waitMs, () => this.#handle.exec(text), controls)?.then(begun) ?? begun()
  }

  claim(id: StoredKey, draft: RecordDraft): 'claimed' | Stored | undefined {
    return this.#act(() => {
      const found = perform(claimed(this.#context.statements, id, draft), this.#send)
      if (found === 'claimed') this.#claimed = { id, token: draft.token }
      return found
    })
  }

  reclaim(id: StoredKey, over: Expected, draft: RecordDraft): boolean {
    return this.#act(() => {
      if (!perform(reclaimed(this.#context.statements, id, over, draft), this.#send)) return false
      this.#claimed = { id, token: draft.token }
      return true
    })
  }

  record(id: StoredKey, outcome: RecordOutcome): void {
    this.#act(() => {
      const ours = this.#claimed
      const { statements } = this.#context
      if (ours?.id === id && this.#send(statements.outcome(id, ours.token, outcome)).rowCount === 1) return
      throw new RepriseError('MARKER_INVALID', 'The marker of the key was not claimed by this transaction.')
    })
  }

  settle(): Promise<void> | undefined {
    this.#life.checkBeforeCommit()
    return this.#life.settle()
  }

  commit(): Receipt | Promise<Receipt> {
    this.#life.checkBeforeCommit()
    if (!isOpen(this.#handle)) {
      throw new RepriseError('TRANSACTION_ENDED_ELSEWHERE', 'The transaction was no longer open before COMMIT.')
    }
    this.#uncertain = true
    const done = (): Receipt => {
      this.#uncertain = false
      return { durability: 'promised' }
    }
    const failed = (error: unknown): never => {
      this.#uncertain = this.#context.classify(error, 'committing').outcome !== 'aborted'
      throw error
    }
    let waiting: Promise<unknown> | undefined
    try {
      // BUSY in answer to COMMIT leaves the transaction open and whole: COMMIT alone is sent again.
      waiting = this.#whileBusy(this.#lockWaitMs, () => this.#handle.exec('COMMIT'), undefined)
    } catch (error) {
      failed(error)
    }
    return waiting === undefined ? done() : waiting.then(done, failed)
  }

  rollback(): void {
    // Some errors have rolled back already, and a BEGIN that never came through leaves nothing to undo.
    if (isOpen(this.#handle)) this.#handle.exec('ROLLBACK')
  }

  release(fate: 'keep' | 'discard'): void {
    if (this.#released) return
    this.#released = true
    this.#life.end()
    if (fate === 'keep' && !this.#uncertain && this.#isClean()) this.#taken.giveBack('keep')
    else this.#taken.giveBack(this.#uncertain ? 'condemn' : 'drop')
  }

  poison(error: unknown): void {
    this.#life.poison(error)
  }

  bodyThrew(error: unknown): void {
    this.#life.threw(error)
  }

  readonly #send = (query: Query): SqlAnswer => sendTo(this.#handle, query)

  get #handle(): SqliteHandle {
    return this.#taken.handle
  }

  #isClean(): boolean {
    try {
      if (!isOpen(this.#handle)) return true
      this.#handle.exec('ROLLBACK')
      return !isOpen(this.#handle)
    } catch {
      return false
    }
  }

  #act<Result>(work: () => Result): Result {
    this.#life.check()
    try {
      return work()
    } catch (error) {
      this.#life.poison(error)
      throw error
    }
  }

  // Undefined: it is done. Somebody may have given up on the session meanwhile: then nothing may be begun or committed
  // on its connection.
  #whileBusy(
    waitMs: number,
    work: () => unknown,
    controls: TransactionControls | undefined,
  ): Promise<unknown> | undefined {
    const { clock, random } = this.#context
    const checked = (): unknown => {
      this.#life.check()
      return work()
    }
    try {
      checked()
      return undefined
    } catch (error) {
      if (!isBusy(error)) throw error
      return whileBusy({ waitMs, clock, random, controls }, isBusy, checked)
    }
  }
}
