import { describe, expect, it } from 'vitest'
import { eventLoopTurn } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { Timeouts, Wait } from './timeouts.js'

function setup() {
  const clock = manualClock()
  const timeouts = new Timeouts(clock)
  const ended: string[] = []
  const call = { deadline: undefined, signal: undefined, deadlineError: () => undefined }
  const enter = (name: string, timeoutMs = 100, onEnd = () => void ended.push(name)) =>
    new Wait(timeouts, call, timeoutMs, onEnd)
  return { clock, timeouts, ended, enter }
}

describe('timeouts', () => {
  it('end each attempt at its own time, with one timer for all', async () => {
    const { clock, ended, enter } = setup()
    enter('a')
    await clock.advance(40)
    enter('b')
    enter('c')
    expect(clock.pendingTimers).toBe(1)
    await clock.advance(59)
    expect(ended).toEqual([])
    await clock.advance(1)
    expect(ended).toEqual(['a'])
    expect(clock.pendingTimers).toBe(1)
    await clock.advance(40)
    expect(ended).toEqual(['a', 'b', 'c'])
    expect(clock.pendingTimers).toBe(0)
  })

  it('leave those alone that are over, whatever their place in the list', async () => {
    for (const over of [0, 1, 2]) {
      const { clock, ended, enter } = setup()
      const outs = ['a', 'b', 'c'].map((name) => enter(name))
      outs[over]?.end()
      await clock.advance(100)
      expect(ended).toEqual(['a', 'b', 'c'].toSpliced(over, 1))
    }
  })

  it('keep no timer when nobody is out, and share one over calls in a row', async () => {
    const { clock, enter } = setup()
    for (let calls = 0; calls < 5; calls++) enter('call').end()
    expect(clock.pendingTimers).toBe(1)
    await eventLoopTurn()
    expect(clock.pendingTimers).toBe(0)
    enter('later')
    expect(clock.pendingTimers).toBe(1)
  })

  it('hold what comes in while the time of others ends', async () => {
    const { clock, ended, enter } = setup()
    enter('first', 100, () => void enter('second'))
    await clock.advance(100)
    expect(ended).toEqual([])
    await clock.advance(100)
    expect(ended).toEqual(['second'])
  })

  it('end at its own time what is over before others that began earlier', async () => {
    const { clock, ended, enter } = setup()
    enter('long', 1_000)
    enter('short', 100)
    enter('longest', 2_000)
    expect(enter('done', 50).end()).toBe(true)
    await clock.advance(100)
    expect(ended).toEqual(['short'])
    await clock.advance(1_900)
    expect(ended).toEqual(['short', 'long', 'longest'])
    expect(clock.pendingTimers).toBe(0)
  })

  it('are not held up by a timer that was set for a longer wait which is over', async () => {
    const { clock, ended, enter } = setup()
    enter('long', 1_000).end()
    enter('short', 100)
    await clock.advance(100)
    expect(ended).toEqual(['short'])
  })
})
