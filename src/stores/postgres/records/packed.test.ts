import { expect, it } from 'vitest'
import { draftedRecord, type StoredRecord } from '../../../atomicity/index.js'
import { recordColumns, recordValues } from '../../sql/index.js'
import { packedSeen, packedSelection } from './packed.js'

const claim = draftedRecord({ mode: 'leased', token: 't', leaseMs: 5, operation: 'pay' }, 1_700_000_000_000, () => 7)

// As the server builds it.
function rowOf(record: StoredRecord): Record<string, unknown> {
  const values = recordValues(record)
  const cells = Object.fromEntries(recordColumns.map((name, place) => [name, values[place] ?? null]))
  const names = [...packedSelection('m').matchAll(/m\.(\w+)/g)].map(([, name]) => name ?? '')
  const packed = names.filter(
    (name, place) => !['value', 'input'].includes(name) && names[place - 1] !== 'first_claimed_at_ms',
  )
  return {
    now_ms: '1700000000001',
    packed: JSON.stringify(packed.map((name) => cells[name])),
    value: cells['value'],
    input: cells['input'],
  }
}

it.each<[string, Partial<StoredRecord>]>([
  ['a claim', {}],
  [
    'an outcome',
    { state: 'succeeded', value: '{"a":"|"}', completedAtMs: 1, expiresAtMs: 2, codec: 'aes-1', token: undefined },
  ],
  ['an empty outcome', { state: 'succeeded', value: '' }],
  ['any words', { because: 'a"]|', input: '[', operation: '' }],
])('comes back as it was: %s', (_title, change) => {
  const record = { ...claim, ...change }
  expect(packedSeen(rowOf(record))).toEqual({ record, nowMs: 1_700_000_000_001 })
})

it('is none where an outer join found none', () => {
  const row = { now_ms: '5', packed: JSON.stringify(new Array(18).fill(null)), value: null, input: null }
  expect(packedSeen(row)).toEqual({ record: undefined, nowMs: 5 })
  expect(packedSeen(undefined).record).toBeUndefined()
})
