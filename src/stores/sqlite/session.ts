// One transaction on one connection: BEGIN, the marker, COMMIT with its answer checked, and the connection's fate
// afterwards.

import {
  type BeginSettings,
  type Expected,
  handleLife,
  type Outbox,
  type Receipt,
  type RecordDraft,
  type RecordOutcome,
  type Ruling,
  type Session,
  type SharesCommit,
  type Stored,
  type TransactionControls,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, type Random, RepriseError } from '../../kernel/index.js'
import {
  claimed,
  type EmitStatements,
  emitError,
  perform,
  type Query,
  type RecordStatements,
  reclaimed,
  type SqlAnswer,
  whileBusy,
} from '../sql/index.js'
import type { Sharing, Taken } from './connection/connections.js'
import { isBusy, isOpen, isStillOpen, type SqliteHandle, signsOf, wasBusy } from './connection/driver.js'
import type { NotShared } from './connection/not-shared.js'
import { endedElsewhere, leftBehind, type PartHolder, type SharedCommit } from './connection/shared-commit.js'
import { type Bind, type SqliteTransaction, sqliteHandle } from './handle.js'
import { sendTo } from './records/record-runner.js'

/** What all sessions of a store share. */
export interface SessionContext<Bound> {
  /** Makes what the body works with. Undefined: that is the client. */
  readonly bind: Bind<Bound> | undefined
  /** The statements on the records of the file. */
  readonly statements: RecordStatements
  readonly outbox: Outbox
  /** Writes what transactions emit. */
  readonly emits: EmitStatements
  readonly clock: Clock
  readonly random: Random
  /** What an answer to COMMIT means. */
  readonly classify: (error: unknown, phase: 'committing') => Ruling
  /** What does not share a COMMIT. */
  readonly notShared: NotShared
}

/** One transaction in SQLite, or a part of one that shares its COMMIT. */
export class SqliteSession<Bound> implements Session<SqliteTransaction<Bound>>, PartHolder {
  readonly trace: undefined = undefined
  emitted: (() => void) | undefined
  readonly #taken: Taken
  readonly #context: SessionContext<Bound>
  readonly #life = handleLife()
  #lockWaitMs = 0
  // True from the first COMMIT until its outcome is certain.
  #uncertain = false
  #released = false
  #claimed: { readonly id: StoredKey; readonly token: string } | undefined
  readonly #shares: SharesCommit | undefined
  readonly #sharing: Sharing | undefined
  // The transaction in which this one is a part. Undefined: it is one of its own, or is through.
  #joined: SharedCommit | undefined
  #begunAt: number | undefined
  // True: the others did not wait for it, and it has nothing to do with the connection any more.
  #left = false
  #stands: Promise<void> | undefined

