import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { Slots } from './slots.js'

const slots = (most: number, queue = 0) => new Slots({ kind: 'concurrency', most, queue })

describe('slots', () => {
  it('are as many as there may be, and free again when they are given back', () => {
    const two = slots(2)
    expect([two.tryEnter(), two.tryEnter(), two.tryEnter()]).toEqual([true, true, false])
    expect(two.out).toBe(2)
    two.leave()
    expect(two.out).toBe(1)
    expect(two.tryEnter()).toBe(true)
  })

  it('go to those who wait, in the order in which they came; who left the queue gets none', () => {
    const one = slots(1, 3)
    one.tryEnter()
    const entered: string[] = []
    const leaves = ['a', 'b', 'c'].map((name) => one.wait(() => void entered.push(name)))
    expect(one.waiting).toBe(3)
    expect(one.wait(() => void entered.push('d'))).toBeUndefined()
    leaves[1]?.()
    leaves[1]?.()
    expect(one.waiting).toBe(2)
    one.leave()
    expect(entered).toEqual(['a'])
    expect(one.out).toBe(1)
    leaves[0]?.() // too late: it is in
    one.leave()
    expect(entered).toEqual(['a', 'c'])
    one.leave()
    expect([one.out, one.waiting]).toEqual([0, 0])
  })

  it('two waits with the same function are two', () => {
    const one = slots(1, 2)
    one.tryEnter()
    let entered = 0
    const enter = () => {
      entered += 1
    }
    one.wait(enter)
    one.wait(enter)
    one.leave()
    one.leave()
    expect(entered).toBe(2)
  })

  it.each([
    [{ kind: 'concurrency', most: 0, queue: 0 }, 'limit.most'],
    [{ kind: 'concurrency', most: 1.5, queue: 0 }, 'limit.most'],
    [{ kind: 'concurrency', most: 100_001, queue: 0 }, 'limit.most'],
    [{ kind: 'concurrency', most: 1, queue: -1 }, 'limit.queue'],
    [{ kind: 'concurrency', most: 1, queue: Number.POSITIVE_INFINITY }, 'limit.queue'],
    [{ kind: 'concurrency', most: 1 }, 'limit.queue'],
    [null, 'limit'],
  ])('refuses %j by its name', (data, path) => {
    expect(() => new Slots(data as never)).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', details: expect.objectContaining({ path }) }),
    )
  })

  it('says the range of what it refuses', () => {
    expect(() => slots(0, 0)).toThrow('Not valid: limit.most. It is a whole number from 1 to 100000.')
    expect(() => slots(1, -1)).toThrow('Not valid: limit.queue. It is a whole number from 0 to 100000.')
  })
})

type Step = 'enter' | 'leave' | 'give up'
const steps = fc.array(fc.constantFrom<Step>('enter', 'leave', 'give up'), { maxLength: 60 })

property(
  'never more are in than may be, nobody waits while a slot is free, and the order is kept',
  [fc.integer({ min: 1, max: 3 }), fc.integer({ min: 0, max: 3 }), steps],
  (most, queue, taken) => {
    const subject = slots(most, queue)
    const waiting: { name: number; leave: () => void }[] = []
    let inside = 0
    let name = 0
    for (const step of taken) {
      if (step === 'enter') {
        name += 1
        const mine = name
        if (subject.tryEnter()) inside += 1
        else {
          const leave = subject.wait(() => {
            expect(waiting.shift()?.name).toBe(mine)
            inside += 1
          })
          expect(leave === undefined).toBe(waiting.length === queue)
          if (leave !== undefined) waiting.push({ name: mine, leave })
        }
      } else if (step === 'leave' && inside > 0) {
        inside -= 1
        subject.leave()
      } else if (step === 'give up') waiting.pop()?.leave()
      expect([subject.out, subject.waiting]).toEqual([inside, waiting.length])
      expect(inside).toBeLessThanOrEqual(most)
      if (waiting.length > 0) expect(inside).toBe(most)
    }
  },
)
