// One attempt at a transaction: a connection, a fresh transaction, the caller's body, COMMIT. Knows at every moment in which phase it is.

import {
  type Engine,
  type Phase,
  type Receipt,
  type Ruling,
  rulingOf,
  type Session,
  type Trace,
  type TransactionControls,
} from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { transactionLocal } from '../../telemetry/index.js'
import { watched } from '../effect-guard/channels.js'
import { insideTransaction } from '../open-transaction.js'
import { bounded, deadlinePassed } from './bounded.js'
import { type AfterCommit, AttemptControls } from './controls.js'
import { BodyFailed, CommitTimedOut, Swallowed } from './failure-marks.js'
import { reach } from './fault-points.js'
import type { Settings } from './settings.js'
import { StepTimer } from './step-timer.js'
import { parseValue, printValue } from './stored-value.js'

/** The caller's body: everything it does to the store goes through what it is handed. */
export type TransactionBody<Handle, Result> = (tx: Handle) => PromiseLike<Result> | Result

/** How an attempt ended. */
export type AttemptEnd<Result> =
  | { readonly committed: true; readonly value: Result; readonly afterCommit: readonly AfterCommit[] }
  | Failed<Result>

/** An attempt that did not commit, or not for all we know. */
export interface Failed<Result> {
  /** It is not known to have committed. */
  readonly committed: false
  /** Where it stood. */
  readonly phase: Phase
  /** What the caller is to see if this is the end. */
  readonly error: unknown
  /** What it means. */
  readonly ruling: Ruling
  /** Errors of cleaning up. */
  readonly suppressed: readonly unknown[]
  /** What identifies it on its server. */
  readonly trace: Trace | undefined
  /** What the body returned, where it got that far: the result, should the transaction turn out to have committed. */
  readonly result: { readonly value: Result; readonly afterCommit: readonly AfterCommit[] } | undefined
}

/** How long the cleaning up after a failed body may take before the connection is thrown away, in ms. */
const rollbackLimitMs = 1_000

/** Makes attempt number `number`. Never throws. */
export function attemptOnce<Handle extends TransactionControls, Result>(
  engine: Engine<Handle>,
  settings: Settings,
  body: TransactionBody<Handle, Result>,
  number: number,
): Promise<AttemptEnd<Result>> {
  return new Attempt(engine, settings, body, number).run()
}

class Attempt<Handle extends TransactionControls, Result> {
  readonly #engine: Engine<Handle>
  readonly #settings: Settings
  readonly #body: TransactionBody<Handle, Result>
  readonly #controls: AttemptControls
  readonly #timer: StepTimer
  #phase: Phase = 'waiting'
  #session: Session<Handle> | undefined
  #result: { readonly value: Result; readonly afterCommit: readonly AfterCommit[] } | undefined

  constructor(engine: Engine<Handle>, settings: Settings, body: TransactionBody<Handle, Result>, number: number) {
    this.#engine = engine
    this.#settings = settings
    this.#body = body
    this.#controls = new AttemptControls(number, settings.deadline)
    this.#timer = new StepTimer(settings.clock, settings.bodyLimitMs)
  }

  async run(): Promise<AttemptEnd<Result>> {
    try {
      const session = await this.#acquire()
      this.#session = session
      let fault = reach('transaction.acquired')
      if (fault !== undefined) await fault
      this.#phase = 'connecting'
      const handle = await this.#begin(session)
      fault = reach('transaction.begun')
      if (fault !== undefined) await fault
      const { id } = this.#settings
      if (id !== undefined) {
        this.#phase = 'body'
        const claimed = await this.#step(() => session.claim(id))
        if (claimed !== 'claimed') return await this.#replay(session, claimed.value)
        await reach('transaction.claimed')
      }
      return await this.#bodyThenCommit(session, handle)
    } catch (error) {
      return await this.#failed(error)
    } finally {
      this.#timer.end()
    }
  }

