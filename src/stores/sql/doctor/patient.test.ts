import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/index.js'
import { sqliteDialect } from '../dialects/sqlite.js'
import { clocksApartMs, type Patient } from './patient.js'

/** A store that answers each question after some time, with a clock that is ahead of ours. */
function patientWith(
  tookMs: readonly number[],
  aheadMs: number,
  readAt: number,
): { patient: Patient; asked: number[] } {
  const clock = manualClock()
  const asked: number[] = []
  const patient: Patient = {
    dialect: sqliteDialect,
    prefix: '',
    named: (table) => table,
    clock,
    ask: async () => {
      const ms = tookMs[asked.length] ?? 0
      asked.push(ms)
      // The store reads its clock somewhere between question and answer.
      await clock.advance(ms * readAt)
      const nowMs = clock.wallMs() + aheadMs
      await clock.advance(ms * (1 - readAt))
      return [{ now_ms: nowMs }]
    },
    tryOut: async () => undefined,
    signsOf: () => [],
  }
  return { patient, asked }
}

describe('clocks', () => {
  it.each([
    ['quick answers tell all of it', [0, 0, 0], 5_000, 0.5, 5_000],
    ['behind is negative', [0, 0, 0], -5_000, 0.5, -5_000],
    ['less than a second is none', [0, 0, 0], 900, 0.5, 0],
    ['the quickest answer is believed', [8_000, 100, 8_000], 5_000, 0.5, 4_950],
    ['a slow one proves less than it seems to show', [8_000, 8_000, 8_000], 4_500, 0.5, 0],
    ['a clock that was read at the begin of a slow answer is not behind', [8_000, 8_000, 8_000], 0, 0, 0],
    ['a clock that was read at the end of a slow answer is not ahead', [8_000, 8_000, 8_000], 0, 1, 0],
  ])('%s', async (_what, tookMs, aheadMs, readAt, expected) => {
    const { patient, asked } = patientWith(tookMs, aheadMs, readAt)
    expect(await clocksApartMs(patient)).toBe(expected)
    expect(asked).toEqual(tookMs)
  })
})
