// One attempt at a transaction: a connection, a fresh transaction, the caller's body, COMMIT. Knows at every moment in which phase it is.

import type {
  Engine,
  Phase,
  Receipt,
  Ruling,
  Session,
  Stored,
  Trace,
  TransactionControls,
} from '../../atomicity/index.js'
import { afterMicrotasks, isPromiseLike, type OpenScope, openScopes, RepriseError } from '../../kernel/index.js'
import { transactionLocal } from '../../telemetry/index.js'
import { watchEffects } from '../effect-guard/channels.js'
import { transactionScope } from '../open-transaction.js'
import { beginUnanswered, bodyTooLong, bounded, deadlinePassed } from './bounded.js'
import { rollBack } from './cleaning.js'
import { type AfterCommit, AttemptControls } from './controls.js'
import { reach } from './fault-points.js'
import { BodyFailed, CommitTimedOut, judge, Swallowed } from './judging.js'
import { claimOf, type Keyed } from './keyed.js'
import type { CallSettings } from './settings.js'
import { StepTimer } from './step-timer.js'

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

interface Replay<Result> {
  readonly value: Result
}

/** A record that changes between two statements is looked at this often. */
const mostClaimRounds = 4

/** Makes attempt number `number`. Never throws. */
export function attemptOnce<Handle extends TransactionControls, Result>(
  engine: Engine<Handle>,
  settings: CallSettings,
  body: TransactionBody<Handle, Result>,
  number: number,
): Promise<AttemptEnd<Result>> {
  return new Attempt(engine, settings, body, number).run()
}