  async #bodyThenCommit(session: Session<Handle>, handle: Handle): Promise<AttemptEnd<Result>> {
    this.#phase = 'body'
    let value = await this.#runBody(session, handle)
    let fault = reach('transaction.body-done')
    if (fault !== undefined) await fault
    const { id } = this.#settings
    if (id !== undefined) {
      const text = printValue(value)
      value = parseValue(text)
      refusePoisoned(session)
      await this.#step(() => session.record(id, text))
      await reach('transaction.recorded')
    }
    refusePoisoned(session)
    fault = reach('transaction.before-commit')
    if (fault !== undefined) await fault
    this.#result = { value, afterCommit: this.#controls.hooks }
    const { durability } = await this.#commit(session)
    if (durability === 'local' && transactionLocal.hasSubscribers)
      transactionLocal.publish({ domain: this.#engine.name })
    this.#phase = 'done'
    session.release('keep')
    fault = reach('transaction.committed')
    if (fault !== undefined) await fault
    return { committed: true, value, afterCommit: this.#controls.hooks }
  }

  #acquire(): Promise<Session<Handle>> {
    const { connectionWaitMs, readOnly, signal } = this.#settings
    const waitMs = Math.min(connectionWaitMs, this.#workLeftMs())
    const limits = signal === undefined ? { waitMs, readOnly } : { waitMs, readOnly, signal }
    return this.#engine.acquire(limits)
  }

  #begin(session: Session<Handle>): Promise<Handle> {
    const { id, isolation, readOnly, lockWaitMs } = this.#settings
    // Without the reserve: a server that hears nothing more of us ends the transaction while there is still time to see that it did.
    const leftMs = Math.ceil(Math.max(1, this.#workLeftMs()))
    const settings = {
      isolation,
      readOnly,
      idleMs: leftMs,
      lockWaitMs: Math.min(lockWaitMs, leftMs),
      traced: id === undefined,
    }
    return this.#step(() => session.begin(settings, this.#controls))
  }

  async #runBody(session: Session<Handle>, handle: Handle): Promise<Result> {
    const { bodyLimitMs, effects, signal } = this.#settings
    const workLeftMs = this.#workLeftMs()
    const limitMs = Math.min(bodyLimitMs, workLeftMs)
    const expired = (): unknown =>
      bodyLimitMs <= workLeftMs ? bodyTooLong(bodyLimitMs) : deadlinePassed('in its body')
    const poison = (error: unknown): void => session.poison(error)
    const transaction = { domain: this.#engine.name, effects, poison }
    const run = (): PromiseLike<Result> | Result => this.#body(handle)
    const work = effects.mode === 'ignore' ? async (): Promise<Result> => run() : (): Promise<Result> => watched(run)
    try {
      return await bounded({ clock: this.#timer, limitMs, expired, signal }, () => insideTransaction(transaction, work))
    } catch (error) {
      throw new BodyFailed(error)
    } finally {
      this.#controls.end()
    }
  }

  // A step before COMMIT: nothing can have happened when its time is over.
  #step<Value>(work: () => PromiseLike<Value>): Promise<Value> {
    const { signal } = this.#settings
    const expired = (): unknown => deadlinePassed(this.#phase === 'body' ? 'in its body' : 'beginning')
    return bounded({ clock: this.#timer, limitMs: this.#workLeftMs(), expired, signal }, work)
  }

  // COMMIT has a timer of its own, which ends before the reserve. A signal does not end it: its outcome is awaited.
  #commit(session: Session<Handle>): Promise<Receipt> {
    this.#phase = 'committing'
    const limitMs = this.#workLeftMs()
    return bounded({ clock: this.#timer, limitMs, expired: () => new CommitTimedOut(limitMs) }, () => session.commit())
  }

  async #replay(session: Session<Handle>, text: string): Promise<AttemptEnd<Result>> {
    this.#phase = 'done'
    await this.#rollback(session)
    return { committed: true, value: parseValue(text), afterCommit: [] }
  }

  async #failed(thrown: unknown): Promise<Failed<Result>> {
    const session = this.#session
    const phase = this.#phase
    const error = thrown instanceof BodyFailed ? thrown.thrown : thrown
    const { ruling, shown } = this.#ruling(thrown, error)
    const suppressed: unknown[] = []
    if (session !== undefined) {
      session.poison(error)
      // After it: a body that still runs, and goes on when it hears of this, can do nothing more.
      if (thrown instanceof BodyFailed) this.#controls.abort(error)
      const sound = ruling.connection === 'keep' && ruling.outcome === 'aborted'
      if (sound) suppressed.push(...(await this.#rollback(session)))
      else session.release('discard')
    }
    const trace = session?.trace
    return { committed: false, phase, error: shown, ruling, suppressed, trace, result: this.#result }
  }

  // The first error of the engine decides, also where the body swallowed it or threw another one in its place.
  #ruling(thrown: unknown, error: unknown): { ruling: Ruling; shown: unknown } {
    const phase = this.#phase
    if (phase === 'committing') return this.#commitRuling(error)
    const poisoned = this.#session?.poisoned
    if (thrown instanceof Swallowed)
      return { ruling: this.#engine.classify(thrown.first, phase), shown: thrown.toError() }
    if (poisoned !== undefined) return { ruling: this.#engine.classify(poisoned.error, phase), shown: error }
    if (thrown instanceof BodyFailed) return { ruling: this.#bodyRuling(error), shown: error }
    return { ruling: this.#engine.classify(error, phase), shown: error }
  }

  // What only read has nothing that could have happened, so there is nothing to find out either.
  #commitRuling(error: unknown): { ruling: Ruling; shown: unknown } {
    const timedOut = error instanceof CommitTimedOut
    const ruling = timedOut ? rulingOf('resolve', 'commit-timeout') : this.#engine.classify(error, 'committing')
    const harmless = this.#settings.readOnly && ruling.outcome === 'unknown'
    return {
      ruling: harmless ? rulingOf('reconnect', ruling.sign) : ruling,
      shown: timedOut ? error.toError() : error,
    }
  }

  // Without an error of the engine, the body's own decides nothing: it is the caller's, and the transaction is rolled back. One that
  // ran out of time may have a statement under way, so its connection cannot be used again.
  #bodyRuling(error: unknown): Ruling {
    const ours =
      error instanceof RepriseError && (error.code === 'BODY_TIME_LIMIT' || error.code === 'DEADLINE_EXCEEDED')
    const unfinished = ours || this.#settings.signal?.aborted === true
    return { ...rulingOf('surface', 'body-threw'), connection: unfinished ? 'discard' : 'keep' }
  }

  async #rollback(session: Session<Handle>): Promise<readonly unknown[]> {
    try {
      const expired = (): unknown => deadlinePassed('rolling back')
      await bounded({ clock: this.#timer, limitMs: rollbackLimitMs, expired }, () => session.rollback())
      session.release('keep')
      return []
    } catch (error) {
      session.release('discard')
      return [error]
    }
  }

  #workLeftMs(): number {
    const { deadline, reserveMs, clock } = this.#settings
    return Math.max(0, deadline.expiresAtMs - reserveMs - clock.monotonicMs())
  }
}

function refusePoisoned<Handle>(session: Session<Handle>): void {
  const { poisoned } = session
  if (poisoned !== undefined) throw new Swallowed(poisoned.error)
}

function bodyTooLong(limitMs: number): RepriseError {
  return new RepriseError('BODY_TIME_LIMIT', `The body took longer than ${limitMs} ms.`, { details: { limitMs } })
}
