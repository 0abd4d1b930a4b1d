// One attempt at a transaction: a connection, a fresh transaction, the caller's body, COMMIT. The attempt knows at
// every moment in which phase it is.

import {
  type BeginSettings,
  codesIn,
  type Engine,
  type ErrorCodes,
  type Phase,
  type RecordOutcome,
  type Ruling,
  type Session,
  type Stored,
  type Trace,
  type TransactionControls,
} from '../../atomicity/index.js'
import {
  afterMicrotasks,
  type Deadline,
  isPromiseLike,
  type OpenScope,
  openScopes,
  RepriseError,
} from '../../kernel/index.js'
import { layerScope, type OpenLayer, repeatsLeft } from '../../retry/index.js'
import { transactionLocal } from '../../telemetry/index.js'
import { watchEffects } from '../effect-guard/channels.js'
import { transactionScope } from '../open-transaction.js'
import { reach } from './fault-points.js'
import type { KeyedCall } from './keyed.js'
import { beginUnanswered, bodyTooLong, deadlinePassed, StepLimits, workOf } from './limits.js'
import { rollBack } from './roll-back.js'
import { BodyFailed, CommitTimedOut, ruleOn, Swallowed } from './ruling.js'
import type { CallSettings } from './settings.js'

/** The caller's body: everything it does to the store goes through the handle. */
export type TransactionBody<Handle, Result> = (tx: Handle) => PromiseLike<Result> | Result

/** Work for after the commit. */
export type AfterCommit = () => unknown

/** How an attempt ended. */
export type AttemptEnd<Result> = ({ readonly committed: true } & BodyResult<Result>) | FailedAttempt<Result>

interface BodyResult<Result> {
  readonly value: Result
  readonly afterCommit: readonly AfterCommit[]
}

/** An attempt that did not commit, or is not known to have. */
export interface FailedAttempt<Result> {
  readonly committed: false
  readonly phase: Phase
  /** What the caller is to see if this was the last attempt. */
  readonly error: unknown
  readonly ruling: Ruling
  /** Whether the body was begun. */
  readonly ran: boolean
  /** The codes of the error that the ruling goes by. */
  readonly codes: ErrorCodes
  /** Errors of cleaning up. */
  readonly suppressed: readonly unknown[]
  readonly trace: Trace | undefined
  /** When COMMIT was sent, in ms of monotonic time; undefined: it was not. */
  readonly sentAtMs: number | undefined
  /** Wakes who waits for its messages, should it turn out to have committed; undefined: it emitted none. */
  readonly emitted: (() => void) | undefined
  /** What the body returned, where it got that far: the result, should the transaction turn out to have committed. */
  readonly result: BodyResult<Result> | undefined
}

/** How far an attempt has come. */
interface Progress<Handle, Result> {
  readonly limits: StepLimits
  readonly controls: AttemptControls
  phase: Phase
  session: Session<Handle> | undefined
  /** Whether the key is known to be this transaction's. */
  claimed: boolean
  sentAtMs: number | undefined
  result: BodyResult<Result> | undefined
}

/** A record that changes between two statements is looked at this often. */
const mostClaimRounds = 4

/**
 * Makes attempt number `number`, as a layer to what its body calls. Never throws. In one function: a promise for each
 * part would be a good share of what a transaction costs beside its statements. An engine may answer a step at once;
 * then there is nothing to wait for.
 *
 * @param mayHold Whether the body may begin before BEGIN was answered.
 */
