// Resolving an ambiguous commit: close it, then read. Looking alone is wrong, since the transaction may commit right
// after the look.

import type { Engine, Isolation, Manifest, Session, Stored, Trace, TransactionControls } from '../../atomicity/index.js'
import { type Clock, type Deadline, inTime, type Random, RepriseError, sleep } from '../../kernel/index.js'
import { fullJitter } from '../../retry/index.js'
import { reach } from './fault-points.js'
import { type LookedUpKey, lookedUpKey, type ReplayOrTakeOver } from './keyed.js'
import { deadlinePassed } from './limits.js'
import type { Unresolved } from './resolve-token.js'
import type { Found } from './settings.js'

/** What became of a transaction, and the value stored with its key where there is one. */
export type Resolved =
  | {
      readonly outcome: 'committed'
      readonly stored: { readonly value: unknown } | undefined
      /** False: ours is dead, and another call has committed under the key. */
      readonly ours: boolean
    }
  | { readonly outcome: 'aborted' }
  | { readonly outcome: 'unknown'; readonly errors: readonly unknown[] }

/** What resolution needs beside the engine. */
export interface ResolutionLimits {
  readonly deadline: Deadline
  readonly clock: Clock
  readonly random: Random
}

const backoff = /* @__PURE__ */ fullJitter({ baseMs: 10, capMs: 250 })
const mostErrors = 8
const leastLookMs = 100

/** What is known of a transaction whose end is not: what names it, or that its store has one writer at a time. */
export type Lost = Unresolved | { readonly writer: 'one' }

/** How a transaction is looked for. */
export interface Looking {
  /** Its key, as the call knows it. Default: as the token names it. */
  readonly keyed?: LookedUpKey | undefined
  /** Reads its effect, once it is proven to have ended. Default: nobody can. */
  readonly found?: Found | undefined
}

/**
 * Finds out what became of a transaction, by its key, by its trace or by its effect; tries until the deadline. Never
 * throws, never guesses.
 */
export async function resolveOutcome<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  lost: Lost,
  limits: ResolutionLimits,
  looking: Looking = {},
): Promise<Resolved> {
  const { clock, deadline, random } = limits
  const errors: unknown[] = []
  await reach('transaction.resolving')
  for (let failures = 1; ; failures++) {
    const leftMs = deadline.expiresAtMs - clock.monotonicMs()
    if (leftMs <= 0) return { outcome: 'unknown', errors }
    try {
      const found = await lookOnce(engine, lost, 'trace' in lost ? leftMs : lookMs(leftMs), clock, looking)
      if (found.outcome !== 'unknown') {
        await reach('transaction.resolved')
        return found
      }
      // What cannot be read now cannot be read the next time either.
      if (!('id' in lost) || found.errors.length > 0) return found
    } catch (error) {
      if (errors.length < mostErrors) errors.push(error)
      // A database that refuses us for good will not answer the next time either.
      if (engine.classify(error, 'connecting').alarm) return { outcome: 'unknown', errors }
    }
    const afterMs = deadline.expiresAtMs - clock.monotonicMs()
    if (afterMs <= 0) return { outcome: 'unknown', errors }
    await sleep(Math.min(Math.ceil(backoff.delayMs(failures, 0, random)), Math.ceil(afterMs)), { clock })
  }
}

// Half of what is left, so that a connection on which nothing arrives any more leaves time for another one.
function lookMs(leftMs: number): number {
  return Math.max(leftMs / 2, Math.min(leftMs, leastLookMs))
}

async function lookOnce<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  lost: Lost,
  leftMs: number,
  clock: Clock,
  { keyed, found }: Looking,
): Promise<Resolved> {
  const endMs = clock.monotonicMs() + leftMs
  if ('id' in lost) {
    const { id, token, until } = lost
    const closed = await closeThenRead(engine, keyed ?? lookedUpKey(id, token), keyed ?? token, leftMs, clock)
    const forgotten = closed.outcome === 'aborted' && until !== undefined && clock.wallMs() >= until
    return forgotten ? { outcome: 'unknown', errors: [markerForgotten()] } : closed
  }
  if ('trace' in lost) {
    const outcome = await resolveTrace(engine, lost.trace, leftMs, clock)
    if (outcome === 'committed') return { outcome, stored: undefined, ours: true }
    if (outcome === 'unknown') return { outcome, errors: [] }
    if (found === undefined) return { outcome }
  }
  return found === undefined
    ? { outcome: 'unknown', errors: [] }
    : readFound(engine, found, endMs - clock.monotonicMs(), clock)
}

async function resolveTrace<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  trace: Trace,
  leftMs: number,
  clock: Clock,
): Promise<'committed' | 'aborted' | 'unknown'> {
  if (engine.resolve === undefined) return 'unknown'
  const expired = (): unknown => deadlinePassed('being resolved')
  const looked = engine.resolve(trace, { waitMs: leftMs, readOnly: false, resolving: true })
  return inTime({ clock, limitMs: leftMs, expired }, looked)
}

