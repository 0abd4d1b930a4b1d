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

  it('lets only leave what is like new; the rest of the targets share one thing meanwhile', () => {
    const made: [string, boolean][] = []
    const budgetOf = perTarget(
      (target, isForRest) => {
        made.push([target, isForRest])
        return tokenBudget()
      },
      { maxTargets: 2, isLikeNew: (budget) => budget.level(0) === 10 },
    )
    const [a, b] = [budgetOf('a'), budgetOf('b')]
    a.failed(0)
    b.failed(0)
    const c = budgetOf('c')
    expect(budgetOf('d')).toBe(c)
    expect([budgetOf('a'), budgetOf('b')]).toEqual([a, b])
    for (let success = 0; success < 10; success++) b.succeeded(0)
    // b is full again and leaves; what it was is what it is when it comes back.
    expect(budgetOf('d')).not.toBe(c)
    expect(budgetOf('b')).not.toBe(b)
    expect(budgetOf('a')).toBe(a)
    expect(made).toEqual([
      ['a', false],
      ['b', false],
      ['c', true],
      ['d', false],
      ['b', false],
    ])
  })

  it('looks at a bounded number of targets for one that may leave, and at others the next time', () => {
    let looks = 0
    const full = new Set<string>()
    const of = perTarget((target) => target, {
      maxTargets: 40,
      isLikeNew: (target) => {
        looks += 1
        return full.has(target)
      },
    })
    for (let target = 0; target < 40; target++) of(`${target}`)
    full.add('39')
    expect([of('x'), of('y'), of('z')]).toEqual(['x', 'x', 'z'])
    expect(looks).toBe(40)
  })

  it.each([0, 1.5, -1, Number.NaN, 100_001])('refuses %d targets', (maxTargets) => {
    expect(() => perTarget(() => 0, { maxTargets })).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', details: { path: 'targets.maxTargets' } }),
    )
  })
})