export async function attemptOnce<Handle extends TransactionControls, Result>(
  engine: Engine<Handle>,
  settings: CallSettings,
  body: TransactionBody<Handle, Result>,
  number: number,
  layer: OpenLayer,
  mayHold: boolean,
): Promise<AttemptEnd<Result>> {
  const { readOnly, signal, connectionWaitMs, lockWaitMs, bodyLimitMs, reserveMs, clock } = settings
  const keyed = settings.keyed as KeyedCall<Result> | undefined
  const limits = new StepLimits(settings)
  const { workEndsAtMs } = limits
  const controls = new AttemptControls(number, settings.deadline, engine)
  const progress: Progress<Handle, Result> = {
    limits,
    controls,
    phase: 'waiting',
    session: undefined,
    claimed: false,
    sentAtMs: undefined,
    result: undefined,
  }
  const tooLate = (): unknown => deadlinePassed(workOf(settings, progress.claimed), reserveMs)
  try {
    // A COMMIT is shared at most once, by a body that may run twice: where the others undo it, it runs by itself.
    const mayShare = engine.sharesCommit === true && number === 1 && settings.attempts > 1 && !readOnly
    const shares =
      mayShare && repeatsLeft(layer.allowance) > 0
        ? { work: keyed?.draft.operation ?? body, leave: (error: unknown): void => limits.leave(error) }
        : undefined
    const wanted = { waitMs: Math.min(connectionWaitMs, limits.leftMs()), readOnly, signal, shares }
    const session = engine.acquireAtOnce?.(wanted) ?? (await engine.acquire(wanted))
    progress.session = session
    let fault = reach('transaction.acquired')
    if (fault !== undefined) await fault

    progress.phase = 'connecting'
    if (signal?.aborted) throw signal.reason
    const begin = beginSettings(settings, limits, mayHold)
    const begun = session.begin(begin, controls)
    let handle: Handle
    if (isPromiseLike(begun)) {
      const claimMs = begin.claim === undefined ? 0 : Math.min(begin.claim.waitMs ?? lockWaitMs, begin.lockWaitMs)
      const answerMs = session.beginsAtOnce ? begin.answerMs + claimMs : Number.POSITIVE_INFINITY
      const answerByMs = clock.monotonicMs() + answerMs
      const unanswered = (): unknown =>
        answerByMs < workEndsAtMs
          ? beginUnanswered(answerMs)
          : deadlinePassed(begin.claim === undefined ? 'beginning' : 'waiting for its key', reserveMs)
      handle = await limits.wait(begun, Math.min(workEndsAtMs, answerByMs), unanswered)
    } else handle = begun
    fault = reach('transaction.begun')
    if (fault !== undefined) await fault

    progress.phase = 'body'
    if (keyed !== undefined) {
      if (signal?.aborted) throw signal.reason
      const answer = session.claim(keyed.id, keyed.draft)
      const claimed = isPromiseLike(answer) ? await limits.wait(answer, workEndsAtMs, tooLate) : answer
      const replay = claimed === 'claimed' ? undefined : await meetRecord(session, settings, limits, claimed)
      if (replay !== undefined) {
        await rollBack(session, settings)
        const standing = session.stands?.()
        if (standing !== undefined) await limits.wait(standing, workEndsAtMs, tooLate)
        progress.phase = 'done'
        return { committed: true, value: replay.value as Result, afterCommit: [] }
      }
      progress.claimed = true
      fault = reach('transaction.claimed')
      if (fault !== undefined) await fault
    }

    let value: Result
    try {
      if (signal?.aborted) throw signal.reason
      const poison = (error: unknown): void => session.poison(error)
      const open = transactionScope({ domain: engine.name, effects: settings.effects, poison })
      if (settings.effects.mode !== 'ignore') watchEffects()
      const scope = openScopes([open, layerScope(layer), ...(keyed?.scopes?.() ?? [])])
      const bodyEndsAtMs = clock.monotonicMs() + bodyLimitMs
      const tooLong = (): unknown => (bodyEndsAtMs <= workEndsAtMs ? bodyTooLong(bodyLimitMs) : tooLate())
      const running = runBody(scope, session.enters, body, handle)
      value = await limits.wait(running, Math.min(bodyEndsAtMs, workEndsAtMs), tooLong)
    } catch (error) {
      // Whether the connection can still be used is for the ruling to say.
      limits.underWay = false
      session.bodyThrew?.(error)
      throw new BodyFailed(error)
    } finally {
      controls.over = true
    }
    fault = reach('transaction.body-done')
    if (fault !== undefined) await fault

    if (keyed !== undefined) {
      const stored = keyed.outcomeOf?.(value)
      if (stored !== undefined) value = stored.value
      refusePoisoned(session)
      if (signal?.aborted) throw signal.reason
      const recorded = session.record(keyed.id, stored?.outcome ?? (value as RecordOutcome))
      if (isPromiseLike(recorded)) await limits.wait(recorded, workEndsAtMs, tooLate)
      fault = reach('transaction.recorded')
      if (fault !== undefined) await fault
    }
    refusePoisoned(session)
    if (signal?.aborted) throw signal.reason
    // What the body started and did not wait for comes before COMMIT too.
    const settling = session.settle?.()
    if (settling !== undefined) {
      await limits.wait(settling, workEndsAtMs, tooLate).catch(bodyFailed)
      refusePoisoned(session)
    }
    fault = reach('transaction.before-commit')
    if (fault !== undefined) await fault

    // A body that kept the event loop busy is through before its timer rings. COMMIT is not sent without time for its
    // answer: what can still be told for certain is not made unknown.
    const commitMs = limits.leftMs()
    if (commitMs <= 0) throw tooLate()
    progress.result = { value, afterCommit: controls.hooks }
    progress.sentAtMs = workEndsAtMs - commitMs
    progress.phase = 'committing'
    const commit = session.commit()
    // COMMIT's own time ends before the reserve. A signal does not end the wait for it: its outcome is awaited.
    const { durability } = isPromiseLike(commit)
      ? await limits.wait(commit, workEndsAtMs, () => new CommitTimedOut(commitMs), false)
      : commit
    if (durability === 'local' && transactionLocal.hasSubscribers) transactionLocal.publish({ domain: engine.name })
    progress.phase = 'done'
    session.emitted?.()
    session.release('keep')
    fault = reach('transaction.committed')
    if (fault !== undefined) await fault
    return { committed: true, value, afterCommit: controls.hooks }
  } catch (error) {
    return await attemptFailed(engine, settings, progress, error)
  } finally {
    limits.end()
  }
}

