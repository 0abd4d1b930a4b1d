import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { EventQueue } from './event-queue.js'

describe('EventQueue', () => {
  it('is empty at first', () => {
    const events = new EventQueue()
    expect(events.nextMs()).toBe(Number.POSITIVE_INFINITY)
    expect(events.take()).toBe(false)
    expect(events.size).toBe(0)
  })

  it('grows beyond its first size', () => {
    const events = new EventQueue()
    for (let place = 5000; place > 0; place -= 1) events.add(place, place % 256, place)
    for (let place = 1; place <= 5000; place += 1) {
      expect(events.take()).toBe(true)
      expect([events.timeMs, events.kind, events.subject]).toEqual([place, place % 256, place])
    }
    expect(events.take()).toBe(false)
  })

  // Few different times make many ties; a null takes an event in between.
  const steps = fc.array(fc.option(fc.integer({ min: 0, max: 6 }), { freq: 3 }), { maxLength: 60 })
  property('takes by time, and equals in their order of entry', [steps], (given) => {
    const events = new EventQueue()
    const waiting: { timeMs: number; order: number }[] = []
    const takeBoth = (): void => {
      const expected = waiting.toSorted((a, b) => a.timeMs - b.timeMs || a.order - b.order)[0]
      expect(events.nextMs()).toBe(expected?.timeMs ?? Number.POSITIVE_INFINITY)
      expect(events.take()).toBe(expected !== undefined)
      if (expected === undefined) return
      expect([events.timeMs, events.subject]).toEqual([expected.timeMs, expected.order])
      waiting.splice(waiting.indexOf(expected), 1)
    }
    given.forEach((timeMs, order) => {
      if (timeMs === null) takeBoth()
      else {
        events.add(timeMs, 0, order)
        waiting.push({ timeMs, order })
      }
    })
    while (waiting.length > 0) takeBoth()
    expect(events.size).toBe(0)
  })
})
