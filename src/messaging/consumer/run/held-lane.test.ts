import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/index.js'
import { Fenced } from '../failure.js'
import { HeldLane } from './held-lane.js'

const claim = { reader: { name: 'r', kind: 'consumer', reads: 'outbox' }, key: 'a', owner: 'o', attempt: 1 } as const

function held(answer: () => Promise<boolean>) {
  const clock = manualClock()
  let asked = 0
  const lane = new HeldLane(claim, 0, 900, clock, () => {
    asked += 1
    return answer()
  })
  return { clock, lane, asked: () => asked }
}

describe('a lane in our hands', () => {
  it('is extended each third of its lease, for as long as it is worked on', async () => {
    const { clock, lane, asked } = held(async () => true)
    await clock.advance(9_000)
    expect([asked(), lane.signal.aborted]).toEqual([30, false])
    lane.over()
    await clock.advance(9_000)
    expect([asked(), clock.pendingTimers]).toEqual([30, 0])
  })

  it('is lost as soon as the store says so', async () => {
    const { clock, lane } = held(async () => false)
    await clock.advance(299)
    expect(lane.signal.aborted).toBe(false)
    await clock.advance(1)
    expect(lane.signal.reason).toBeInstanceOf(Fenced)
  })

  it('counts as lost when its lease is over and nobody answered; a commit renews it', async () => {
    const { clock, lane } = held(() => Promise.reject(new Error('away')))
    await clock.advance(800)
    lane.renewed(700)
    await clock.advance(799)
    expect(lane.signal.aborted).toBe(false)
    await clock.advance(1)
    expect(lane.signal.aborted).toBe(true)
    expect(clock.pendingTimers).toBe(0)
  })
})