function beginSettings(
  call: CallSettings,
  limits: StepLimits,
  mayBeHeld: boolean,
): BeginSettings & { readonly answerMs: number } {
  const { keyed, isolation, readOnly, lockWaitMs, connectionWaitMs, attempts, claimBlockers: blockers } = call
  // Without the reserve: a server that hears nothing more of us ends the transaction while there is still time to see
  // that it did.
  const idleMs = Math.ceil(Math.max(1, limits.leftMs()))
  let claim: BeginSettings['claim']
  if (keyed !== undefined) {
    const waitMs = keyed.claimWaitMs?.() ?? lockWaitMs
    const { id, draft } = keyed
    claim = { id, draft, blockers, waitMs: waitMs < lockWaitMs ? Math.max(1, waitMs) : undefined }
  }
  const traced = keyed === undefined
  // A body that must not run twice is not begun on a connection of which nobody knows whether it is still there.
  const mayHold = traced && mayBeHeld && attempts > 1 ? limits : undefined
  const answerMs = Math.max(connectionWaitMs, idleMs / 3)
  return {
    isolation,
    readOnly,
    idleMs,
    lockWaitMs: Math.min(lockWaitMs, idleMs),
    endsAtMs: limits.workEndsAtMs,
    traced,
    answerMs,
    mayHold,
    claim,
  }
}

// The scope ends with the body, also where nobody waits for the body any more. What the body started and did not wait
// for goes on as far as promises take it, and Node 20 tells of its requests, before the body counts as ended.
async function runBody<Handle, Result>(
  scope: OpenScope,
  enters: Session<Handle>['enters'],
  body: TransactionBody<Handle, Result>,
  handle: Handle,
): Promise<Result> {
  try {
    return await scope.call(() => Promise.resolve(enters === undefined ? body(handle) : enters(() => body(handle))))
  } finally {
    await new Promise<void>(afterMicrotasks)
    scope.end()
  }
}

function refusePoisoned<Handle>({ poisoned }: Session<Handle>): void {
  if (poisoned !== undefined) throw new Swallowed(poisoned.error)
}

function bodyFailed(error: unknown): never {
  throw new BodyFailed(error)
}

/**
 * A record is in the way, or was: its outcome is the answer, or its memory has ended and it is taken over, in which
 * case the unique index or its version decides who does; one that is gone again leaves the key to be claimed once more.
 * The result undefined: the key is ours.
 */