class Attempt<Handle extends TransactionControls, Result> {
  readonly #engine: Engine<Handle>
  readonly #settings: CallSettings
  readonly #body: TransactionBody<Handle, Result>
  readonly #controls: AttemptControls
  readonly #timer: StepTimer
  #phase: Phase = 'waiting'
  #claimed = false
  #underWay = false
  readonly #stepEnded = (): void => {
    this.#underWay = false
  }
  #session: Session<Handle> | undefined
  #result: { readonly value: Result; readonly afterCommit: readonly AfterCommit[] } | undefined

  constructor(engine: Engine<Handle>, settings: CallSettings, body: TransactionBody<Handle, Result>, number: number) {
    this.#engine = engine
    this.#settings = settings
    this.#body = body
    this.#controls = new AttemptControls(number, settings.deadline)
    this.#timer = new StepTimer(settings.clock, settings.bodyLimitMs)
  }

  // In one function: a promise for each part would be a good share of what a transaction costs beside its statements.
  async run(): Promise<AttemptEnd<Result>> {
    const keyed = this.#settings.keyed as Keyed<Result> | undefined
    try {
      const acquired = this.#acquire()
      const session = isPromiseLike(acquired) ? await acquired : acquired
      this.#session = session
      let fault = reach('transaction.acquired')
      if (fault !== undefined) await fault
      this.#phase = 'connecting'
      const begun = this.#begin(session)
      const handle = isPromiseLike(begun) ? await begun : begun
      fault = reach('transaction.begun')
      if (fault !== undefined) await fault
      this.#phase = 'body'
      if (keyed !== undefined) {
        const met = this.#claim(session, keyed)
        const replay = isPromiseLike(met) ? await met : met
        if (replay !== undefined) return await this.#replay(session, replay.value)
        this.#claimed = true
        fault = reach('transaction.claimed')
        if (fault !== undefined) await fault
      }
      let value: Result
      try {
        value = await this.#runBody(session, handle)
      } catch (error) {
        session.bodyThrew?.(error)
        throw new BodyFailed(error)
      } finally {
        this.#controls.end()
      }
      fault = reach('transaction.body-done')
      if (fault !== undefined) await fault
      if (keyed !== undefined) {
        const stored = keyed.outcomeOf(value)
        value = stored.value
        refusePoisoned(session)
        const recorded = this.#step(() => session.record(keyed.id, stored.outcome))
        if (isPromiseLike(recorded)) await recorded
        fault = reach('transaction.recorded')
        if (fault !== undefined) await fault
      }
      refusePoisoned(session)
      const settled = this.#settle(session)
      if (settled !== undefined) await settled
      fault = reach('transaction.before-commit')
      if (fault !== undefined) await fault
      this.#result = { value, afterCommit: this.#controls.hooks }
      const committed = this.#commit(session)
      const { durability } = isPromiseLike(committed) ? await committed : committed
      if (durability === 'local' && transactionLocal.hasSubscribers)
        transactionLocal.publish({ domain: this.#engine.name })
      this.#phase = 'done'
      session.release('keep')
      fault = reach('transaction.committed')
      if (fault !== undefined) await fault
      return { committed: true, value, afterCommit: this.#controls.hooks }
    } catch (error) {
      return await this.#failed(error)
    } finally {
      this.#timer.end()
    }
  }

  #acquire(): Promise<Session<Handle>> | Session<Handle> {
    const { connectionWaitMs, readOnly, signal } = this.#settings
    const waitMs = Math.min(connectionWaitMs, this.#workLeftMs())
    const limits = signal === undefined ? { waitMs, readOnly } : { waitMs, readOnly, signal }
    return this.#engine.acquireAtOnce?.(limits) ?? this.#engine.acquire(limits)
  }

  #begin(session: Session<Handle>): Promise<Handle> | Handle {
    const { keyed, isolation, readOnly, lockWaitMs, connectionWaitMs } = this.#settings
    // Without the reserve: a server that hears nothing more of us ends the transaction while there is still time to see that it did.
    const leftMs = Math.ceil(Math.max(1, this.#workLeftMs()))
    const settings = {
      isolation,
      readOnly,
      idleMs: leftMs,
      lockWaitMs: Math.min(lockWaitMs, leftMs),
      traced: keyed === undefined,
      ...(keyed === undefined ? {} : { claim: claimOf(keyed, lockWaitMs) }),
    }
    const unansweredMs =
      Math.max(connectionWaitMs, leftMs / 3) + (session.beginWaitMs?.(settings) ?? Number.POSITIVE_INFINITY)
    return this.#step(() => session.begin(settings, this.#controls), unansweredMs)
  }

  #runBody(session: Session<Handle>, handle: Handle): Promise<Result> {
    const { bodyLimitMs, effects, reserveMs, signal } = this.#settings
    const workLeftMs = this.#workLeftMs()
    const limitMs = Math.min(bodyLimitMs, workLeftMs)
    const expired = (): unknown =>
      bodyLimitMs <= workLeftMs ? bodyTooLong(bodyLimitMs) : deadlinePassed('in its body', reserveMs)
    const poison = (error: unknown): void => session.poison(error)
    const transaction = transactionScope({ domain: this.#engine.name, effects, poison })
    if (effects.mode !== 'ignore') watchEffects()
    // It ends with the body, also where nobody waits for the body any more.
    let scope: OpenScope | undefined
    const inScope = (): Promise<Result> => {
      scope = openScopes([transaction, ...(this.#settings.keyed?.scopes?.() ?? [])])
      return scope.call(() => Promise.resolve(this.#body(handle)))
    }
    const ended = (): void => scope?.end()
    return bounded({ clock: this.#timer, limitMs, expired, signal, ended, after: whenThrough }, inScope)
  }

  // A step before COMMIT: nothing can have happened when its time is over.
  #step<Value>(work: () => Promise<Value> | Value, beginMs = Number.POSITIVE_INFINITY): Promise<Value> | Value {
    const { reserveMs, signal } = this.#settings
    if (signal?.aborted) throw signal.reason
    const answer = work()
    if (!isPromiseLike(answer)) return answer
    const leftMs = this.#workLeftMs()
    const passed = (): unknown => deadlinePassed(this.#phase === 'body' ? 'in its body' : 'beginning', reserveMs)
    const expired = (): unknown => (beginMs < leftMs ? beginUnanswered(beginMs) : passed())
    this.#underWay = true
    const limitMs = Math.min(leftMs, beginMs)
    return bounded({ clock: this.#timer, limitMs, expired, signal, ended: this.#stepEnded }, () => answer)
  }

  // What the body started and did not wait for comes before COMMIT too. One that is still under way when the time is over leaves its connection unusable, as in the body.
  #settle(session: Session<Handle>): Promise<void> | undefined {
    const settled = this.#step(() => session.settle?.())
    if (!isPromiseLike(settled)) return undefined
    return settled.then(
      () => refusePoisoned(session),
      (error: unknown) => {
        throw new BodyFailed(error)
      },
    )
  }

  // COMMIT has a timer of its own, which ends before the reserve. A signal does not end it: its outcome is awaited.
  #commit(session: Session<Handle>): Promise<Receipt> | Receipt {
    this.#phase = 'committing'
    const answer = session.commit()
    if (!isPromiseLike(answer)) return answer
    const limitMs = this.#workLeftMs()
    return bounded({ clock: this.#timer, limitMs, expired: () => new CommitTimedOut(limitMs) }, () => answer)
  }

  // Undefined: the claim is ours. A record whose memory has ended is taken over, and the index or its version decides who does.
  #claim(session: Session<Handle>, keyed: Keyed<Result>): Promise<Replay<Result> | undefined> | undefined {
    const claimed = this.#step(() => session.claim(keyed.id, keyed.draft))
    return claimed === 'claimed' ? undefined : this.#meet(session, keyed, claimed)
  }

  async #meet(
    session: Session<Handle>,
    keyed: Keyed<Result>,
    first: Promise<'claimed' | Stored> | Stored,
  ): Promise<Replay<Result> | undefined> {
    const { id, draft } = keyed
    let claimed = await first
    for (let round = 1; round <= mostClaimRounds; round++) {
      if (round > 1) claimed = await this.#step(() => session.claim(id, draft))
      if (claimed === 'claimed') return undefined
      const met = keyed.meet(claimed)
      if ('replay' in met) return { value: met.replay }
      if (await this.#step(() => session.reclaim(id, met.takeOver, draft))) return undefined
    }
    throw new RepriseError('ROW_UNSETTLED', `The record came and went ${mostClaimRounds} times while it was claimed.`)
  }

  async #replay(session: Session<Handle>, value: Result): Promise<AttemptEnd<Result>> {
    this.#phase = 'done'
    await rollBack(session, this.#settings)
    return { committed: true, value, afterCommit: [] }
  }

  async #failed(thrown: unknown): Promise<Failed<Result>> {
    const session = this.#session
    const phase = this.#phase
    const error = thrown instanceof BodyFailed ? thrown.thrown : thrown
    const standing = { phase, poisoned: session?.poisoned, claimed: this.#claimed }
    const { ruling, shown } = judge(this.#engine, this.#settings, standing, thrown, error)
    const suppressed: unknown[] = []
    if (session !== undefined) {
      session.poison(error)
      // After it: a body that still runs, and goes on when it hears of this, can do nothing more.
      if (thrown instanceof BodyFailed) this.#controls.abort(error)
      // ROLLBACK would have to wait for a step that is still under way, and the caller with it.
      const sound = ruling.connection === 'keep' && ruling.outcome === 'aborted' && !this.#underWay
      if (sound) suppressed.push(...(await rollBack(session, this.#settings)))
      else session.release('discard')
    }
    return { committed: false, phase, error: shown, ruling, suppressed, trace: session?.trace, result: this.#result }
  }

  #workLeftMs(): number {
    const { deadline, reserveMs, clock } = this.#settings
    return Math.max(0, deadline.expiresAtMs - reserveMs - clock.monotonicMs())
  }
}

// What the body started and did not wait for goes on as far as promises take it, and Node 20 tells of its requests, before the body counts as ended. In a microtask again: scopes
// that end there, one after the other, need not be put to rest in between.
function whenThrough(end: () => void): void {
  afterMicrotasks(() => void through.then(end))
}

const through = Promise.resolve()

function refusePoisoned<Handle>(session: Session<Handle>): void {
  const { poisoned } = session
  if (poisoned !== undefined) throw new Swallowed(poisoned.error)
}
