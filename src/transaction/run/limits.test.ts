import { describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/index.js'
import { StepLimits } from './limits.js'

describe('the limits of the steps of an attempt', () => {
  function started(bodyLimitMs: number) {
    const clock = manualClock()
    const controller = new AbortController()
    const deadline = { expiresAtMs: clock.monotonicMs() + 10_000 }
    const settings = { clock, deadline, reserveMs: 1_000, bodyLimitMs, signal: controller.signal }
    const limits = new StepLimits(settings)
    const ended: string[] = []
    // A step that ends when it is told to.
    const step = (name: string, limitMs: number, heedsSignal?: boolean) => {
      let end: (value: string) => void = () => undefined
      const work = new Promise<string>((resolve) => {
        end = resolve
      })
      limits
        .wait(work, clock.monotonicMs() + limitMs, () => `${name} took too long`, heedsSignal)
        .then(
          (value) => ended.push(value),
          (error: unknown) => ended.push(String(error)),
        )
      return async (value: string) => {
        end(value)
        await clock.advance(0)
      }
    }
    return { clock, controller, ended, limits, step }
  }

  it.each([
    ['shorter than usual', 30],
    ['the usual one', 50],
    ['longer than usual', 170],
  ])('end the wait when the time is over and not before: %s', async (_title, limitMs) => {
    const { clock, ended, limits, step } = started(50)
    step('only', limitMs)
    await clock.advance(limitMs - 1)
    expect(ended).toEqual([])
    await clock.advance(1)
    expect(ended).toEqual(['only took too long'])
    expect(limits.underWay).toBe(true)
    await clock.advance(1_000)
    expect(ended).toEqual(['only took too long'])
  })

  it('count each step from its own beginning', async () => {
    const { clock, ended, step } = started(50)
    const end = step('first', 50)
    await clock.advance(40)
    await end('first')
    step('second', 50)
    await clock.advance(49)
    expect(ended).toEqual(['first'])
    await clock.advance(1)
    expect(ended).toEqual(['first', 'second took too long'])
  })

  it('ring in time for a step that is shorter than all before', async () => {
    const { clock, ended, step } = started(50)
    await step('long', 100)('long')
    step('short', 10)
    await clock.advance(10)
    expect(ended).toEqual(['long', 'short took too long'])
  })

  it('leave the work its time, less the reserve', async () => {
    const { clock, limits } = started(50)
    expect(limits.leftMs()).toBe(9_000)
    await clock.advance(9_500)
    expect(limits.leftMs()).toBe(0)
  })

  it('end the wait with the reason of the signal, unless the step does not heed it', async () => {
    const { clock, controller, ended, limits, step } = started(50)
    const end = step('commit', 20, false)
    controller.abort('enough')
    await clock.advance(0)
    expect(ended).toEqual([])
    await end('committed')
    expect(ended).toEqual(['committed'])
    expect(limits.underWay).toBe(false)
    const other = started(50)
    other.step('body', 20)
    other.controller.abort('enough')
    await other.clock.advance(0)
    expect(other.ended).toEqual(['enough'])
    expect(other.limits.underWay).toBe(true)
  })

  it('stand still while a step waits for what is no time of its own, but not past the end of the work', async () => {
    const { clock, ended, limits, step } = started(50)
    // A body may stand before anybody waits for it.
    limits.stand()
    step('body', 50)
    await clock.advance(700)
    expect(ended).toEqual([])
    limits.goOn()
    await clock.advance(49)
    expect(ended).toEqual([])
    await clock.advance(1)
    expect(ended).toEqual(['body took too long'])
    const other = started(50)
    other.step('body', 50)
    await other.clock.advance(20)
    other.limits.stand()
    await other.clock.advance(8_979)
    expect(other.ended).toEqual([])
    await other.clock.advance(1)
    expect(other.ended).toEqual([expect.stringContaining('while the transaction was beginning')])
  })

  it('leave nothing behind', async () => {
    const { clock, ended, limits, step } = started(50)
    step('only', 20)
    limits.end()
    await clock.advance(1_000)
    expect(ended).toEqual([])
    expect(clock.pendingTimers).toBe(0)
  })
})
