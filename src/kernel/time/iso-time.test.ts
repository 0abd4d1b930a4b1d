import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { dayStartMs, isoTime } from './iso-time.js'

it.each([
  [0, '1970-01-01T00:00:00.000Z'],
  [-1, '1969-12-31T23:59:59.999Z'],
  [951_782_400_000, '2000-02-29T00:00:00.000Z'],
  [1_794_736_800_123.9, '2026-11-15T10:00:00.123Z'],
  [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'],
  [Number.NEGATIVE_INFINITY, '0000-01-01T00:00:00.000Z'],
  [Number.POSITIVE_INFINITY, '9999-12-31T23:59:59.999Z'],
])('%d is %s', (atMs, text) => {
  expect(isoTime(atMs)).toBe(text)
})

const moment = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 })

// The generator's dates, since tests have no clock of their own either.
property('is what the platform says of the same moment', [moment, fc.date({ noInvalidDate: true })], (atMs, any) => {
  const date = structuredClone(any)
  date.setTime(atMs)
  expect(isoTime(atMs)).toBe(date.toISOString())
})

it.each([
  [1970, 0, 1, 0],
  [2000, 1, 29, 951_782_400_000],
  [50, 0, 1, -60_589_296_000_000],
  [2025, 1, 29, undefined],
  [2025, 3, 31, undefined],
  [2025, 3, 0, undefined],
])('day %3$d of month %2$d of the year %1$d begins at %4$s', (year, month, day, startMs) => {
  expect(dayStartMs(year, month, day)).toBe(startMs)
})
