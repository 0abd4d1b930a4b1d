// The runner: repeats whole transactions, never a statement, never from inside an open one, never after an outcome
// nobody knows.

import { type Engine, lockEvidenceIn, type Phase, type TransactionControls } from '../../atomicity/index.js'
import { type Deadline, defined, inTime, isRepriseError, sleep } from '../../kernel/index.js'
import { currentLayer, markSpent, meet, type OpenLayer, repeatsLeft } from '../../retry/index.js'
import { afterCommitFailed, transactionAttempt, transactionResolved } from '../../telemetry/index.js'
import { type FailedTransaction, type GivenUp, remember } from '../history.js'
import { refuseInside } from '../open-transaction.js'
import type { TransactionDefaults } from '../options.js'
import { storeUnreachable } from '../outage.js'
import { UnknownCommitError } from '../unknown-commit.js'
import { type AfterCommit, attemptOnce, type FailedAttempt, type TransactionBody } from './attempt.js'
import { type Lost, type Resolved, resolveOutcome } from './closing.js'
import type { KeyedCall } from './keyed.js'
import { deadlinePassed, deadlineTooShort } from './limits.js'
import { printResolveToken, type Unresolved } from './resolve-token.js'
import { CallSettings, sharedSettings, type TransactionSettings } from './settings.js'

const leastAfterCommitMs = 250
/** More failures of a call are not remembered; the first one is, and the last ones are. */
const mostRemembered = 100

/**
 * Runs transactions whose key means more than a plain one; for the modules above. Throws at once what refuses a signal
 * that is none.
 */
export type KeyedTransactions<Handle> = <Result>(
  keyed: KeyedCall<Result>,
  body: TransactionBody<Handle, Result>,
  limits: { readonly deadline: Deadline; readonly signal: AbortSignal | undefined },
) => Promise<Result>

/**
 * The transactions of a domain, with keys of the caller's own making.
 *
 * @param settings What all of them go by: the answer of `readTransactionOptions`.
 */
export function keyedTransactions<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  defaults: TransactionDefaults,
  settings: TransactionSettings,
): KeyedTransactions<Handle> {
  const shared = sharedSettings(engine.manifest, defaults, settings)
  return (keyed, body, { deadline, signal }) => {
    const own = { keyed: keyed as KeyedCall<unknown>, found: undefined, readOnly: false, deadline, signal }
    return runTransaction(engine, new CallSettings(shared, own), body)
  }
}

/** Carries out a transaction: as many attempts as it takes and may have. */
export async function runTransaction<Handle extends TransactionControls, Result>(
  engine: Engine<Handle>,
  settings: CallSettings,
  body: TransactionBody<Handle, Result>,
): Promise<Result> {
  const { signal, deadline, reserveMs, clock } = settings
  refuseInside()
  if (signal?.aborted) throw signal.reason
  const leftMs = deadline.expiresAtMs - clock.monotonicMs()
  if (leftMs <= reserveMs) throw leftMs <= 0 ? deadlinePassed('not yet begun') : deadlineTooShort(leftMs, reserveMs)
  const { attempts, own } = settings
  const around = currentLayer()
  // It repeats only what provably did not happen, whoever else repeats, but spends of the same allowance.
  const layer: OpenLayer = {
    depth: (around?.depth ?? 0) + own.depth,
    declared: (around?.declared ?? 1) * own.declared,
    owns: around?.owns === true,
    allowance: around?.allowance ?? { attempts, spent: 0 },
  }
  if (around !== undefined) meet(around, { name: engine.name, attempts, layer: 'inherit', own }, 'transaction')
  const failures: FailedTransaction[] = []
  let unreachedAttempts = 0
  for (let number = 1; ; number++) {
    // Once the store could not be reached, no body begins before BEGIN was answered: else one would begin, uncounted,
    // on every connection that is dead.
    const end = await attemptOnce(engine, settings, body, number, layer, unreachedAttempts === 0)
    if (end.committed) {
      if (settings.budget !== undefined && !settings.budget.full) creditBudget(engine.name, settings, number > 1)
      if (end.afterCommit.length > 0) await runAfterCommit(engine.name, settings, end.afterCommit)
      return end.value
    }
    const resolved = end.ruling.outcome === 'aborted' ? undefined : await resolve(engine, settings, end)
    if (resolved?.outcome === 'committed') return committedAfterAll(engine.name, settings, end, resolved)
    const { phase, ruling, error, suppressed, codes } = end
    const found = defined({ resolved: resolved?.outcome })
    const failure: FailedTransaction = { attempt: number, phase, ruling, ...codes, error, suppressed, ...found }
    if (resolved?.outcome === 'unknown') {
      failures.push(failure)
      announce(engine.name, settings, failure, 'unknown')
      throw unknownCommit(engine.name, settings, end, failures, resolved.errors)
    }
    const unreached = isUnreached(end)
    if (unreached) unreachedAttempts += 1
    // Nothing was begun, so nothing was spent of what a transaction on its own may have.
    const begun = unreached && around === undefined ? undefined : number - unreachedAttempts
    const delayMs = nextDelayMs(settings, layer, number, begun, end, failures)
    if (typeof delayMs === 'string') {
      failures.push(failure)
      announce(engine.name, settings, failure, delayMs)
      const shown = shownAtEnd(engine.name, end, failures)
      remember(shown, { attempts: failures, because: delayMs })
      // A policy around it may be out of its sight.
      markSpent(shown, {
        ...layer,
        name: engine.name,
        kind: 'transaction',
        attempts,
        call: Number.POSITIVE_INFINITY,
      })
      throw shown
    }
    if (failures.length >= mostRemembered) failures.splice(1, 1)
    failures.push({ ...failure, delayMs })
    announce(engine.name, settings, { ...failure, delayMs }, undefined)
    await pause(settings, delayMs, failures)
  }
}

