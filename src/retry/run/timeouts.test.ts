import { describe, expect, it } from 'vitest'
import { eventLoopTurn } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { Timeouts, Waiting } from './timeouts.js'

class Out extends Waiting {
  readonly name: string
  readonly ended: string[]

  constructor(name: string, ended: string[]) {
    super()
    this.name = name
    this.ended = ended
  }

  timedOut(): void {
    this.ended.push(this.name)
  }
}

function setup() {
  const clock = manualClock()
  const timeouts = new Timeouts(clock, 100)
  const ended: string[] = []
  const enter = (name: string) => {
    const out = new Out(name, ended)
    timeouts.enter(out)
    return out
  }
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
      const { clock, timeouts, ended, enter } = setup()
      const outs = ['a', 'b', 'c'].map(enter)
      timeouts.leave(outs[over] as Out)
      await clock.advance(100)
      expect(ended).toEqual(['a', 'b', 'c'].toSpliced(over, 1))
    }
  })

  it('keep no timer when nobody is out, and share one over calls in a row', async () => {
    const { clock, timeouts, enter } = setup()
    for (let calls = 0; calls < 5; calls++) timeouts.leave(enter('call'))
    expect(clock.pendingTimers).toBe(1)
    await eventLoopTurn()
    expect(clock.pendingTimers).toBe(0)
    enter('later')
    expect(clock.pendingTimers).toBe(1)
  })

  it('hold what comes in while the time of others ends', async () => {
    const { clock, timeouts, ended, enter } = setup()
    const again = new (class extends Waiting {
      timedOut(): void {
        enter('second')
      }
    })()
    timeouts.enter(again)
    await clock.advance(100)
    expect(ended).toEqual([])
    await clock.advance(100)
    expect(ended).toEqual(['second'])
  })
})
