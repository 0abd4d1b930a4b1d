import { describe, expect, it } from 'vitest'
import { eventLoopTurn } from '../kernel/index.js'
import { barrier } from './barrier.js'
import { manualClock } from './manual-clock.js'

describe('a barrier', () => {
  it('lets nobody through before the last has arrived, and everybody then', async () => {
    const clock = manualClock()
    const gate = barrier(3, { clock })
    const through: number[] = []
    const pass = async (): Promise<void> => void through.push(await gate.arrive())
    const passing = [pass(), pass()]
    await eventLoopTurn()
    expect(through).toEqual([])
    expect(gate).toMatchObject({ parties: 3, arrived: 2, opened: false })
    passing.push(pass())
    await Promise.all(passing)
    expect(through.sort()).toEqual([1, 2, 3])
    expect(gate).toMatchObject({ arrived: 3, opened: true })
    expect(clock.pendingTimers).toBe(0)
  })

  it('of one is open', async () => {
    expect(await barrier(1).arrive()).toBe(1)
  })

  it('fails all who wait, and who come later, when not all arrive in time', async () => {
    const clock = manualClock()
    const gate = barrier(3, { clock, limitMs: 100 })
    const waiting = Promise.allSettled([gate.arrive(), gate.arrive()])
    await clock.advance(100)
    const late = { code: 'DEADLINE_EXCEEDED', details: { arrived: 2, parties: 3, limitMs: 100 } }
    expect(await waiting).toMatchObject([{ reason: late }, { reason: late }])
    await expect(gate.arrive()).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(gate.opened).toBe(false)
  })

  it('refuses one more than was agreed, and numbers that count no parties', async () => {
    const gate = barrier(1)
    await gate.arrive()
    await expect(gate.arrive()).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    for (const parties of [0, -1, 1.5, Number.NaN]) expect(() => barrier(parties)).toThrow('at least 1')
  })
})