async function resolve<Handle extends TransactionControls, Result>(
  engine: Engine<Handle>,
  settings: CallSettings,
  end: FailedAttempt<Result>,
): Promise<Resolved> {
  const lost = lostIn(engine, settings, end)
  const looked: Resolved =
    lost === undefined ? { outcome: 'unknown', errors: [] } : await resolveOutcome(engine, lost, settings, settings)
  // If it committed before the body returned, we have no result to hand out: report unknown.
  const orphan = looked.outcome === 'committed' && looked.stored === undefined && end.result === undefined
  const found: Resolved = orphan ? { outcome: 'unknown', errors: [] } : looked
  if (transactionResolved.hasSubscribers) {
    const by = lookedBy(lost, found)
    transactionResolved.publish({ domain: engine.name, ...namesOf(settings), outcome: found.outcome, by })
  }
  return found
}

function lostIn<Handle extends TransactionControls, Result>(
  { manifest }: Engine<Handle>,
  settings: CallSettings,
  end: FailedAttempt<Result>,
): Lost | undefined {
  const unresolved = unresolvedOf(settings, end)
  if (unresolved !== undefined || settings.found === undefined) return unresolved
  return manifest.writers === 'one' ? { writer: 'one' } : undefined
}

function unresolvedOf<Result>(
  { keyed, clock }: CallSettings,
  { trace, sentAtMs }: FailedAttempt<Result>,
): Unresolved | undefined {
  if (keyed === undefined) return trace === undefined ? undefined : { trace }
  const { id, draft, rememberedMs } = keyed
  const agoMs = sentAtMs === undefined ? 0 : clock.monotonicMs() - sentAtMs
  const until = Math.floor(clock.wallMs() - agoMs + rememberedMs)
  return { id, token: draft.token, ...(Number.isFinite(until) && { until }) }
}

function lookedBy(lost: Lost | undefined, found: Resolved): 'key' | 'trace' | 'found' | 'nothing' {
  if (lost === undefined) return 'nothing'
  if ('id' in lost) return 'key'
  return 'writer' in lost || (found.outcome === 'committed' && found.stored !== undefined) ? 'found' : 'trace'
}

async function committedAfterAll<Result>(
  domain: string,
  settings: CallSettings,
  { result, emitted }: FailedAttempt<Result>,
  { stored, ours }: Resolved & { readonly outcome: 'committed' },
): Promise<Result> {
  if (settings.budget !== undefined) creditBudget(domain, settings, true)
  // What belongs to another call's commit was run by that call.
  if (ours) emitted?.()
  if (ours) await runAfterCommit(domain, settings, result?.afterCommit ?? [])
  return stored === undefined ? (result?.value as Result) : (stored.value as Result)
}

function unknownCommit<Result>(
  domain: string,
  settings: CallSettings,
  end: FailedAttempt<Result>,
  failures: readonly FailedTransaction[],
  errors: readonly unknown[],
): UnknownCommitError {
  const unresolved = unresolvedOf(settings, end)
  const token = unresolved === undefined ? undefined : printResolveToken(domain, unresolved)
  const error = new UnknownCommitError(token, failures, errors)
  remember(error, { attempts: failures, because: 'unknown' })
  return error
}

/** Whether the store could not be reached: no connection could be made, or it was lost before anything was begun. */
function isUnreached({ phase, ruling }: Pick<FailedTransaction, 'phase' | 'ruling'>): boolean {
  const { help, connection, outcome } = ruling
  return isBeforeBegin(phase) && help === 'transient' && connection === 'discard' && outcome === 'aborted'
}

const isBeforeBegin = (phase: Phase): boolean => phase === 'waiting' || phase === 'connecting'

