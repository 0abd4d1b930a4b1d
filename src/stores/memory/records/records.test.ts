// Records of a newer format are left alone: neither a sweep nor a purge knows what they mean. A purge looks at those
// records alone that it forgets.

import { expect, it } from 'vitest'
import { draftedRecord, recordFormat, type StoredRecord } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { type Clock, systemClock } from '../../../kernel/index.js'
import { MemoryRecords } from './records.js'

function recordsWith(format: number): MemoryRecords {
  const records = new MemoryRecords(systemClock)
  const draft = { mode: 'leased', operation: 'pay', token: 'a', leaseMs: 1 } as const
  const claimed: StoredRecord = { ...draftedRecord(draft, 0, records.nextFence), format }
  records.put('claimed' as StoredKey, claimed)
  records.put('unknown' as StoredKey, { ...claimed, state: 'unknown' })
  records.put('over' as StoredKey, { ...claimed, state: 'succeeded', dueAtMs: undefined, expiresAtMs: 1 })
  return records
}

const due = { operations: ['pay'], limit: 10, marginMs: 0, baseMs: 1, capMs: 1 }
const purge = { limit: 10, unknownAfterMs: 1, markersAfterMs: 1 }

it('a newer format is neither taken as due nor purged', async () => {
  const records = recordsWith(recordFormat + 1)
  const before = new Map(records.committed)
  expect(await records.due(due)).toEqual([])
  expect(await records.purge(purge)).toEqual({ finished: 0, unknown: 0, audit: 0, markers: 0 })
  expect(records.committed).toEqual(before)
})

it('this format is', async () => {
  const records = recordsWith(recordFormat)
  expect((await records.due(due)).map(({ id }) => id)).toEqual(['claimed', 'unknown'])
  expect(await records.purge(purge)).toEqual({ finished: 1, unknown: 2, audit: 0, markers: 0 })
})

/** Counts the records that are looked at from now on. */
function countLooks({ committed }: MemoryRecords): () => number {
  let looks = 0
  const { get } = committed
  committed.get = (id) => {
    looks += 1
    return get.call(committed, id)
  }
  const entries = committed[Symbol.iterator].bind(committed)
  committed[Symbol.iterator] = function* () {
    for (const entry of entries()) {
      looks += 1
      yield entry
    }
  } as never
  return () => looks
}

const finished = (records: MemoryRecords, expiresAtMs: number | undefined): StoredRecord => ({
  ...draftedRecord({ mode: 'atomic', token: 'a' }, 0, records.nextFence),
  state: 'succeeded',
  expiresAtMs,
})

it('a purge looks at what it forgets, however many records there are', async () => {
  const records = new MemoryRecords({ ...systemClock, wallMs: () => 1_000 } as Clock)
  // Those that stay come first, and those that go are in no order.
  for (let n = 0; n < 5_000; n += 1) records.put(`stays-${n}` as StoredKey, finished(records, 2_000 + n))
  for (let n = 0; n < 300; n += 1) records.put(`goes-${n}` as StoredKey, finished(records, 1 + ((n * 7) % 300)))
  for (let n = 0; n < 300; n += 1) records.put(`marker-${n}` as StoredKey, finished(records, undefined))
  const looks = countLooks(records)
  for (const finished of [100, 100, 100, 0]) {
    expect(await records.purge({ limit: 100 })).toMatchObject({ finished, markers: 0 })
  }
  expect(await records.purge({ limit: 200, markersAfterMs: 1_000 })).toMatchObject({ finished: 0, markers: 200 })
  expect(looks()).toBe(500)
  expect(records.committed.size).toBe(5_100)
})

it('a record that was written anew is forgotten by its new time alone, and leaves no pile behind', async () => {
  let nowMs = 1_000
  const records = new MemoryRecords({ ...systemClock, wallMs: () => nowMs } as Clock)
  const id = 'again' as StoredKey
  for (let expiresAtMs = 1; expiresAtMs <= 5_000; expiresAtMs += 1) records.put(id, finished(records, expiresAtMs))
  const looks = countLooks(records)
  expect(await records.purge({ limit: 10 })).toMatchObject({ finished: 0 })
  expect(looks()).toBeLessThan(1_100)
  nowMs = 5_000
  expect(await records.purge({ limit: 10 })).toMatchObject({ finished: 1 })
  expect(records.committed.size).toBe(0)
})
