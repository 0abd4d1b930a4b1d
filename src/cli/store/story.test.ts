import { describe, expect, it } from 'vitest'
import type { StoredMessage, StoredRecord } from '../../atomicity/index.js'
import { draftedRecord } from '../../atomicity/index.js'
import type { DeadLetter, ReaderTrace } from '../../messaging/index.js'
import { type Facts, storyOf } from './story.js'

const record = (change: Partial<StoredRecord>): StoredRecord => ({
  ...draftedRecord({ mode: 'leased', operation: 'charge', token: 't', leaseMs: 1_000 }, 1_000, () => 1),
  ...change,
})
const facts = (change: Partial<Facts>): Facts => ({
  id: 'sha256:x',
  nowMs: 10_000,
  record: undefined,
  notes: [],
  messages: [],
  ...change,
})
const message: StoredMessage = {
  source: '/shop',
  id: 'm-1',
  type: 'order.placed',
  subject: undefined,
  key: 'k',
  place: { epoch: 1, number: 2 },
  version: undefined,
  atMs: 3_000,
  intent: undefined,
  traceparent: undefined,
  schema: undefined,
  codec: undefined,
  data: '{}',
}
const reader = (state: ReaderTrace['state'], handledAtMs?: number): ReaderTrace => ({
  reader: 'receipts',
  kind: 'consumer',
  reads: 'outbox',
  state,
  handledAtMs,
})
const nextOf = (change: Partial<Facts>): string => storyOf(facts(change)).next.join('\n')

describe('what to do next', () => {
  it.each<[RegExp, Partial<StoredRecord>]>([
    [/^Nothing about the key: a repeat gets the stored outcome for ever\.$/, { state: 'succeeded' }],
    [/^Nothing about the key: .* until 1970-01-01T00:00:20/, { state: 'failed', expiresAtMs: 20_000 }],
    [/^Its window is over: a repeat is carried out anew\.$/, { state: 'succeeded', expiresAtMs: 9_000 }],
    [/^It is in flight: its owner has until .* in 10 seconds/, { dueAtMs: 20_000 }],
    [/^Its owner is gone, and nobody has looked: db\.upkeep/, { dueAtMs: 9_000 }],
    [/^It was committed without an outcome: .* reprise settle --id sha256:x/, { mode: 'atomic', dueAtMs: undefined }],
    [
      /^It waits for a person: .* reprise settle --id sha256:x --as succeeded/,
      { state: 'unknown', dueAtMs: undefined },
    ],
    [/A sweep looks at it in 10 seconds\./, { state: 'unknown', dueAtMs: 20_000 }],
    [/A sweep should have looked at it by now: does one run\?/, { state: 'unknown', dueAtMs: 9_000 }],
  ])('%s', (expected, change) => {
    expect(nextOf({ record: record(change) })).toMatch(expected)
  })

  it('of messages names the command and its options', () => {
    const letter: DeadLetter = {
      reader: 'receipts',
      kind: 'consumer',
      message,
      state: 'open',
      parks: true,
      code: 'NO_CURRENCY',
      reason: 'no currency',
      history: '[]',
      firstAtMs: 4_000,
      lastAtMs: 4_000,
      note: undefined,
    }
    const traced = (trace: ReaderTrace, letters: Facts['messages'][0]['letters'] = []) =>
      nextOf({ record: record({ state: 'succeeded' }), messages: [{ message, readers: [trace], letters }] })
    expect(traced(reader('parked'), [letter])).toContain(
      'Repair NO_CURRENCY, then reprise redrive --reader receipts --id m-1 --source /shop --reason TEXT',
    )
    expect(traced(reader('parked'))).toContain('reprise dead-letters --reader receipts --key k')
    expect(traced(reader('waiting'))).toContain('is before consumer receipts: does it run? reprise outbox')
    expect(traced(reader('done', 5_000))).not.toContain('receipts')
  })
})

it('the order is that of time, with what has none behind what it followed', () => {
  const done = record({ state: 'succeeded', claims: 2, claimedAtMs: 2_000, completedAtMs: 2_500, value: '"v"' })
  const relay = { ...reader('done'), reader: 'out', kind: 'relay' } as const
  const { events, notKnown } = storyOf(
    facts({ record: done, messages: [{ message, readers: [reader('done', 5_000), relay], letters: [] }] }),
  )
  expect(events).toEqual([
    { atMs: 1_000, what: 'claimed for charge (leased)' },
    { atMs: 2_000, what: 'claimed again: claim 2 of the key' },
    { atMs: 2_500, what: 'succeeded; 3 characters are kept' },
    { atMs: 3_000, what: 'emitted order.placed m-1 (key k), epoch 1, number 2' },
    { atMs: undefined, what: 'relay out: is past order.placed m-1 (key k)' },
    { atMs: 5_000, what: 'consumer receipts processed order.placed m-1 (key k)' },
  ])
  expect(notKnown.join(' ')).toMatch(/rolled back.*outside of the store.*When a relay published is not kept/)
})
