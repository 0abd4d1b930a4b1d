import { expect, it } from 'vitest'
import { manualClock } from '../../testing/index.js'
import type { LockReports } from './asking/lock-report.js'
import { LockWatches } from './wire.js'

it('asks about each statement half-way through its wait, by one timer, and not about those that were answered', async () => {
  const clock = manualClock()
  const asked: [string, number][] = []
  const blockersOf = async (pid: string) => {
    asked.push([pid, clock.monotonicMs()])
    return []
  }
  const watches = new LockWatches({ blockersOf } as unknown as LockReports, clock)
  const long = watches.begin('long', 2_000)
  const answered = watches.begin('answered', 2_000)
  expect(clock.pendingTimers).toBe(1)
  await clock.advance(100)
  const short = watches.begin('short', 200)
  expect(clock.pendingTimers).toBe(1)
  expect([watches.begin('too short', 19), watches.begin(undefined, 2_000)]).toEqual([undefined, undefined])
  if (answered !== undefined) watches.underWay.delete(answered)
  await clock.advance(800)
  const late = watches.begin('late', 2_000)
  await clock.advance(1_500)
  expect(asked).toEqual([
    ['short', 200],
    ['long', 1_000],
    ['late', 1_900],
  ])
  expect([short, long, late, answered].map((watch) => watch?.report !== undefined)).toEqual([true, true, true, false])
  expect(clock.pendingTimers).toBe(0)
})
