import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { moment } from './output.js'

it('writes no moment as a dash', () => {
  expect(moment(undefined)).toBe('-')
})

property(
  'writes a moment as the standard does',
  [fc.integer({ min: 0, max: 253_402_300_799_999 })],
  (atMs) => {
    expect(moment(atMs)).toBe(new Date(atMs).toISOString())
  },
  { cases: 2_000 },
)
