import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import type { StoredMessage } from '../../atomicity/index.js'
import { seededRandom } from '../../kernel/index.js'
import { constantDelay } from '../../retry/index.js'
import type { Published } from '../broker.js'
import type { ClaimedLane } from '../lanes.js'
import { afterPublish, callSays, companyOf, firstShape, type Item, isToBlame, nextCall, nextShape } from './machine.js'

const rules = { attempts: 3, crashes: 2, backoff: constantDelay(100) }
const context = { othersConfirmed: false, spared: () => false, chance: seededRandom(1), atMs: 7 }

const message = (number: number): StoredMessage =>
  ({ source: 's', id: `a${number}`, type: 't', key: 'a', place: { epoch: 1, number }, data: '1' }) as StoredMessage

const lane = (messages: number, more: Partial<ClaimedLane> = {}): ClaimedLane => ({
  key: 'a',
  attempt: 1,
  claims: 1,
  failures: 0,
  history: '',
  done: undefined,
  decision: undefined,
  messages: Array.from({ length: messages }, (_, index) => message(index + 1)),
  ...more,
})

const send = (number: number): Item => ({ is: 'send', message: message(number) as never })
const confirmed: Published = { is: 'confirmed' }
const refused: Published = { is: 'refused', code: 'bad', reason: 'ugly' }
const unsent: Published = { is: 'unsent', error: undefined }
const unknown: Published = { is: 'unknown', error: undefined }

describe('the end of a lane', () => {
  property(
    'is at the first message that is not done, whatever was said of the others',
    [
      fc.array(fc.constantFrom('skip', 'confirmed', 'refused', 'unsent', 'unknown', 'dead'), {
        minLength: 1,
        maxLength: 8,
      }),
    ],
    (words) => {
      const answers: Record<string, Published> = { confirmed, refused, unsent, unknown }
      const items = words.map((word, index): Item => {
        if (word === 'skip') return { is: 'skip' }
        return word === 'dead' ? { is: 'dead', code: 'X', reason: 'x' } : send(index + 1)
      })
      const given = words.flatMap((word) => answers[word] ?? [])
      const { done, next, published, skipped } = afterPublish(
        { lane: lane(words.length), items, answers: given },
        rules,
        context,
      )
      const first = words.findIndex((word) => word !== 'skip' && word !== 'confirmed')
      const through = first === -1 ? words.length : first
      expect(done?.number ?? 0).toBe(through)
      expect(published.length + skipped).toBe(through)
      expect(next.is).toBe(first === -1 ? 'free' : words[first] === 'dead' ? 'park' : 'rest')
      if (next.is === 'park') expect(next.letter.message.place.number).toBe(through + 1)
      if (next.is === 'rest') expect(next.failures).toBe(words[first] === 'refused' ? 1 : 0)
    },
    { cases: 2_000 },
  )

  it('counts what was refused, up to the last attempt', () => {
    const step = (failures: number) =>
      afterPublish(
        { lane: lane(2, { failures, history: '' }), items: [send(1), send(2)], answers: [refused] },
        rules,
        context,
      )
    expect(step(0)).toMatchObject({ next: { is: 'rest', forMs: 100, failures: 1 }, refused: { failures: 1 } })
    expect(step(1)).toMatchObject({ next: { is: 'rest', failures: 2 } })
    expect(step(2)).toMatchObject({ next: { is: 'park', letter: { code: 'MESSAGE_REFUSED', reason: 'bad: ugly' } } })
  })

  it('counts failures of the first message against that one alone', () => {
    const failed = lane(2, { failures: 2, history: '[]' })
    const step = afterPublish(
      { lane: failed, items: [send(1), send(2)], answers: [confirmed, refused] },
      rules,
      context,
    )
    expect(step).toMatchObject({ done: { number: 1 }, next: { is: 'rest', failures: 1 } })
  })

  it('waits for the longest where there is no budget', () => {
    const long = { ...rules, backoff: { ...constantDelay(100), data: { ...constantDelay(100).data, capMs: 9_000 } } }
    const work = { lane: lane(1), items: [send(1)], answers: [refused] }
    expect(afterPublish(work, long, { ...context, spared: () => true }).next).toMatchObject({ forMs: 9_000 })
  })

  it('keeps what was counted while the broker is away, and remembers once that nobody knows', () => {
    const before = lane(1, { failures: 2, history: '[{"what":"failed"}]' })
    const away = (answer: Published | undefined, given = before) =>
      afterPublish({ lane: given, items: [send(1)], answers: answer === undefined ? [] : [answer] }, rules, context)
        .next
    expect(away(unsent)).toMatchObject({ is: 'rest', failures: 2, history: before.history })
    expect(away(undefined)).toEqual({ is: 'rest', forMs: 0, failures: 2, history: before.history })
    const lost = away(unknown)
    expect(lost).toMatchObject({ is: 'rest', failures: 2 })
    if (lost.is !== 'rest') throw new Error('it rests')
    expect(lost.forMs).toBeGreaterThanOrEqual(250)
    expect(JSON.parse(lost.history)).toMatchObject([{ what: 'failed' }, { what: 'lost', atMs: 7 }])
    expect(away(unknown, { ...before, history: lost.history })).toMatchObject({ history: lost.history })
  })
})

