// The machine: what an event means to a record, decided purely. Runners read a record, ask here, and write what it says
// if the record is still the same.

import {
  isFinished,
  isForgotten,
  type RecordChange,
  type RecordOutcome,
  recordFormat,
  type StoredRecord,
} from '../atomicity/index.js'
import type {
  ClaimEvent,
  Decision,
  LookEvent,
  MachineEvent,
  OwnerEvent,
  Recovery,
  SettleEvent,
} from './machine-events.js'

export type {
  ClaimEvent,
  Decision,
  LookEvent,
  MachineEvent,
  OwnerEvent,
  Recovery,
  Refusal,
  SettleEvent,
} from './machine-events.js'

/**
 * Decides. Pure, and total over every record and event.
 *
 * @param nowMs The store's clock when the record was read, in ms since 1970.
 */
export function decide(record: StoredRecord | undefined, event: MachineEvent, nowMs: number): Decision {
  if (record !== undefined && record.format > recordFormat) {
    return 'fence' in event ? { act: 'stale' } : { act: 'refuse', because: 'format' }
  }
  switch (event.kind) {
    case 'claim':
      return onClaim(record, event, nowMs)
    case 'look':
      return onLook(record, event, nowMs)
    case 'settle':
      return onSettle(record, event, nowMs)
    default:
      return onOwner(record, event)
  }
}

function onClaim(record: StoredRecord | undefined, event: ClaimEvent, nowMs: number): Decision {
  if (record === undefined) return { act: 'insert' }
  if (isForgotten(record, nowMs)) return { act: 'execute', how: 'anew', change: claimAnew(event) }
  if (record.mode !== event.mode) return { act: 'refuse', because: 'mode' }
  if (!event.sameContent) return { act: 'refuse', because: 'mismatch' }
  if (isFinished(record)) return { act: 'replay' }
  // Marker and outcome of an atomic operation commit together, so a committed record without one is not ours.
  if (record.mode === 'atomic') return { act: 'refuse', because: 'invalid' }
  if (record.state === 'claimed') {
    if (record.token === event.token) return own(record, event, nowMs) ?? heldBack(record, event)
    const wait = leaseLeft(record, event.marginMs, nowMs)
    if (wait !== undefined) return { act: 'refuse', because: 'in-flight', ...wait }
  }
  return recover(record, event, nowMs) ?? heldBack(record, event)
}

function onLook(record: StoredRecord | undefined, event: LookEvent, nowMs: number): Decision {
  if (record === undefined || record.mode !== 'leased' || isFinished(record)) return { act: 'wait' }
  if (record.state === 'claimed') {
    // Taken as due it had become unknown; one that is claimed was taken over by somebody else since.
    return record.token === event.token ? (own(record, event, nowMs) ?? noted(record, event)) : { act: 'wait' }
  }
  // Left to a person, also where another sweep, or the owner, did so after this one took it.
  if (record.dueAtMs === undefined) return { act: 'wait' }
  if (event.unreadable !== undefined) return noted(record, event)
  const found = recover(record, event, nowMs)
  // Without its input only a caller can run it again.
  if (found?.act === 'execute' && record.input === undefined) return { act: 'wait' }
  return found ?? noted(record, event)
}

// The owner before may have sent something: only what the definition declares may follow. Undefined: nothing may.
function recover(record: StoredRecord, event: ClaimEvent | LookEvent, nowMs: number): Decision | undefined {
  if (event.recovery?.kind === 'resolve') return { act: 'ask', change: takeOver(event) }
  const sendWithinMs = rerunLeftMs(record, event, nowMs)
  return sendWithinMs === undefined
    ? undefined
    : { act: 'execute', how: 'rerun', change: takeOver(event), sendWithinMs }
}

// The answer was lost, not what the claim was for: where others were before it, it asks or runs again as it would have
// then.
function own(record: StoredRecord, event: ClaimEvent | LookEvent, nowMs: number): Decision | undefined {
  const change = renewal(event.leaseMs)
  if (record.claims === 1 && event.kind === 'claim') return { act: 'own', how: 'run', change }
  if (event.recovery?.kind === 'resolve') return { act: 'own', how: 'ask', change }
  const sendWithinMs = rerunLeftMs(record, event, nowMs)
  return sendWithinMs === undefined ? undefined : { act: 'own', how: 'rerun', change, sendWithinMs }
}

function onOwner(record: StoredRecord | undefined, event: OwnerEvent): Decision {
  // A released key has no row: the owner that released it, and lost the answer, finds nothing.
  if (record === undefined) return event.kind === 'release' ? { act: 'done' } : { act: 'stale' }
  if (record.token !== event.token || record.fence !== event.fence) return { act: 'stale' }
  if (record.state !== 'claimed') return isDone(record, event) ? { act: 'done' } : { act: 'stale' }
  switch (event.kind) {
    case 'renew':
      return { act: 'write', change: renewal(event.leaseMs) }
    case 'release':
      // That this claim sent nothing says nothing about the claims before it; a sweep looks when the lease would have
      // ended.
      return record.claims === 1 || event.proof === 'asked'
        ? { act: 'remove' }
        : { act: 'write', change: { state: 'unknown', because: earlierClaim } }
    case 'lose':
      return {
        act: 'write',
        change: { state: 'unknown', dueInMs: event.lookInMs ?? null, because: event.because },
      }
    default:
      return { act: 'write', change: completion(event) }
  }
}

