// Holes that a machine like this one can have, each as the shortest story that falls into it.

import { describe, expect, it } from 'vitest'
import { changedRecord, draftedRecord, type RecordChange, recordFormat, type StoredRecord } from '../atomicity/index.js'
import { type ClaimEvent, type Decision, decide, type LookEvent, type Recovery, type SettleEvent } from './machine.js'

const leaseMs = 30
const marginMs = 5
const rerun: Recovery = { kind: 'rerun', windowMs: 1_000 }
const resolve: Recovery = { kind: 'resolve' }
const hold: Recovery = { kind: 'hold' }

let fences = 0
const nextFence = (): number => {
  fences += 1
  return fences
}

function claimBy(token: string, recovery: Recovery = rerun, more: Partial<ClaimEvent> = {}): ClaimEvent {
  const event = {
    kind: 'claim',
    mode: 'leased',
    token,
    sameContent: true,
    fingerprint: 'f',
    leaseMs,
    marginMs,
  } as const
  return { ...event, recovery, input: '{}', ...more }
}

function lookBy(token: string, recovery: Recovery): LookEvent {
  return { kind: 'look', token, leaseMs, marginMs, recovery }
}

function draft(token: string, nowMs = 0): StoredRecord {
  return draftedRecord({ mode: 'leased', token, fingerprint: 'f', leaseMs, input: '{}' }, nowMs, nextFence)
}

/** What is stored after a decision was written. */
function written(record: StoredRecord, decision: Decision, nowMs: number): StoredRecord {
  const change = 'change' in decision ? decision.change : undefined
  expect(change, `${decision.act} writes nothing`).toBeDefined()
  return changedRecord(record, change as RecordChange, nowMs, nextFence)
}

const ownerOf = ({ token, fence }: StoredRecord): { token: string; fence: number } => ({
  token: token ?? '',
  fence: fence ?? 0,
})

const success = { state: 'succeeded', codec: undefined, value: '1', rememberedMs: 100 } as const
const settled: SettleEvent = { kind: 'settle', marginMs, decision: success }

describe('a lost answer', () => {
  it('to a first claim: the claim is ours, and its lease begins anew before anything is sent', () => {
    const record = draft('a')
    const decision = decide(record, claimBy('a'), 29)
    expect(decision).toEqual({ act: 'own', how: 'run', change: { state: 'claimed', dueInMs: leaseMs } })
    expect(written(record, decision, 29).dueAtMs).toBe(59)
  })

  it('to a takeover that was to ask: it still asks, and does not run', () => {
    const taken = written(draft('a'), decide(draft('a'), claimBy('b', resolve), 100), 100)
    expect(decide(taken, claimBy('b', resolve), 101)).toMatchObject({ act: 'own', how: 'ask' })
  })

  it('to a takeover that was to run again: only while the receiver knows the key', () => {
    const taken = written(draft('a'), decide(draft('a'), claimBy('b'), 100), 100)
    expect(decide(taken, claimBy('b'), 110)).toMatchObject({ act: 'own', how: 'rerun', sendWithinMs: 885 })
    expect(decide(taken, claimBy('b'), 990)).toMatchObject({ act: 'refuse', because: 'unknown' })
  })

  it('to the takeover of a sweep: it does what the takeover was for', () => {
    const unknown = { ...draft('a'), state: 'unknown' as const, token: undefined }
    const asking = written(unknown, decide(unknown, lookBy('s', resolve), 100), 100)
    expect(decide(asking, lookBy('s', resolve), 101)).toMatchObject({ act: 'own', how: 'ask' })
    const running = written(unknown, decide(unknown, lookBy('s', rerun), 100), 100)
    expect(decide(running, lookBy('s', rerun), 101)).toMatchObject({ act: 'own', how: 'rerun' })
    expect(decide(running, lookBy('s', rerun), 990)).toMatchObject({ act: 'write', change: { state: 'unknown' } })
  })

  it('to a settlement: the same decision again is done, another one is refused', () => {
    const unknown = { ...draft('a'), state: 'unknown' as const }
    const record = written(unknown, decide(unknown, settled, 100), 100)
    expect(decide(record, settled, 101)).toEqual({ act: 'done' })
    const other = { ...settled, decision: { ...success, value: '2' } }
    expect(decide(record, other, 101)).toEqual({ act: 'refuse', because: 'finished' })
    const released = { ...settled, decision: { state: 'released' as const } }
    expect(decide(record, released, 101)).toEqual({ act: 'refuse', because: 'finished' })
  })
})

describe('a release', () => {
  it('of the only claim frees the key', () => {
    const record = draft('a')
    expect(decide(record, { kind: 'release', ...ownerOf(record), proof: 'unsent' }, 5)).toEqual({ act: 'remove' })
  })

  it('after an earlier claim that may have sent something does not: a later no proves nothing about it', () => {
    const taken = written(draft('a'), decide(draft('a'), claimBy('b'), 100), 100)
    const release = { kind: 'release', ...ownerOf(taken), proof: 'unsent' } as const
    const decision = decide(taken, release, 101)
    expect(decision).toEqual({ act: 'write', change: { state: 'unknown', because: 'earlier-claim' } })
    const kept = written(taken, decision, 101)
    expect([kept.firstClaimedAtMs, kept.dueAtMs]).toEqual([0, 130])
    expect(decide(kept, release, 102)).toEqual({ act: 'done' })
  })

  it('after asking frees the key: the answer covers all claims', () => {
    const taken = written(draft('a'), decide(draft('a'), claimBy('b', resolve), 100), 100)
    expect(decide(taken, { kind: 'release', ...ownerOf(taken), proof: 'asked' }, 101)).toEqual({ act: 'remove' })
  })
})

