import { describe, expect, it } from 'vitest'
import { historyOf, remember } from './history.js'

describe('historyOf', () => {
  const history = { attempts: [], stop: 'attempts' } as const

  it('finds what was remembered of an error, a function or any other object, without touching it', () => {
    for (const thrown of [Object.freeze(new Error('a')), { message: 'b' }, () => undefined]) {
      expect(historyOf(thrown)).toBeUndefined()
      remember(thrown, history)
      expect(historyOf(thrown)).toBe(history)
    }
  })

  it('knows nothing of primitives', () => {
    for (const thrown of [undefined, null, 7, 'text', Symbol('s')]) {
      expect(() => remember(thrown, history)).not.toThrow()
      expect(historyOf(thrown)).toBeUndefined()
    }
  })
})
