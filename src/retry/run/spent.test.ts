import { describe, expect, it } from 'vitest'
import type { OpenLayer } from './layers.js'
import { joinSpent, markSpent, type Spending } from './spent.js'

const outer = (attempts = 3): OpenLayer => ({
  depth: 1,
  declared: attempts,
  owns: true,
  allowance: { attempts, spent: 0 },
})
const spending = (spent: number, more: Partial<Spending> = {}): Spending => ({
  name: 'inner',
  kind: 'policy',
  attempts: 3,
  depth: 1,
  declared: 3,
  allowance: { attempts: 3, spent },
  call: 2,
  ...more,
})

describe('what was spent out of sight', () => {
  it('is counted once, and raises the allowance to the larger of the two', () => {
    const error = new Error('mine')
    markSpent(error, spending(7, { allowance: { attempts: 8, spent: 7 } }))
    const first = outer()
    joinSpent(error, first, 1)
    expect(first.allowance).toEqual({ attempts: 8, spent: 7 })
    joinSpent(error, first, 1)
    const second = outer()
    joinSpent(error, second, 1)
    expect([first.allowance.spent, second.allowance.spent]).toEqual([7, 0])
  })

  it('is not taken from a call that began before', () => {
    const error = new Error('mine')
    markSpent(error, spending(2, { call: 4 }))
    const layer = outer()
    joinSpent(error, layer, 5)
    expect(layer.allowance.spent).toBe(0)
  })

  it('is found among causes and members, of circles and hostile errors too', () => {
    const marked = new Error('mine')
    markSpent(marked, spending(2))
    const circle = new Error('circle') as Error & { cause: unknown }
    circle.cause = new AggregateError([circle, marked, 7, null])
    const hostile = new Proxy(new Error('hostile'), {
      get: () => {
        throw new Error('mine')
      },
    })
    const layer = outer()
    for (const value of [hostile, undefined, 'text', 5n, circle]) joinSpent(value, layer, 1)
    expect(layer.allowance.spent).toBe(2)
  })

  it('of nothing is not kept, and neither is anything beside a primitive', () => {
    const error = new Error('mine')
    markSpent(error, spending(0))
    expect(() => markSpent('text', spending(2))).not.toThrow()
    const layer = outer()
    joinSpent(error, layer, 1)
    expect(layer.allowance.spent).toBe(0)
  })
})
