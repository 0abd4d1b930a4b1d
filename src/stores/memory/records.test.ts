// Records of a newer format are left alone: neither a sweep nor a purge knows what they mean.

import { expect, it } from 'vitest'
import { draftedRecord, recordFormat, type StoredRecord } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { systemClock } from '../../kernel/index.js'
import { MemoryRecords } from './records.js'

function recordsWith(format: number): MemoryRecords {
  const records = new MemoryRecords(systemClock)
  const draft = { mode: 'leased', operation: 'pay', token: 'a', leaseMs: 1 } as const
  const claimed: StoredRecord = { ...draftedRecord(draft, 0, records.nextFence), format }
  records.committed.set('claimed' as StoredKey, claimed)
  records.committed.set('unknown' as StoredKey, { ...claimed, state: 'unknown' })
  records.committed.set('over' as StoredKey, { ...claimed, state: 'succeeded', dueAtMs: undefined, expiresAtMs: 1 })
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
