import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { parseHttpDate } from './http-date.js'

const nowMs = Date.UTC(2026, 10, 15, 12)
const longDays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

describe('parseHttpDate', () => {
  it("reads RFC 9110's own example in all three forms", () => {
    const atMs = Date.UTC(1994, 10, 6, 8, 49, 37)
    expect(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT', nowMs)).toBe(atMs)
    expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', nowMs)).toBe(atMs)
    expect(parseHttpDate('Sun Nov  6 08:49:37 1994', nowMs)).toBe(atMs)
  })

  it('reads a two-digit year as at most 50 years ahead', () => {
    expect(parseHttpDate('Sunday, 01-Nov-76 00:00:00 GMT', nowMs)).toBe(Date.UTC(2076, 10, 1))
    expect(parseHttpDate('Monday, 15-Nov-77 00:00:00 GMT', nowMs)).toBe(Date.UTC(1977, 10, 15))
    expect(parseHttpDate('Friday, 01-Jan-00 00:00:00 GMT', Date.UTC(2099, 11, 31))).toBe(Date.UTC(2100, 0, 1))
  })

  it('accepts a leap second and refuses times and days that do not exist', () => {
    expect(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT', nowMs)).toBe(Date.UTC(2017, 0, 1))
    expect(parseHttpDate('Thu, 29 Feb 2024 00:00:00 GMT', nowMs)).toBe(Date.UTC(2024, 1, 29))
    for (const text of [
      'Sat, 29 Feb 2025 00:00:00 GMT',
      'Wed, 31 Apr 2025 00:00:00 GMT',
      'Wed, 00 Apr 2025 00:00:00 GMT',
      'Wed, 01 Apr 2025 24:00:00 GMT',
      'Wed, 01 Apr 2025 00:60:00 GMT',
      'Wed, 01 Apr 2025 00:00:61 GMT',
    ]) {
      expect(parseHttpDate(text, nowMs)).toBeUndefined()
    }
  })

  it.each([
    '2026-11-15T12:00:00Z',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'sun, 06 nov 1994 08:49:37 gmt',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    ' Sun, 06 Nov 1994 08:49:37 GMT',
    '',
    'x'.repeat(100_000),
  ])('ignores what is none of the three forms (%#)', (text) => {
    expect(parseHttpDate(text, nowMs)).toBeUndefined()
  })

  property(
    'agrees with Date over the years 1601 to 9999, in every form that can say the year',
    [fc.integer({ min: Date.UTC(1601, 0, 1) / 1_000, max: Date.UTC(9999, 11, 31) / 1_000 })],
    (seconds) => {
      const date = new Date(seconds * 1_000)
      const imf = date.toUTCString()
      expect(parseHttpDate(imf, nowMs)).toBe(seconds * 1_000)
      const [day, month, year, time] = imf.slice(5).split(' ') as [string, string, string, string]
      const shortDay = imf.slice(0, 3)
      expect(parseHttpDate(`${shortDay} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`, nowMs)).toBe(
        seconds * 1_000,
      )
      const aheadMs = date.getTime() - nowMs
      if (Math.abs(aheadMs) < 49 * 365.25 * 86_400_000) {
        const rfc850 = `${longDays[date.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`
        expect(parseHttpDate(rfc850, nowMs)).toBe(seconds * 1_000)
      }
    },
  )
})