describe('the company of a lane', () => {
  it.each([
    [{ claims: 1, history: '' }, 'together'],
    [{ claims: 1, history: '[{"what":"lost"}]' }, 'single'],
    [{ claims: 2, history: '' }, 'alone'],
    [{ claims: 1, history: '[{"what":"suspected"}]' }, 'alone'],
    [{ claims: 9, history: '[{"what":"alone","times":1}]' }, 'alone'],
    [{ claims: 1, history: '[{"what":"alone","times":2}]' }, 'kills'],
  ] as const)('%j: %s', (given, company) => {
    expect(companyOf(given, rules)).toBe(company)
  })
})

describe('calls', () => {
  const work = (single: boolean, answers: readonly Published[] = []) => ({
    lane: lane(2),
    items: [send(1), send(2)],
    single,
    answers,
  })
  const sizes = (...args: Parameters<typeof nextCall>) =>
    nextCall(...args).map(({ lane: at, message: { id } }) => `${at}${id}`)

  it('are single ones first, then all others', () => {
    expect(sizes([work(false), work(true), work(false)], 'key', 0)).toEqual(['1a1'])
    expect(sizes([work(false), work(true, [unknown]), work(false)], 'key', 1)).toEqual(['0a1', '0a2', '2a1', '2a2'])
    expect(sizes([work(false), work(true)], 'none', 2)).toEqual(['0a1'])
    expect(sizes([work(false, [confirmed])], 'none', 0)).toEqual(['0a2'])
  })

  it('have nothing behind a message that is not confirmed', () => {
    for (const answer of [refused, unsent, unknown]) expect(sizes([work(false, [answer])], 'none', 0)).toEqual([])
    expect(sizes([work(true, [confirmed])], 'key', 0)).toEqual([])
  })

  it('say that the broker is there, or away', () => {
    expect([[confirmed, unknown], [refused], [unknown, unsent]].map(callSays)).toEqual(['there', 'there', 'away'])
  })

  it('put the blame on a message while the broker confirms others', () => {
    expect(isToBlame(5, 6, undefined)).toBe(true)
    expect(isToBlame(5, 4, undefined)).toBe(false)
    expect(isToBlame(9, 6, 5)).toBe(true)
    expect(isToBlame(9, 5, 5)).toBe(false)
  })
})

describe('the shape of a claim', () => {
  property(
    'never asks for more than a batch, nor for nothing',
    [
      fc.integer({ min: 1, max: 10_000 }),
      fc.array(fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 50 }), { maxLength: 20 }),
    ],
    (batch, claims) => {
      let shape = firstShape(batch)
      for (const given of claims) {
        const fitting = given.slice(0, shape.lanes).map((messages) => Math.min(messages, shape.perLane))
        shape = nextShape(batch, shape, fitting)
        expect(shape.lanes * shape.perLane).toBeLessThanOrEqual(batch)
        expect(Math.min(shape.lanes, shape.perLane)).toBeGreaterThanOrEqual(1)
      }
    },
    { cases: 2_000 },
  )

  const shapes = (keys: number, deep: number) => {
    let shape = firstShape(500)
    return Array.from({ length: 30 }, () => {
      const claimed = Array.from({ length: Math.min(keys, shape.lanes) }, () => Math.min(deep, shape.perLane))
      shape = nextShape(500, shape, claimed)
      return `${shape.lanes} of ${shape.perLane}`
    })
  }

  it('is wide for many keys of one message, and both for many of many', () => {
    expect(shapes(100_000, 1)[0]).toBe('500 of 1')
    expect(shapes(100_000, 1_000).at(-1)).toBe('16 of 31')
  })

  it('is as wide as fills a batch, and looks for deeper lanes only now and then', () => {
    for (const [deep, shape] of [
      [1, '500 of 1'],
      [10, '50 of 10'],
    ] as const) {
      const all = shapes(100_000, deep)
      expect(all.filter((one) => one !== shape).length).toBeLessThan(4)
    }
    // One deep key among many of one message does not make all claims deep.
    const claimed = [2, ...Array.from({ length: 249 }, () => 1)]
    expect(nextShape(500, { lanes: 250, perLane: 2, keepsFor: 0 }, claimed)).toMatchObject({ lanes: 500, perLane: 1 })
  })

  it('is deep for one key, and looks for others now and then', () => {
    const all = shapes(1, 100_000)
    expect(all).toContain('1 of 496')
    expect(all.filter((shape) => shape === '16 of 31').length).toBeGreaterThan(1)
  })
})
