import { describe, expect, it } from 'vitest'
import { type StoreFault, world } from '../../../test/idempotency/leased-world.js'
import { systemRandom } from '../../kernel/index.js'
import { takeTurn } from './turn.js'

describe('a turn', () => {
  it('is had by one until its time is over, and then by whoever asks', async () => {
    const one = world()
    const [first, second] = [one.store(), one.store()]
    const time = { clock: one.clock, random: systemRandom }
    const take = (store: typeof first, work = 'purge') => takeTurn(store, time, work, 60_000)
    expect(await take(first)).toEqual({ mine: true, nextInMs: 60_000 })
    await one.clock.advance('20s')
    expect(await take(second)).toEqual({ mine: false, nextInMs: 40_000 })
    expect(await take(first)).toEqual({ mine: false, nextInMs: 40_000 })
    expect(await take(second, 'other')).toMatchObject({ mine: true })
    await one.clock.advance('40s')
    expect(await take(second)).toEqual({ mine: true, nextInMs: 60_000 })
    expect(await take(first)).toEqual({ mine: false, nextInMs: 60_000 })
  })

  it('is had by one of those who ask at the same time, first and again', async () => {
    const one = world()
    const time = { clock: one.clock, random: systemRandom }
    for (let round = 0; round < 3; round += 1) {
      const turns = await Promise.all(Array.from({ length: 8 }, () => takeTurn(one.store(), time, 'purge', 1_000)))
      expect(turns.filter(({ mine }) => mine)).toHaveLength(1)
      await one.clock.advance('1s')
    }
  })

  it.each(['insert', 'swap'])('is recognised where the answer to its %s was lost', async (method) => {
    const one = world()
    let lost = 0
    const fault = (called: string, nth: number): StoreFault => {
      if (called !== method || nth > 1) return 'fine'
      lost += 1
      return 'answer-lost'
    }
    const time = { clock: one.clock, random: systemRandom }
    const turn = takeTurn(one.store(fault), time, 'purge', 60_000)
    await one.clock.advance('2s')
    expect(await turn).toMatchObject({ mine: true })
    expect(lost).toBe(1)
    expect(await takeTurn(one.store(), time, 'purge', 60_000)).toMatchObject({ mine: false })
  })

  it('is over by time where its owner died between its two writes', async () => {
    const one = world()
    const time = { clock: one.clock, random: systemRandom }
    const dying = takeTurn(
      one.store((method) => (method === 'swap' ? 'not-sent' : 'fine')),
      time,
      'purge',
      60_000,
    )
    const died = dying.catch(() => 'died')
    await one.clock.advance('10s')
    expect(await died).toBe('died')
    expect(await takeTurn(one.store(), time, 'purge', 60_000)).toMatchObject({ mine: false })
    await one.clock.advance('60s')
    expect(await takeTurn(one.store(), time, 'purge', 60_000)).toMatchObject({ mine: true })
  })

  it('is left alone where a newer version has written it', async () => {
    const one = world()
    const time = { clock: one.clock, random: systemRandom }
    await takeTurn(one.store(), time, 'purge', 1_000)
    const [[id, record] = []] = [...one.records.committed]
    if (id === undefined || record === undefined) throw new Error('no record')
    one.records.put(id, { ...record, format: 99 })
    await one.clock.advance('1h')
    expect(await takeTurn(one.store(), time, 'purge', 1_000)).toMatchObject({ mine: false })
  })
})