const earlierClaim = 'earlier-claim'

// Token and fence stay on a finished record, so that its owner recognises a completion whose answer was lost.
function isDone(record: StoredRecord, event: OwnerEvent): boolean {
  switch (event.kind) {
    case 'complete':
      return isOutcome(record, event)
    case 'lose':
      return record.state === 'unknown' && record.because === event.because
    case 'release':
      return record.state === 'unknown' && record.because === earlierClaim && event.proof === 'unsent'
    default:
      return false
  }
}

function onSettle(record: StoredRecord | undefined, event: SettleEvent, nowMs: number): Decision {
  if (record === undefined) return { act: 'refuse', because: 'absent' }
  const { decision } = event
  if (isFinished(record)) {
    const ours = record.because === settledBecause && decision.state !== 'released' && isOutcome(record, decision)
    return ours ? { act: 'done' } : { act: 'refuse', because: 'finished' }
  }
  // A claim without a lease never ends by time: for a person it is over at once. One of atomic mode was committed by a
  // body that ended its transaction itself; nobody else can go on.
  const leased = record.state === 'claimed' && record.mode === 'leased'
  const wait = leased ? leaseLeft(record, event.marginMs, nowMs) : undefined
  if (wait?.retryInMs !== undefined) return { act: 'refuse', because: 'in-flight', retryInMs: wait.retryInMs }
  if (decision.state === 'released') return { act: 'remove' }
  return { act: 'write', change: { ...completion(decision), token: null, because: settledBecause } }
}

const settledBecause = 'settled'

function isOutcome(record: StoredRecord, { state, codec, value }: RecordOutcome): boolean {
  return record.state === state && record.value === value && record.codec === codec
}

function completion({ state, codec, value, rememberedMs }: RecordOutcome): RecordChange {
  const outcome = { codec: codec ?? null, value: value ?? null, input: null, because: null }
  return { state, dueInMs: null, remembered: rememberedMs, ...outcome }
}

function claimAnew(event: ClaimEvent): RecordChange {
  const { token, leaseMs, fingerprint, input } = event
  return {
    state: 'claimed',
    mode: event.mode,
    token,
    claimed: 'first',
    fingerprint: fingerprint ?? null,
    input: input ?? null,
    codec: null,
    value: null,
    because: null,
    ...(leaseMs === undefined ? { dueInMs: null } : { dueInMs: leaseMs, fence: 'next' }),
  }
}

function takeOver({ token, leaseMs }: ClaimEvent | LookEvent): RecordChange {
  return { ...renewal(leaseMs), token, fence: 'next', claimed: true, because: null }
}

function renewal(leaseMs: number | undefined): RecordChange {
  return { state: 'claimed', dueInMs: leaseMs ?? null }
}

// A claim whose lease is over becomes unknown, so that its owner is stale; it is due at once, for a sweep to leave its
// note. What is unknown stays as it is.
function heldBack(record: StoredRecord, { recovery }: ClaimEvent): Decision {
  const refused = { act: 'refuse', because: 'unknown' } as const
  if (record.state === 'unknown') return refused
  return { ...refused, change: { state: 'unknown', token: null, dueInMs: 0, because: heldBecause(recovery) } }
}

// No look comes after this one: a person settles it.
function noted(record: StoredRecord, { recovery, unreadable }: LookEvent): Decision {
  // What was found out about an unknown outcome first says more than what nobody could do about it later.
  const because = (record.state === 'unknown' ? record.because : undefined) ?? heldBecause(recovery)
  const why = recovery.kind === 'rerun' ? 'the receiver may have forgotten the key' : 'nobody can be asked'
  const reason = `${unreadable ?? why}: a person settles it`
  const change = { state: 'unknown', token: null, dueInMs: null, because } as const
  return { act: 'write', change, note: { action: 'swept', reason } }
}

function heldBecause(recovery: Recovery | undefined): string {
  return recovery?.kind === 'rerun' ? 'rerun-window-over' : 'held'
}

/**
 * How long the receiver still knows our key, or undefined where that is not long enough for one more lease. The margin
 * allows for what the store's clock was ahead at the first claim; a clock that has gone back since the last one is not
 * believed.
 */
function rerunLeftMs(record: StoredRecord, event: ClaimEvent | LookEvent, nowMs: number): number | undefined {
  if (event.recovery?.kind !== 'rerun') return undefined
  const endMs = record.firstClaimedAtMs + event.recovery.windowMs - event.marginMs
  const leftMs = endMs - Math.max(nowMs, record.claimedAtMs)
  return leftMs >= (event.leaseMs ?? 0) ? leftMs : undefined
}

/** Undefined: the lease is over, and its margin. Without a time: it has none to end by. */
function leaseLeft(
  { dueAtMs }: StoredRecord,
  marginMs: number,
  nowMs: number,
): { readonly retryInMs?: number } | undefined {
  if (dueAtMs === undefined) return {}
  const leftMs = dueAtMs + marginMs - nowMs
  return leftMs > 0 ? { retryInMs: leftMs } : undefined
}