describe('the receiver’s window', () => {
  it('is not relied on within the margin: both clocks may differ by as much', () => {
    const record = draft('a')
    expect(decide(record, claimBy('b'), 965)).toMatchObject({ act: 'execute', how: 'rerun', sendWithinMs: leaseMs })
    expect(decide(record, claimBy('b'), 966)).toMatchObject({ act: 'refuse', because: 'unknown' })
    const unknown = { ...record, state: 'unknown' as const }
    expect(decide(unknown, lookBy('s', rerun), 965)).toMatchObject({ act: 'execute', sendWithinMs: leaseMs })
    expect(decide(unknown, lookBy('s', rerun), 966)).toMatchObject({ act: 'write', change: { state: 'unknown' } })
  })

  it('does not open again where the clock goes backwards past the last claim', () => {
    const record = { ...draft('a'), claimedAtMs: 980, state: 'unknown' as const }
    expect(decide(record, claimBy('b'), 10)).toMatchObject({ act: 'refuse', because: 'unknown' })
  })
})

describe('what is held', () => {
  it('is written once: no claim and no look writes it again', () => {
    const held = written(draft('a'), decide(draft('a'), claimBy('b', hold), 100), 100)
    expect(held).toMatchObject({ state: 'unknown', because: 'held', token: undefined })
    expect(decide(held, claimBy('c', hold), 101)).toEqual({ act: 'refuse', because: 'unknown' })
    const noted = written(held, decide(held, lookBy('s', hold), 102), 102)
    expect(noted.dueAtMs).toBeUndefined()
    expect(decide(noted, lookBy('s', hold), 103)).toEqual({ act: 'wait' })
  })

  it('keeps what was found out first, and is still written once', () => {
    const expired = { ...draft('a'), state: 'unknown' as const, because: 'lease-expired', token: undefined }
    expect(decide(expired, claimBy('b', hold), 101)).toEqual({ act: 'refuse', because: 'unknown' })
    const noted = written(expired, decide(expired, lookBy('s', hold), 102), 102)
    expect(noted.because).toBe('lease-expired')
    expect(decide(noted, lookBy('t', hold), 103)).toEqual({ act: 'wait' })
    expect(decide(noted, claimBy('b', hold), 104)).toEqual({ act: 'refuse', because: 'unknown' })
  })

  it('is due, so that a sweep finds it and leaves a note', () => {
    const held = written(draft('a'), decide(draft('a'), claimBy('b', hold), 100), 100)
    expect(held.dueAtMs).toBe(100)
    expect(decide(held, lookBy('s', hold), 100)).toMatchObject({ act: 'write', note: { action: 'swept' } })
  })
})

describe('a claim without a lease', () => {
  const record = { ...draft('a'), dueAtMs: undefined }

  it('does not end by time, and gives no time for another try', () => {
    expect(decide(record, claimBy('b'), 1_000_000)).toEqual({ act: 'refuse', because: 'in-flight' })
  })

  it('can be settled, or nobody could ever go on', () => {
    expect(decide(record, settled, 1)).toMatchObject({ act: 'write', change: { state: 'succeeded' } })
  })
})

describe('a record of a newer format', () => {
  const record = { ...draft('a'), format: recordFormat + 1 }

  it('is refused to everybody, its owner included', () => {
    const refused = { act: 'refuse', because: 'format' }
    expect(decide(record, claimBy('a'), 1_000)).toEqual(refused)
    expect(decide({ ...record, state: 'succeeded', expiresAtMs: 1 }, claimBy('b'), 1_000)).toEqual(refused)
    expect(decide(record, lookBy('s', rerun), 1_000)).toEqual(refused)
    expect(decide(record, settled, 1_000)).toEqual(refused)
    expect(decide(record, { kind: 'complete', ...ownerOf(record), ...success }, 1)).toEqual({ act: 'stale' })
  })
})

describe('a key that is used anew', () => {
  const finished = { ...draft('a'), state: 'succeeded' as const, value: '1', completedAtMs: 5, expiresAtMs: 105 }

  it('after its window may have other content, and another mode', () => {
    const other = claimBy('b', rerun, { sameContent: false, fingerprint: 'g' })
    expect(decide(finished, other, 104)).toEqual({ act: 'refuse', because: 'mismatch' })
    const anew = written(finished, decide(finished, other, 105), 105)
    expect(anew).toMatchObject({ fingerprint: 'g', claims: 1, looks: 0, firstClaimedAtMs: 105, value: undefined })
    const atomic = claimBy('b', rerun, { mode: 'atomic', leaseMs: undefined, recovery: undefined })
    expect(decide(finished, atomic, 104)).toEqual({ act: 'refuse', because: 'mode' })
    expect(written(finished, decide(finished, atomic, 105), 105)).toMatchObject({ mode: 'atomic', fence: undefined })
  })

  it('is run, not asked about, after a lost answer: nobody was before it in this life', () => {
    const anew = written({ ...finished, claims: 7 }, decide(finished, claimBy('b', resolve), 105), 105)
    expect(decide(anew, claimBy('b', resolve), 106)).toMatchObject({ act: 'own', how: 'run' })
  })

  it('leaves nothing to the owner before', () => {
    const anew = written(finished, decide(finished, claimBy('b'), 105), 105)
    for (const kind of ['renew', 'release'] as const) {
      expect(decide(anew, { kind, ...ownerOf(finished), leaseMs, proof: 'unsent' } as never, 106)).toEqual({
        act: 'stale',
      })
    }
    expect(decide(anew, { kind: 'complete', ...ownerOf(finished), ...success }, 106)).toEqual({ act: 'stale' })
  })
})
