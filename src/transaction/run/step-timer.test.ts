import { describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/index.js'
import { StepTimer } from './step-timer.js'

describe('the timer of the steps', () => {
  function started(usualMs: number) {
    const clock = manualClock()
    const fired: string[] = []
    const timer = new StepTimer(clock, usualMs)
    const step = (name: string, limitMs: number) => timer.setTimer(limitMs, () => void fired.push(name))
    return { clock, fired, timer, step }
  }

  it.each([
    ['shorter than usual', 30],
    ['the usual one', 50],
    ['longer than usual', 170],
  ])('rings when the limit is over and not before: %s', async (_title, limitMs) => {
    const { clock, fired, step } = started(50)
    step('only', limitMs)
    await clock.advance(limitMs - 1)
    expect(fired).toEqual([])
    await clock.advance(1)
    expect(fired).toEqual(['only'])
    await clock.advance(1_000)
    expect(fired).toEqual(['only'])
  })

  it('counts each step from its own beginning', async () => {
    const { clock, fired, step } = started(50)
    const first = step('first', 50)
    await clock.advance(40)
    first()
    step('second', 50)
    await clock.advance(49)
    expect(fired).toEqual([])
    await clock.advance(1)
    expect(fired).toEqual(['second'])
  })

  it('rings in time for a step that is shorter than all before', async () => {
    const { clock, fired, step } = started(50)
    step('long', 100)()
    step('short', 10)
    await clock.advance(10)
    expect(fired).toEqual(['short'])
  })

  it('keeps the limit of a step when one that was given up ends', async () => {
    const { clock, fired, step } = started(50)
    const givenUp = step('given up', 10)
    await clock.advance(10)
    step('next', 20)
    givenUp()
    await clock.advance(20)
    expect(fired).toEqual(['given up', 'next'])
  })

  it('leaves nothing behind', async () => {
    const { clock, fired, timer, step } = started(50)
    step('only', 20)
    timer.end()
    await clock.advance(1_000)
    expect(fired).toEqual([])
    expect(clock.pendingTimers).toBe(0)
  })
})
