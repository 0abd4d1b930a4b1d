import { describe, expect, it } from 'vitest'
import { firstOf, forCodes, permanent, transient, when } from './verdict.js'

const busy = transient('busy', 'no')
const lost = transient('lost', 'maybe')

describe('firstOf', () => {
  it('gives the first answer, and undefined when nobody has one', () => {
    const second = firstOf(
      () => undefined,
      () => busy,
      () => lost,
    )
    expect(second(new Error())).toBe(busy)
    expect(firstOf()(new Error())).toBeUndefined()
  })

  it('takes a classifier that throws for one without an answer', () => {
    const broken = () => {
      throw new Error('mistake')
    }
    expect(firstOf(broken, () => busy)(1)).toBe(busy)
    expect(when(broken, busy)(1)).toBeUndefined()
  })
})

describe('forCodes', () => {
  const classify = forCodes({ BUSY: busy, LOST: lost, GONE: permanent('gone', 'no') })

  it('knows an error by its code, its cause’s code, up to five causes deep', () => {
    expect(classify({ code: 'BUSY' })).toBe(busy)
    const wrap = (error: unknown, levels: number): unknown =>
      levels === 0 ? error : wrap({ message: 'failed', cause: error }, levels - 1)
    expect(classify(wrap({ code: 'LOST' }, 5))).toBe(lost)
    expect(classify(wrap({ code: 'LOST' }, 6))).toBeUndefined()
  })

  it('knows only its own entries', () => {
    for (const code of ['constructor', 'toString', '__proto__', 'OTHER', 20]) expect(classify({ code })).toBeUndefined()
  })

  it.each([
    [['BUSY', 'BUSY'], busy],
    [['BUSY', 'LOST'], lost],
    [['GONE', 'BUSY'], busy],
    [['GONE', 'LOST'], lost],
    [['BUSY', 'OTHER'], undefined],
    [['OTHER'], undefined],
  ])('an AggregateError of %j counts as a whole', (codes, verdict) => {
    const members = codes.map((code) => Object.assign(new Error(), { code }))
    // Node gives the whole the code of its first member.
    expect(classify(Object.assign(new AggregateError(members), { code: 'BUSY' }))).toBe(verdict)
  })

  it('an AggregateError of more members than are looked at is not known', () => {
    const members = (count: number) => new AggregateError(Array.from({ length: count }, () => ({ code: 'BUSY' })))
    expect(classify(members(63))).toBe(busy)
    expect(classify(members(64))).toBeUndefined()
  })

  it('survives circles, hostile getters and values that are no errors', () => {
    const circle: { cause?: unknown } = {}
    circle.cause = circle
    const members: unknown[] = []
    members.push({ errors: members }, { errors: members })
    const hostile = {
      get code(): string {
        throw new Error('mine')
      },
    }
    const proxy = new Proxy({}, { get: () => proxy, has: () => true })
    for (const value of [
      circle,
      { errors: members },
      hostile,
      proxy,
      undefined,
      null,
      0,
      '',
      'ECONNREFUSED',
      Symbol('s'),
    ]) {
      expect(classify(value)).toBeUndefined()
    }
  })
})
