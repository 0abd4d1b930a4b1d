import { expect, it } from 'vitest'
import { Slots } from './slots.js'

it('lets so many work at a time, and one alone, in the order in which they came', async () => {
  const slots = new Slots(2)
  const events: string[] = []
  const ends: (() => void)[] = []
  const work = (name: string, alone: boolean): Promise<void> =>
    slots.within(alone, async () => {
      events.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = [work('a', false), work('b', true), work('c', false), work('d', false)]
  const turn = async (): Promise<void> => {
    for (let rounds = 0; rounds < 10; rounds += 1) await Promise.resolve()
  }
  await turn()
  // One slot is free, but whoever wants all of them is not passed.
  expect(events).toEqual(['a'])
  expect([slots.free, slots.isIdle]).toEqual([0, false])
  for (const expected of [
    ['a', 'b'],
    ['a', 'b', 'c', 'd'],
  ]) {
    ends.shift()?.()
    await turn()
    expect(events).toEqual(expected)
  }
  for (const end of ends) end()
  await Promise.all(all)
  expect([slots.free, slots.isIdle]).toEqual([2, true])
})

it('gives a slot back where work fails', async () => {
  const slots = new Slots(1)
  await expect(slots.within(true, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(slots.isIdle).toBe(true)
})
