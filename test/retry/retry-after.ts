// The shapes in which Retry-After comes, and the wait that each asks for.

/** When all of them are read. */
export const retryAfterReadMs: number = Date.UTC(2026, 10, 15, 12)

/**
 * A field, and the wait in ms that it asks for; undefined: it makes no sense, and is ignored. No wait is ever
 * shortened: whoever will not wait that long stops.
 */
export const retryAfterShapes: readonly (readonly [field: string, delayMs: number | undefined])[] = [
  ['0', 0],
  ['120', 120_000],
  ['Sun, 15 Nov 2026 12:01:00 GMT', 60_000],
  ['Sunday, 15-Nov-26 12:01:00 GMT', 60_000],
  ['Sun Nov 15 12:01:00 2026', 60_000],
  ['Sun, 15 Nov 2026 11:59:00 GMT', 0],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
  ['1.5', undefined],
  ['-5', undefined],
  ['1e3', undefined],
  ['0x10', undefined],
  ['10 seconds', undefined],
  ['abc', undefined],
  ['2026-11-15T12:01:00Z', undefined],
  ['', undefined],
  ['120, 120', undefined],
  ['99999999999999999999', 1e23],
  ['12345678901234567890', Number('12345678901234567890000')],
]
