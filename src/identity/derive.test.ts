import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { contentKey, derive } from './derive.js'
import { parseKey } from './key.js'

const wellFormed = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 })
const keyText = fc.stringMatching(/^[\x21-\x7e]{1,40}$/)

describe('derive', () => {
  it('never changes: a repeat after an upgrade must find the same key', () => {
    expect(derive(parseKey('order-4711'), 'capture')).toBe('d1-dJQzEMfHQAtyUZ3viTPUQo--M2Hnbyxzn6F8G307Lq0')
  })

  it('gives a valid key that does not reveal its origin and can be derived again', () => {
    const key = parseKey('order-4711')
    const derived = derive(key, 'capture')
    expect(parseKey(derived)).toHaveLength(46)
    expect(derived).not.toContain('4711')
    expect(derive(derived, 'mail')).not.toBe(derive(key, 'capture/mail'))
  })

  it.each(['', 'x'.repeat(256), '\ud800', 7, undefined])('refuses the bad step %#', (step) => {
    expect(() => derive(parseKey('k'), step as string)).toThrow(expect.objectContaining({ code: 'STEP_INVALID' }))
  })

  it.each(['', undefined, 'two words'])('refuses the bad key %#: all callers without one would share it', (key) => {
    expect(() => derive(key as never, 'capture')).toThrow(expect.objectContaining({ name: 'RepriseError' }))
  })

  property(
    'is the same only for the same key and step',
    [keyText, wellFormed, keyText, wellFormed],
    (key, step, otherKey, otherStep) => {
      const same = key === otherKey && step === otherStep
      expect(derive(parseKey(key), step) === derive(parseKey(otherKey), otherStep)).toBe(same)
      expect(derive(parseKey(key), step)).toBe(derive(parseKey(key), step))
      // The boundary between key and step cannot be moved.
      if (/^[\x21-\x7e]{2,}$/.test(step)) {
        const moved = derive(parseKey(key + step[0]), step.slice(1))
        expect(moved).not.toBe(derive(parseKey(key), step))
      }
    },
  )
})

describe('contentKey', () => {
  const window = '2026-11-15T10:00Z/PT5M'

  it('never changes', () => {
    expect(contentKey({ inputs: ['a', 'b'], window })).toBe('c1-1WVevP2rBe5LPyZm61tw9cheu5MEcp--OeQvtKJVgyE')
  })

  it('minds the order of the inputs unless told not to', () => {
    expect(contentKey({ inputs: ['a', 'b'], window })).not.toBe(contentKey({ inputs: ['b', 'a'], window }))
    const unordered = contentKey({ inputs: ['a', 'b'], window, unordered: true })
    expect(contentKey({ inputs: ['b', 'a'], window, unordered: true })).toBe(unordered)
    expect(contentKey({ inputs: ['a', 'b'], window })).not.toBe(unordered)
  })

  it('counts repeated ids, and leaves the given list as it was', () => {
    const inputs = ['b', 'a', 'a']
    const key = contentKey({ inputs, window, unordered: true })
    expect(key).not.toBe(contentKey({ inputs: ['a', 'b'], window, unordered: true }))
    expect(inputs).toEqual(['b', 'a', 'a'])
  })

  it.each([
    { inputs: [], window },
    { inputs: ['a', ''], window },
    { inputs: ['a', undefined as never], window },
    // biome-ignore lint/suspicious/noSparseArray: a hole is the bad input under test
    { inputs: ['a', , 'b'] as never, window },
    { inputs: 'ab' as never, window },
    { inputs: ['a'], window: '' },
    { inputs: ['a'], window, unordered: 'false' as never },
    undefined as never,
  ])('refuses the bad parts %#', (parts) => {
    expect(() => contentKey(parts)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('refuses an input id that has no UTF-8 form', () => {
    expect(() => contentKey({ inputs: ['\udfff'], window })).toThrow(expect.objectContaining({ code: 'TUPLE_INVALID' }))
  })

  property(
    'is the same only for the same inputs and window',
    [
      fc.array(wellFormed, { minLength: 1, maxLength: 6 }),
      wellFormed,
      fc.array(wellFormed, { minLength: 1, maxLength: 6 }),
    ],
    (inputs, id, others) => {
      const same = JSON.stringify(inputs) === JSON.stringify(others)
      expect(contentKey({ inputs, window: id }) === contentKey({ inputs: others, window: id })).toBe(same)
      const shuffled = inputs.toReversed()
      expect(contentKey({ inputs: shuffled, window: id, unordered: true })).toBe(
        contentKey({ inputs, window: id, unordered: true }),
      )
    },
  )
})
