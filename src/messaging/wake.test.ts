import { expect, it } from 'vitest'
import { manualClock } from '../testing/index.js'
import { Wake } from './wake.js'

const never = new AbortController().signal

it('sleeps for its time, or until it is woken; what woke it before counts once', async () => {
  const clock = manualClock()
  const wake = new Wake()
  let slept = 0
  const sleep = (signal = never): void => {
    void wake.sleep(1_000, clock, signal).then(() => {
      slept += 1
    })
  }
  sleep()
  await clock.advance(999)
  expect(slept).toBe(0)
  await clock.advance(1)
  expect(slept).toBe(1)
  sleep()
  wake.wake()
  await clock.advance(0)
  expect(slept).toBe(2)
  wake.wake()
  wake.wake()
  sleep()
  await clock.advance(0)
  expect(slept).toBe(3)
  const stop = new AbortController()
  sleep(stop.signal)
  await clock.advance(0)
  expect(slept).toBe(3)
  stop.abort()
  await clock.advance(0)
  expect(slept).toBe(4)
  expect(clock.pendingTimers).toBe(0)
})
