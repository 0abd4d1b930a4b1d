// Resolving an ambiguous commit: close it, then read. Looking alone is wrong, since the transaction may commit right
// after the look.

import type { Engine, Isolation, Manifest, Session, Stored, TransactionControls } from '../../atomicity/index.js'
import { type Clock, type Deadline, inTime, type Random, sleep } from '../../kernel/index.js'
import { fullJitter } from '../../retry/index.js'
import { reach } from './fault-points.js'
import { type KeyedCall, plainKey, type ReplayOrTakeOver } from './keyed.js'
import { deadlinePassed } from './limits.js'
import type { Unresolved } from './resolve-token.js'

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

/**
 * Finds out what became of a transaction, by its key or by its trace; tries until the deadline. Never throws, never
 * guesses.
 */
export async function resolveOutcome<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  unresolved: Unresolved,
  limits: ResolutionLimits,
  keyed?: KeyedCall<unknown>,
): Promise<Resolved> {
  const { clock, deadline, random } = limits
  const errors: unknown[] = []
  await reach('transaction.resolving')
  for (let failures = 1; ; failures++) {
    const leftMs = deadline.expiresAtMs - clock.monotonicMs()
    if (leftMs <= 0) return { outcome: 'unknown', errors }
    try {
      const found = await lookOnce(engine, unresolved, 'id' in unresolved ? lookMs(leftMs) : leftMs, clock, keyed)
      if (found.outcome !== 'unknown') {
        await reach('transaction.resolved')
        return found
      }
      // What cannot be read now cannot be read the next time either.
      if (!('id' in unresolved) || found.errors.length > 0) return found
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
  unresolved: Unresolved,
  leftMs: number,
  clock: Clock,
  keyed: KeyedCall<unknown> | undefined,
): Promise<Resolved> {
  if ('id' in unresolved) {
    const closing = keyed ?? plainKey(unresolved.id, unresolved.token)
    return closeThenRead(engine, closing, keyed !== undefined || unresolved.token !== undefined, leftMs, clock)
  }
  const { resolve } = engine
  if (resolve === undefined) return { outcome: 'unknown', errors: [] }
  const expired = (): unknown => deadlinePassed('being resolved')
  const looked = resolve.call(engine, unresolved.trace, { waitMs: leftMs, readOnly: false, resolving: true })
  const outcome = await inTime({ clock, limitMs: leftMs, expired }, looked)
  if (outcome === 'committed') return { outcome, stored: undefined, ours: true }
  return outcome === 'aborted' ? { outcome } : { outcome, errors: [] }
}

// `named`: the claim that is looked for has a name, so that its record can be told from others'. The unique index
// decides. A conflict proves that the other transaction committed; an insert that goes through proves that it is dead,
// since it would still hold the key. Waiting for it is what closes it.
async function closeThenRead<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  keyed: KeyedCall<unknown>,
  named: boolean,
  leftMs: number,
  clock: Clock,
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
    const found = await within((waitMs) => closeIn(engine, session, keyed, named, waitMs, clock))
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

async function closeIn<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  session: Session<Handle>,
  keyed: KeyedCall<unknown>,
  named: boolean,
  leftMs: number,
  clock: Clock,
): Promise<Resolved> {
  const waitMs = Math.max(1, Math.ceil(leftMs))
  const settings = { isolation: closingIsolation(engine.manifest), readOnly: false, idleMs: waitMs, lockWaitMs: waitMs }
  await session.begin(settings, {
    attempt: 1,
    signal: new AbortController().signal,
    deadline: { expiresAtMs: clock.monotonicMs() + leftMs },
    afterCommit() {},
  })
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

function metBy(keyed: KeyedCall<unknown>, stored: Stored): ReplayOrTakeOver<unknown> | { readonly refusal: unknown } {
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
