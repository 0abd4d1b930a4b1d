import { expect, it } from 'vitest'
import { seededRandom } from '../../../kernel/index.js'
import { manualClock } from '../../../testing/index.js'
import { Pause } from './pause.js'

function paused() {
  const clock = manualClock()
  const told: [string, number][] = []
  const pause = new Pause(clock, seededRandom(1), (because, forMs) => told.push([because, forMs]))
  const calls: string[] = []
  pause.watch({ pause: () => calls.push('pause'), resume: () => calls.push('resume') })
  return { clock, told, pause, calls }
}

it('grows with each pause in a row, and begins anew after a commit', async () => {
  const { clock, told, pause } = paused()
  for (let times = 0; times < 12; times += 1) {
    pause.begin('store', 0, undefined)
    // Those that fail for the same reason begin no other one.
    pause.begin('store', 0, undefined)
    await clock.advance(told.at(-1)?.[1] ?? 0)
    expect(pause.isOn).toBe(false)
  }
  const lengths = told.map(([, forMs]) => forMs)
  expect(lengths).toHaveLength(12)
  expect(lengths[0]).toBeLessThanOrEqual(250)
  expect(Math.max(...lengths)).toBeLessThanOrEqual(30_000)
  expect(lengths.at(-1)).toBeGreaterThanOrEqual(15_000)
  pause.ended()
  pause.begin('overload', 0, undefined)
  expect(told.at(-1)?.[1]).toBeLessThanOrEqual(250)
})

it('is as long as was asked for, and the source hears of its beginning and its end', async () => {
  const { clock, told, pause, calls } = paused()
  pause.begin('overload', 10_000, undefined)
  expect(told).toEqual([['overload', 10_000]])
  pause.begin('overload', 12_000, undefined)
  await clock.advance(11_999)
  expect([pause.isOn, calls]).toEqual([true, ['pause']])
  await clock.advance(1)
  expect([pause.isOn, calls]).toEqual([false, ['pause', 'resume']])
})
