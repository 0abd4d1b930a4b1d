// A moment as ISO 8601 has it (RFC 3339, UTC), by arithmetic alone: no clock is read.

const dayMs = 86_400_000

/**
 * The text of a moment in ms since 1970, such as `2026-11-15T10:00:00.000Z`. A fraction of a millisecond is cut off.
 * For years 0 to 9999; others get the nearest of them.
 */
export function isoTime(atMs: number): string {
  const ms = Math.floor(Math.min(Math.max(atMs, -62_167_219_200_000), 253_402_300_799_999))
  const { year, month, day } = dateOf(Math.floor(ms / dayMs))
  const inDay = ms - Math.floor(ms / dayMs) * dayMs
  const clock = [Math.floor(inDay / 3_600_000), Math.floor(inDay / 60_000) % 60, Math.floor(inDay / 1_000) % 60]
  const date = `${padded(year, 4)}-${padded(month, 2)}-${padded(day, 2)}`
  return `${date}T${clock.map((part) => padded(part, 2)).join(':')}.${padded(inDay % 1_000, 3)}Z`
}

// After H. Hinnant, chrono-compatible low-level date algorithms: days are counted from 1 March of year 0, so that the
// leap day is the last of its year; the months from March on then begin at (153 m + 2) / 5.
function dateOf(sinceEpoch: number): { readonly year: number; readonly month: number; readonly day: number } {
  const days = sinceEpoch + 719_468
  const era = Math.floor(days / 146_097)
  const inEra = days - era * 146_097
  const yearOfEra = Math.floor(
    (inEra - Math.floor(inEra / 1_460) + Math.floor(inEra / 36_524) - Math.floor(inEra / 146_096)) / 365,
  )
  const inYear = inEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const fromMarch = Math.floor((5 * inYear + 2) / 153)
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: inYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
  }
}

function padded(number: number, digits: number): string {
  return String(number).padStart(digits, '0')
}