// The transaction is proven to have ended, or ends the wait for its lock: where there is one writer at a time, a
// transaction that may write begins after every earlier one.
function readFound<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  found: Found,
  leftMs: number,
  clock: Clock,
): Promise<Resolved> {
  return rolledBack(engine, leftMs, clock, async (begin) => {
    const row = await (found as (tx: Handle) => unknown)(await begin())
    if (row === undefined || row === null) return { outcome: 'aborted' }
    return { outcome: 'committed', stored: { value: row }, ours: false }
  })
}

// That a marker is not there proves nothing once its memory may have ended.
function markerForgotten(): RepriseError {
  const message = 'The window of the key is over, so that its marker may have been there and be forgotten.'
  return new RepriseError('MARKER_FORGOTTEN', message)
}

/** A transaction that only looks, and begins when it is told to. */
type Looks<Handle> = (begin: () => Promise<Handle>, session: Session<Handle>) => Promise<Resolved>

async function rolledBack<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  leftMs: number,
  clock: Clock,
  look: Looks<Handle>,
): Promise<Resolved> {
  const untilMs = clock.monotonicMs() + leftMs
  const expired = (): unknown => deadlinePassed('being resolved')
  const within = <Value>(work: (leftMs: number) => PromiseLike<Value>): Promise<Value> => {
    const limitMs = Math.max(0, untilMs - clock.monotonicMs())
    return inTime({ clock, limitMs, expired }, work(limitMs))
  }
  // The engine keeps to the limit on its own. A second timer here might win against a session that arrives, which
  // nobody would give back.
  const session = await engine.acquire({ waitMs: leftMs, readOnly: false, resolving: true })
  let sound = false
  try {
    const found = await within((limitMs) => look(async () => beginLooking(engine, session, limitMs, clock), session))
    // What was found out stays true, whatever becomes of the connection that found it.
    sound = await within(async () => session.rollback()).then(
      () => true,
      () => false,
    )
    return found
  } finally {
    session.release(sound ? 'keep' : 'discard')
  }
}

function beginLooking<Handle extends TransactionControls>(
  { manifest }: Engine<Handle>,
  session: Session<Handle>,
  leftMs: number,
  clock: Clock,
): Promise<Handle> | Handle {
  const waitMs = Math.max(1, Math.ceil(leftMs))
  const settings = { isolation: closingIsolation(manifest), readOnly: false, idleMs: waitMs, lockWaitMs: waitMs }
  return session.begin(settings, {
    attempt: 1,
    signal: new AbortController().signal,
    deadline: { expiresAtMs: clock.monotonicMs() + leftMs },
    afterCommit() {},
  })
}

// The unique index decides. A conflict proves that the other transaction committed; an insert that goes through proves
// that it is dead, since it would still hold the key. Waiting for it is what closes it.
function closeThenRead<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  keyed: LookedUpKey,
  // Undefined: the claim that is looked for has no name, so that its record cannot be told from others'.
  named: unknown,
  leftMs: number,
  clock: Clock,
): Promise<Resolved> {
  return rolledBack(engine, leftMs, clock, async (begin, session) => {
    await begin()
    return readMarker(session, keyed, named !== undefined)
  })
}

async function readMarker<Handle>(session: Session<Handle>, keyed: LookedUpKey, named: boolean): Promise<Resolved> {
  const { id, draft } = keyed
  const claimed = await session.claim(id, draft)
  if (claimed === 'claimed') return { outcome: 'aborted' }
  // Somebody's record was there and is gone again: whose it was nobody can tell, so it is looked at once more.
  if (claimed === undefined) return { outcome: 'unknown', errors: [] }
  const met = metBy(keyed, claimed)
  const ours = claimed.record.token === draft.token
  if ('replay' in met) return { outcome: 'committed', stored: { value: met.replay }, ours }
  // Our own, which cannot be read here (too large to keep, or a codec's): it is there, and that is what was asked.
  if (ours) return { outcome: 'committed', stored: undefined, ours }
  // Somebody else's record refuses this call: then the call's own cannot be there as well. Whose it is can only be told
  // by the claim.
  if ('refusal' in met) return named ? { outcome: 'aborted' } : { outcome: 'unknown', errors: [met.refusal] }
  // One whose memory has ended may be about to be replaced by the lost transaction; writing to it waits for that one.
  if (await session.reclaim(id, met.takeOver, draft)) return { outcome: 'aborted' }
  return { outcome: 'unknown', errors: [] }
}

function metBy(keyed: LookedUpKey, stored: Stored): ReplayOrTakeOver<unknown> | { readonly refusal: unknown } {
  try {
    return keyed.meet(stored)
  } catch (refusal) {
    return { refusal }
  }
}

// Under a stricter level a conflict with a row that was committed meanwhile is a serialization failure, which says
// nothing.
function closingIsolation({ isolation }: Manifest): Isolation {
  return isolation.includes('read-committed') ? 'read-committed' : (isolation[0] ?? 'serializable')
}
