// What a write depends on, and what it makes of a record.

import { expect, it } from 'vitest'
import type { StoredRecord } from './record.js'
import { changedRecord, draftedRecord, forgettableAs, isDue, isLive, isStill } from './record-writes.js'

let fences = 0
const nextFence = (): number => {
  fences += 1
  return fences
}

const leased = (token: string): StoredRecord =>
  draftedRecord({ mode: 'leased', token, leaseMs: 30, fingerprint: 'f', input: '{}' }, 1_000, nextFence)
const atomic = (token: string): StoredRecord => draftedRecord({ mode: 'atomic', token }, 1_000, nextFence)

it('a late write meets no other life of the key: a row that was removed and inserted again is not the one it was', () => {
  const before = leased('a')
  expect(leased('b').version).toBe(before.version)
  expect(isStill(before, before)).toBe(true)
  expect(isStill({ ...before, version: 2 }, before)).toBe(false)
  expect(isStill(undefined, before)).toBe(false)
  expect(isStill(leased('b'), before)).toBe(false)
  // An insert that arrives twice has the same token; an unknown outcome has none.
  expect(isStill(leased('a'), before)).toBe(false)
  expect(isStill({ ...leased('b'), token: undefined }, { ...before, token: undefined })).toBe(false)
  expect(isStill(atomic('b'), atomic('a'))).toBe(false)
})

it('a claim of the same life keeps when it began, and takes a new fence', () => {
  const before = leased('a')
  const after = changedRecord(before, { state: 'claimed', token: 'b', fence: 'next', claimed: true }, 2_000, nextFence)
  expect(after).toMatchObject({ version: 2, claims: 2, firstClaimedAtMs: 1_000, claimedAtMs: 2_000, input: '{}' })
  expect(after.fence).toBeGreaterThan(before.fence ?? 0)
})

it('a key used anew begins another life, without a fence where it is atomic', () => {
  const over: StoredRecord = {
    ...leased('a'),
    state: 'succeeded',
    completedAtMs: 1,
    expiresAtMs: 2,
    claims: 3,
    looks: 4,
  }
  const change = {
    state: 'claimed',
    mode: 'atomic',
    token: 'b',
    claimed: 'first',
    fingerprint: null,
    value: null,
  } as const
  expect(changedRecord(over, change, 3_000, nextFence)).toMatchObject({
    mode: 'atomic',
    fence: undefined,
    claims: 1,
    looks: 0,
    firstClaimedAtMs: 3_000,
    completedAtMs: undefined,
    expiresAtMs: undefined,
    fingerprint: undefined,
  })
})

it('an outcome is remembered from when it is written, or for ever', () => {
  const done = { state: 'succeeded', value: '1' } as const
  expect(changedRecord(leased('a'), { ...done, remembered: 50 }, 4_000, nextFence)).toMatchObject({
    completedAtMs: 4_000,
    expiresAtMs: 4_050,
  })
  const forEver = changedRecord(leased('a'), { ...done, remembered: Number.POSITIVE_INFINITY }, 4_000, nextFence)
  expect(forEver.expiresAtMs).toBeUndefined()
})

it('a change leaves what it does not name, and empties what it names null', () => {
  const claim = leased('a')
  const beaten = changedRecord(claim, { state: 'claimed', dueInMs: 50 }, 2_000, nextFence)
  expect(beaten).toEqual({ ...claim, version: 2, dueAtMs: 2_050 })
  const emptied = { token: undefined, input: undefined, dueAtMs: undefined }
  const change = { state: 'unknown', token: null, input: null, dueInMs: null } as const
  expect(changedRecord(beaten, change, 3_000, nextFence)).toEqual({
    ...beaten,
    version: 3,
    state: 'unknown',
    ...emptied,
  })
})

it('a claim is due once its lease and the margin are over, an unknown outcome at its time, for the operations named', () => {
  const record: StoredRecord = { ...leased('a'), operation: 'pay' }
  const query = { operations: ['pay'], marginMs: 10 }
  expect([1_039, 1_040].map((nowMs) => isDue(record, query, nowMs))).toEqual([false, true])
  expect(isDue({ ...record, state: 'unknown' }, query, 1_030)).toBe(true)
  expect(isDue({ ...record, state: 'succeeded' }, query, 9_000)).toBe(false)
  expect(isDue(record, { ...query, operations: ['refund'] }, 9_000)).toBe(false)
  expect(isDue({ ...record, format: 99 }, query, 9_000)).toBe(false)
})

it('a purge forgets each kind by its own age, and a marker with a window by that window alone', () => {
  const over: StoredRecord = { ...atomic('a'), state: 'succeeded', completedAtMs: 1_000 }
  const ages = { markersAfterMs: 500, unknownAfterMs: 700 }
  expect(forgettableAs(over, {}, 9_000)).toBe(undefined)
  expect([1_499, 1_500].map((nowMs) => forgettableAs(over, ages, nowMs))).toEqual([undefined, 'markers'])
  expect(forgettableAs({ ...over, operation: 'pay' }, ages, 9_000)).toBe(undefined)
  const windowed = { ...over, expiresAtMs: 3_000 }
  expect([2_999, 3_000].map((nowMs) => forgettableAs(windowed, ages, nowMs))).toEqual([undefined, 'finished'])
  expect([2_999, 3_000].map((nowMs) => isLive(windowed, nowMs))).toEqual([true, false])
  const unknown: StoredRecord = { ...leased('b'), state: 'unknown' }
  expect([1_699, 1_700].map((nowMs) => forgettableAs(unknown, ages, nowMs))).toEqual([undefined, 'unknown'])
  expect(forgettableAs({ ...over, format: 99 }, ages, 9_000)).toBe(undefined)
  expect(forgettableAs(atomic('c'), ages, 9_000)).toBe(undefined)
})
