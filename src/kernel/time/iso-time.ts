// Moments and days of UTC as texts and numbers, and back. No clock is read here.

/**
 * The text of a moment in ms since 1970, such as `2026-11-15T10:00:00.000Z`. A fraction of a millisecond is cut off.
 * For years 0 to 9999; others get the nearest of them.
 */
export function isoTime(atMs: number): string {
  return new Date(Math.floor(Math.min(Math.max(atMs, -62_167_219_200_000), 253_402_300_799_999))).toISOString()
}

/** When a day begins, in ms since 1970; undefined where the month has no such day. The first month is 0. */
export function dayStartMs(year: number, month: number, day: number): number | undefined {
  const date = new Date(0)
  // Unlike Date.UTC it takes the years 0 to 99 as they are.
  const startMs = date.setUTCFullYear(year, month, day)
  return date.getUTCDate() === day ? startMs : undefined
}