/** What a caller sees in the end: not the driver's bare error of an outage, and not a limit that is ours alone. */
function shownAtEnd<Result>(
  domain: string,
  end: FailedAttempt<Result>,
  failures: readonly FailedTransaction[],
): unknown {
  const { error } = end
  // It was found out meanwhile that it is dead.
  if (isRepriseError(error, 'COMMIT_TIMEOUT')) return deadlinePassed('waiting for the answer to COMMIT', 0, error)
  // The last try may have been cut by the deadline: then the one before it says what was wrong.
  const cut = isRepriseError(error, 'CONNECT_TIMEOUT') || isRepriseError(error, 'DEADLINE_EXCEEDED')
  const before = cut && isBeforeBegin(end.phase) ? failures.at(-2) : undefined
  const last = before !== undefined && isUnreached(before) ? before : end
  return !isUnreached(last) || isRepriseError(last.error) ? last.error : storeUnreachable(domain, last.error)
}

/**
 * The wait before the next attempt, or why there is none.
 *
 * @param begun How many transactions were begun; undefined: this one was not, and counts for nothing.
 */
function nextDelayMs<Result>(
  settings: CallSettings,
  { allowance }: OpenLayer,
  number: number,
  begun: number | undefined,
  { ruling, ran }: FailedAttempt<Result>,
  failures: readonly FailedTransaction[],
): number | GivenUp {
  const { attempts, backoff, budget, clock, deadline, reserveMs, random, signal } = settings
  // What others undid says nothing about the call or the store: no budget counts it, and no wait would help.
  const own = ruling.shared === undefined
  if (signal?.aborted) return 'signal'
  if (ruling.help === 'permanent') return 'permanent'
  // A store that cannot be reached, and a key that another call is at work for, are no bodies that failed.
  if (ran && own) budget?.failed(clock.monotonicMs(), number > 1)
  if (begun !== undefined && begun >= attempts) return 'attempts'
  if (begun !== undefined && repeatsLeft(allowance) <= 0) return 'allowance'
  const delayMs = own ? backoff.delayMs(number, failures.at(-1)?.delayMs ?? 0, random) : 0
  if (clock.monotonicMs() + delayMs >= deadline.expiresAtMs - reserveMs) return 'deadline'
  if (own && budget !== undefined && !budget.tryRepeat(clock.monotonicMs())) return 'budget'
  if (begun !== undefined) allowance.spent += 1
  return delayMs
}

async function pause(settings: CallSettings, delayMs: number, failures: readonly FailedTransaction[]): Promise<void> {
  const { clock, signal } = settings
  try {
    await sleep(Math.ceil(delayMs), defined({ clock, signal }))
  } catch (reason) {
    remember(reason, { attempts: failures, because: 'signal' })
    throw reason
  }
}

function announce(domain: string, settings: CallSettings, failure: FailedTransaction, stop: GivenUp | undefined): void {
  if (!transactionAttempt.hasSubscribers) return
  const { attempt, phase, ruling, sqlState, driverCode, delayMs } = failure
  transactionAttempt.publish({
    domain,
    attempt,
    phase,
    outcome: ruling.outcome,
    help: ruling.help,
    sign: ruling.sign,
    // An outcome that stayed unknown is an intent that somebody has to settle.
    alarm: ruling.alarm || stop === 'unknown',
    ...namesOf(settings),
    ...defined({ sqlState, driverCode, evidence: lockEvidenceIn(failure.error), delayMs, stop }),
  })
}

// What finds the record of a call, in events.
function namesOf({ keyed }: CallSettings): { readonly operation?: string; readonly id?: string } {
  return defined({ operation: keyed?.draft.operation, id: keyed?.id })
}

// After a commit nothing of the caller's may make it look like a failure.
function creditBudget(domain: string, { budget, clock }: CallSettings, repeated: boolean): void {
  try {
    budget?.succeeded(clock.monotonicMs(), repeated)
  } catch (error) {
    if (afterCommitFailed.hasSubscribers) afterCommitFailed.publish({ domain, error })
  }
}

// The transaction is committed, and what comes after does not keep the caller much longer than the deadline.
async function runAfterCommit(domain: string, settings: CallSettings, hooks: readonly AfterCommit[]): Promise<void> {
  const { clock, deadline } = settings
  const untilMs = Math.max(deadline.expiresAtMs, clock.monotonicMs() + leastAfterCommitMs)
  const expired = (): unknown => deadlinePassed('running what comes after its commit')
  for (const hook of hooks) {
    try {
      // An async function, so that a hook that throws at once is a failure of the hook.
      const run = async (): Promise<unknown> => hook()
      await inTime({ clock, limitMs: untilMs - clock.monotonicMs(), expired }, run())
    } catch (error) {
      if (afterCommitFailed.hasSubscribers) afterCommitFailed.publish({ domain, error })
    }
  }
}
