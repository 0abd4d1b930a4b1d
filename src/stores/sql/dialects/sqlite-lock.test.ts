import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../../kernel/index.js'
import { manualClock } from '../../../testing/index.js'
import { isBusySign, whileBusy } from './sqlite-lock.js'

const busyError = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })

const isBusy = (error: unknown): boolean => isBusySign((error as { readonly code?: string }).code)

describe('waiting for the lock', () => {
  const limits = (clock = manualClock(), waitMs = 1_000) => ({ waitMs, clock, random: seededRandom(1) })

  it('asks again after growing, jittered pauses of at most 25 ms', async () => {
    const clock = manualClock()
    const asked: number[] = []
    const waiting = whileBusy(limits(clock), isBusy, () => {
      asked.push(clock.monotonicMs())
      if (asked.length < 12) throw busyError
      return 'granted'
    })
    for (let fires = 0; fires < 11; fires += 1) await clock.runToNext()
    expect(await waiting).toBe('granted')
    const pauses = asked.slice(1).map((ms, index) => ms - (asked[index] ?? 0))
    pauses.forEach((pauseMs, index) => {
      const ceilingMs = Math.min(2 ** index, 25)
      expect(pauseMs).toBeGreaterThanOrEqual(ceilingMs / 2)
      expect(pauseMs).toBeLessThanOrEqual(ceilingMs)
    })
    expect(clock.pendingTimers).toBe(0)
  })

  it('gives up with the error of the driver when the wait is over, and not before', async () => {
    const clock = manualClock()
    const waiting = whileBusy(limits(clock, 40), isBusy, () => {
      throw busyError
    })
    const refused = expect(waiting).rejects.toBe(busyError)
    while (await clock.runToNext()) expect(clock.monotonicMs()).toBeLessThanOrEqual(40)
    await refused
    expect(clock.monotonicMs()).toBe(40)
  })

  it('does not ask again after another error, nor after its signal', async () => {
    const other = Object.assign(new Error('snapshot'), { code: 'SQLITE_BUSY_SNAPSHOT' })
    let asked = 0
    const failing = whileBusy(limits(), isBusy, () => {
      asked += 1
      throw other
    })
    await expect(failing).rejects.toBe(other)
    const controller = new AbortController()
    const waiting = whileBusy({ ...limits(), signal: controller.signal }, isBusy, () => {
      asked += 1
      throw busyError
    })
    controller.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    expect(asked).toBe(2)
  })
})
