import { describe, expect, it } from 'vitest'
import { historyOf, rememberAttempts } from './history.js'
import { permanent, unclassified, type Verdict } from './verdict.js'

describe('historyOf', () => {
  const failedWith = (verdict: Verdict) => [{ number: 1, verdict, error: undefined, failedAtMs: 0 }]
  const known = failedWith(permanent('http-404', 'no'))

  it('finds what was remembered of an error, a function or any other object, without touching it', () => {
    for (const thrown of [Object.freeze(new Error('a')), { message: 'b' }, () => undefined]) {
      expect(historyOf(thrown)).toBeUndefined()
      rememberAttempts(thrown, known, 'attempts')
      expect(historyOf(thrown)).toEqual({ attempts: known, stop: 'attempts' })
    }
  })

  it('knows nothing of primitives', () => {
    for (const thrown of [undefined, null, 7, 'text', Symbol('s')]) {
      expect(() => rememberAttempts(thrown, known, 'attempts')).not.toThrow()
      expect(historyOf(thrown)).toBeUndefined()
    }
  })

  it('says how to classify what nobody classified', () => {
    const error = new Error('E1234')
    rememberAttempts(error, [...failedWith(unclassified), ...known], 'permanent')
    expect(historyOf(error)?.hint).toContain('`classify`')
  })
})
