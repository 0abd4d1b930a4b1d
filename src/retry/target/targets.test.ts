import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { tokenBudget } from './budget.js'
import { perTarget } from './targets.js'

describe('perTarget', () => {
  it('hands out one thing per target', () => {
    const budgetOf = perTarget(() => tokenBudget())
    const a = budgetOf('a')
    expect(budgetOf('a')).toBe(a)
    expect(budgetOf('b')).not.toBe(a)
    expect(budgetOf('__proto__')).toBe(budgetOf('__proto__'))
  })

  it('keeps what was made even if it is undefined', () => {
    let made = 0
    const of = perTarget(() => {
      made += 1
    })
    of('a')
    of('a')
    expect(made).toBe(1)
  })

  property(
    'forgets the least recently used beyond the limit',
    [fc.integer({ min: 1, max: 5 }), fc.array(fc.constantFrom(...'abcdefgh'))],
    (maxTargets, asked) => {
      const of = perTarget((target) => ({ target }), { maxTargets })
      let model: { target: string }[] = []
      for (const target of asked) {
        const known = model.find((one) => one.target === target)
        const given = of(target)
        expect(given.target).toBe(target)
        if (known !== undefined) expect(given).toBe(known)
        else expect(model).not.toContain(given)
        model = [...model.filter((one) => one.target !== target), given].slice(-maxTargets)
      }
    },
    { cases: 2000 },
  )

  it.each([0, 1.5, -1, Number.NaN, 100_001])('refuses %d targets', (maxTargets) => {
    expect(() => perTarget(() => 0, { maxTargets })).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', details: { path: 'targets.maxTargets' } }),
    )
  })
})