  constructor(taken: Taken, context: SessionContext<Bound>, shares: SharesCommit | undefined) {
    this.#taken = taken
    this.#context = context
    this.#shares = shares
    this.#sharing = shares === undefined ? undefined : taken.sharing
    this.#joined = taken.sharing?.joined
    this.#joined?.heldBy(this)
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
    const begun = (): SqliteTransaction<Bound> => {
      this.#begunAt = this.#sharing?.loopTurns ?? 0
      return sqliteHandle({ handle: this.#handle, readOnly }, this.#life, controls, this.#context)
    }
    if (this.#joined !== undefined) {
      this.#joined.beginPart()
      return begun()
    }
    // IMMEDIATE: a transaction that reads first and takes the lock later can lose its snapshot and never get it.
    const text = readOnly ? 'BEGIN DEFERRED' : 'BEGIN IMMEDIATE'
    const waitMs = Math.min(claim?.waitMs ?? lockWaitMs, lockWaitMs)
    const beginAlone = (): Promise<unknown> | undefined =>
      this.#whileBusy(waitMs, () => this.#handle.exec(text), controls)
    // It was too late to join, and the others are not through with their COMMIT.
    const ending = this.#taken.sharing?.joined?.ending
    return (ending === undefined ? beginAlone() : ending.then(beginAlone))?.then(begun) ?? begun()
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
    const settling = this.#life.settle()
    if (settling !== undefined) return settling.then(() => this.#writeEmissions())
    if (this.#life.emissions !== undefined) this.#writeEmissions()
    return undefined
  }

  // Behind everything that the body wrote, and in its part of a shared COMMIT.
  #writeEmissions(): void {
    const { emissions } = this.#life
    if (emissions === undefined) return
    const { emits, outbox } = this.#context
    this.#act(() => {
      try {
        perform(emits.emitted(emissions), this.#send)
      } catch (error) {
        throw emitError(error)
      }
    })
    this.emitted = outbox.wake
  }

  commit(): Receipt | Promise<Receipt> {
    this.#life.checkBeforeCommit()
    if (!isOpen(this.#handle)) throw endedElsewhere()
    this.#noteSlowness()
    const sharing = this.#sharing
    if (sharing !== undefined && (this.#joined !== undefined || sharing.wanted)) {
      if (this.#joined !== undefined) this.#act(() => this.#joined?.keepPart())
      this.#end()
      return sharing.handOver(true).then(promised)
    }
    return this.#commitAlone()
  }

  #commitAlone(): Receipt | Promise<Receipt> {
    this.#uncertain = true
    const done = (): Receipt => {
      this.#uncertain = false
      return promised()
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
    if (this.#released || this.#left) return
    if (this.#joined !== undefined) this.#endPart(this.#joined, 'keep')
    // Some errors have rolled back already, and a BEGIN that never came through leaves nothing to undo.
    else if (isOpen(this.#handle)) this.#handle.exec('ROLLBACK')
  }

  stands(): Promise<void> | undefined {
    return this.#stands
  }

  release(fate: 'keep' | 'discard'): void {
    if (this.#released) return
    if (this.#joined !== undefined) {
      this.#endPart(this.#joined, fate)
      return
    }
    this.#end()
    // The others may be at their COMMIT.
    if (this.#left) this.#taken.giveBack('keep')
    else if (fate === 'keep' && !this.#uncertain && this.#isClean()) this.#taken.giveBack('keep')
    else this.#taken.giveBack(this.#uncertain ? 'condemn' : 'drop')
  }

  leave(): void {
    const joined = this.#joined
    this.#joined = undefined
    if (joined === undefined || this.#begunAt === undefined) return
    this.#undoPart(joined, 'keep')
    this.#left = true
    const left = leftBehind()
    this.#life.poison(left)
    this.#doesNotShare()
    this.#shares?.leave(left)
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

  // From here on nothing is done on the connection, which may be another one's by now.
  #end(): void {
    this.#released = true
    this.#joined = undefined
    this.#life.end()
  }

  // Whatever was decided in the part was decided on what others have not committed yet.
  #endPart(joined: SharedCommit, fate: 'keep' | 'discard'): void {
    const begun = this.#begunAt !== undefined
    if (begun) this.#noteSlowness()
    this.#end()
    const sound = this.#undoPart(joined, fate)
    const told = this.#sharing?.handOver(false)
    told?.catch(() => undefined)
    if (begun && sound) this.#stands = told
  }

  // False: somebody else has ended the transaction, and what they made of the other parts nobody can tell.
  #undoPart(joined: SharedCommit, fate: 'keep' | 'discard'): boolean {
    const error = this.poisoned?.error
    const raised = signsOf(error).some((sign) => sign.startsWith('SQLITE_'))
    const open = isStillOpen(this.#handle)
    if (raised && (fate === 'discard' || !open)) {
      this.#doesNotShare()
      joined.undo(error)
    } else if (!open) {
      void joined.end()
      return false
    } else if (this.#begunAt !== undefined) joined.undoPart()
    return true
  }

  #noteSlowness(): void {
    if (this.#sharing !== undefined && this.#begunAt !== this.#sharing.loopTurns) this.#doesNotShare()
  }

  #doesNotShare(): void {
    if (this.#shares !== undefined) this.#context.notShared.add(this.#shares.work)
  }

  #isClean(): boolean {
    if (wasBusy(this.#handle)) return false
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

function promised(): Receipt {
  return { durability: 'promised' }
}
