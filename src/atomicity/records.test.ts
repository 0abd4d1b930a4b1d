import { expect, it } from 'vitest'
import { inspectionOf, type RecordInspection, type Records } from './records.js'

const five: Records = {
  read: () => Promise.reject(new Error('not asked')),
  insert: () => Promise.reject(new Error('not asked')),
  swap: () => Promise.reject(new Error('not asked')),
  due: () => Promise.reject(new Error('not asked')),
  purge: () => Promise.reject(new Error('not asked')),
}

it('is refused where a store has none', () => {
  expect(() => inspectionOf(five)).toThrow(
    expect.objectContaining({ code: 'CAPABILITY_UNSUPPORTED', details: { option: 'inspection' } }),
  )
})

it('is the one of the store', () => {
  const inspection: RecordInspection = {
    list: async () => [],
    live: async () => 0,
    notes: async () => [],
  }
  expect(inspectionOf({ ...five, inspection })).toBe(inspection)
})