async function meetRecord<Handle>(
  session: Session<Handle>,
  { keyed, signal, reserveMs }: CallSettings,
  limits: StepLimits,
  first: Stored | undefined,
): Promise<{ readonly value: unknown } | undefined> {
  if (keyed === undefined) return undefined
  const { id, draft } = keyed
  const within = async <Value>(step: () => Promise<Value> | Value): Promise<Value> => {
    if (signal?.aborted) throw signal.reason
    const answer = step()
    const tooLate = (): unknown => deadlinePassed('waiting for its key', reserveMs)
    return isPromiseLike(answer) ? limits.wait(answer, limits.workEndsAtMs, tooLate) : answer
  }
  let claimed: 'claimed' | Stored | undefined = first
  for (let round = 1; round <= mostClaimRounds; round++) {
    if (round > 1) claimed = await within(() => session.claim(id, draft))
    if (claimed === 'claimed') return undefined
    if (claimed === undefined) continue
    const found = keyed.meet(claimed)
    if ('replay' in found) return { value: found.replay }
    const { takeOver } = found
    if (await within(() => session.reclaim(id, takeOver, draft))) return undefined
  }
  throw new RepriseError('ROW_UNSETTLED', `The record came and went ${mostClaimRounds} times while it was claimed.`)
}

async function attemptFailed<Handle extends TransactionControls, Result>(
  engine: Engine<Handle>,
  settings: CallSettings,
  { session, phase: reached, claimed, controls, limits, sentAtMs, result }: Progress<Handle, Result>,
  thrown: unknown,
): Promise<FailedAttempt<Result>> {
  const neverBegun = reached === 'body' && session?.neverBegun === true && session.poisoned !== undefined
  const phase = neverBegun ? 'connecting' : reached
  const error = thrown instanceof BodyFailed ? thrown.thrown : thrown
  let ruled = ruleOn(engine, settings, { phase, poisoned: session?.poisoned, claimed, thrown, error })
  const suppressed: unknown[] = []
  if (session !== undefined) {
    session.poison(error)
    // After it: a body that still runs, and goes on when it hears of this, can do nothing more.
    if (thrown instanceof BodyFailed) controls.abort(error)
    // ROLLBACK would have to wait for a step that is still under way, and the caller with it.
    const { connection, outcome } = ruled.ruling
    const sound = connection === 'keep' && outcome === 'aborted' && !limits.underWay
    if (sound) suppressed.push(...(await rollBack(session, settings)))
    else session.release('discard')
    const standing = session.stands?.()
    if (standing !== undefined) {
      const tooLate = (): unknown => deadlinePassed('waiting for the COMMIT of others', settings.reserveMs)
      await limits.wait(standing, limits.workEndsAtMs, tooLate).catch((thrown: unknown) => {
        ruled = ruleOn(engine, settings, { phase: 'body', poisoned: undefined, claimed: true, thrown, error: thrown })
      })
    }
  }
  const { ruling, shown, by } = ruled
  return {
    committed: false,
    phase,
    error: shown,
    ruling,
    ran: phase === 'committing' || (phase === 'body' && (claimed || settings.keyed === undefined)),
    codes: codesIn(by),
    suppressed,
    trace: session?.trace,
    emitted: session?.emitted,
    sentAtMs,
    result,
  }
}

/**
 * What a body can do beside its statements, as the runner keeps it. A class: an accessor in an object literal would
 * give each object a shape of its own, which keeps the whole transaction in memory until the next full collection.
 */
export class AttemptControls implements TransactionControls {
  readonly attempt: number
  readonly deadline: Deadline
  /** Whose transaction it is. */
  readonly engine: object
  /** What was asked for after the commit, in order. */
  readonly hooks: AfterCommit[] = []
  /** Whether the body has settled: then nothing can be put after the commit any more. */
  over = false
  // Made when the body first asks for its signal: most never do, and it costs as much as all other objects of an
  // attempt.
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined

  constructor(attempt: number, deadline: Deadline, engine: object) {
    this.attempt = attempt
    this.deadline = deadline
    this.engine = engine
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  afterCommit(work: AfterCommit): void {
    if (typeof work !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'afterCommit needs a function.')
    if (this.over) {
      const message = 'The transaction has ended; nothing can be put after its commit any more.'
      throw new RepriseError('TRANSACTION_OVER', message)
    }
    this.hooks.push(work)
  }

  /** Tells the body to stop. */
  abort(reason: unknown): void {
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }
}
