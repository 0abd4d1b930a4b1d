import { describe, expect, it } from 'vitest'
import { draftedRecord, type StoredRecord } from '../../../atomicity/index.js'
import { postgresDialect } from '../dialects/postgres.js'
import {
  checkRows,
  recordColumns,
  recordOf,
  recordSelection,
  recordValues,
  seenIn,
  selection,
  storableMs,
} from './rows.js'

const record = draftedRecord({ mode: 'leased', token: 't', leaseMs: 5, operation: 'pay' }, 1_700_000_000_000, () => 7)
const rowOf = (values: readonly unknown[]) =>
  Object.fromEntries(recordColumns.map((name, place) => [name, values[place]]))

describe('a record as a row', () => {
  it('comes back as it was, also where 64-bit numbers are text or bigint', () => {
    const values = recordValues(record)
    expect(recordOf(rowOf(values))).toEqual(record)
    const big = new Set(['fence', 'first_claimed_at_ms', 'claimed_at_ms', 'due_at_ms'])
    for (const as of [String, BigInt]) {
      const row = rowOf(
        values.map((value, place) => (big.has(recordColumns[place] ?? '') ? as(value as number) : value)),
      )
      expect(recordOf(row)).toEqual(record)
    }
  })

  it('is none where an outer join found none', () => {
    expect(recordOf(undefined)).toBeUndefined()
    expect(recordOf(rowOf(recordColumns.map(() => null)))).toBeUndefined()
  })

  it('of a newer format is shown, whatever its state is called', () => {
    const row = { ...rowOf(recordValues(record)), format: 3, state: 'paused', mode: 'shared', version: null }
    expect(recordOf(row)).toMatchObject({ format: 3, state: 'paused', mode: 'shared' })
  })

  it('has one selection for all columns', () => {
    const names = [...recordSelection('m.').matchAll(/(?:, |^)m\.(\w+)|AS (\w+)/g)].map(
      ([, plain, renamed]) => renamed ?? plain,
    )
    expect(names).toEqual(expect.arrayContaining([...recordColumns]))
    expect(recordSelection('m.')).toContain('coalesce(m.first_claimed_at_ms, m.claimed_at_ms)')
  })
})

describe('numbers of a query', () => {
  it('are whole ms that can be added to a time', () => {
    expect([storableMs(0.1), storableMs(5), storableMs(Number.MAX_VALUE)]).toEqual([1, 5, 2 ** 52])
    expect(Number.isSafeInteger(storableMs(Number.MAX_VALUE) + 1_700_000_000_000)).toBe(true)
  })

  it.each([0, -1, 1.5, 1_001, Number.NaN])('are refused as a limit: %s', (limit) => {
    expect(() => checkRows(limit, 1_000)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})

describe('a record in few columns', () => {
  // As the server builds it.
  function packedRow(record: StoredRecord): Record<string, unknown> {
    const values = recordValues(record)
    const cells = Object.fromEntries(recordColumns.map((name, place) => [name, values[place] ?? null]))
    const names = [...selection(postgresDialect, 'm.').matchAll(/m\.(\w+)/g)].map(([, name]) => name ?? '')
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
    const changed = { ...record, ...change }
    expect(seenIn(packedRow(changed))).toEqual({ record: changed, nowMs: 1_700_000_000_001 })
  })

  it('is none where an outer join found none', () => {
    const row = { now_ms: '5', packed: JSON.stringify(new Array(18).fill(null)), value: null, input: null }
    expect(seenIn(row)).toEqual({ record: undefined, nowMs: 5 })
    expect(seenIn(undefined).record).toBeUndefined()
  })

  it('is read from a list of cells as well', () => {
    expect(seenIn([5, ...recordValues(record)])).toEqual({ record, nowMs: 5 })
  })
})
