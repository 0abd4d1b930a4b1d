import { describe, expect, it } from 'vitest'
import type { Message, MessagePlace } from '../atomicity/index.js'
import { type ArrivalFacts, type ArrivalLane, arrivalOf, placeBehind } from './arrival.js'

const idle: ArrivalLane = { done: undefined, known: undefined, first: undefined }
const unknown: ArrivalFacts = { processed: undefined, stored: undefined, isTaken: false, follows: false }

function arrivedAt(place: MessagePlace | undefined, order: 'key' | 'gapless' | 'none' = 'gapless') {
  const message = { place } as Message<never>
  return (lane: ArrivalLane = idle, facts: Partial<ArrivalFacts> = {}) =>
    arrivalOf({ order, fingerprint: 'same', message }, lane, { ...unknown, ...facts })
}

describe('a message that arrived', () => {
  it.each(['key', 'gapless', 'none'] as const)('is judged by its processed row first, in order %s', (order) => {
    const arrived = arrivedAt({ epoch: 1, number: 9 }, order)
    expect(arrived(idle, { processed: 'same' })).toEqual({ is: 'duplicate' })
    expect(arrived(idle, { processed: '' })).toEqual({ is: 'duplicate' })
    expect(arrived(idle, { processed: 'other' })).toEqual({ is: 'mismatch' })
    expect(arrived(idle, { stored: 'same' })).toEqual({ is: 'stored', place: undefined })
    expect(arrived(idle, { stored: 'other' })).toEqual({ is: 'mismatch' })
  })

  it('goes behind what waits, by arrival', () => {
    const arrived = arrivedAt(undefined, 'key')
    expect(arrived()).toEqual({ is: 'new', done: undefined })
    const waiting = { ...idle, first: { epoch: 0, number: 3 }, known: { epoch: 0, number: 4 } }
    expect(arrived(waiting)).toEqual({ is: 'stored', place: { epoch: 0, number: 5 } })
    expect(placeBehind(undefined)).toEqual({ epoch: 0, number: 1 })
  })

  it('is late, outdated, next or behind a gap, by its number', () => {
    const lane = { ...idle, done: { epoch: 2, number: 5 } }
    expect(arrivedAt({ epoch: 2, number: 5 })(lane)).toEqual({ is: 'late' })
    expect(arrivedAt({ epoch: 1, number: 9 })(lane)).toEqual({ is: 'outdated', epoch: 2 })
    expect(arrivedAt({ epoch: 2, number: 6 })(lane)).toEqual({ is: 'new', done: { epoch: 2, number: 6 } })
    expect(arrivedAt({ epoch: 3, number: 1 })(lane)).toEqual({ is: 'new', done: { epoch: 3, number: 1 } })
    const gap = { epoch: 2, number: 8 }
    expect(arrivedAt(gap)(lane)).toEqual({ is: 'gap', place: gap, expected: 6 })
    expect(arrivedAt(gap)(lane, { follows: true })).toEqual({ is: 'stored', place: gap })
    expect(arrivedAt({ epoch: 2, number: 6 })(lane, { isTaken: true })).toEqual({ is: 'late' })
  })

  it('starts a key with the first number that is seen', () => {
    expect(arrivedAt({ epoch: 4, number: 17 })()).toEqual({ is: 'new', done: { epoch: 4, number: 17 } })
  })
})
