import { describe, expect, it, vi } from 'vitest'
import { Flaky, settle, setup } from '../../../test/retry/virtual-policy.js'
import type { Clock } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { readOnly } from '../guard.js'
import { retryPolicy } from '../policy.js'
import { type Breaker, consecutiveBreaker } from '../target/breaker.js'
import { type Budget, ratioBudget } from '../target/budget.js'
import { hedging } from './hedge.js'

const mistake = new Error('a mistake in a part of the user')
const throws = () => {
  throw mistake
}

describe('a part of the user that throws', () => {
  const ways = { plain: {}, limited: { deadline: '10s' }, hedged: { hedge: hedging({ after: 50 }) } } as const
  const breakerParts = ['tryEnter', 'succeeded', 'failed', 'ignored'] as const satisfies readonly (keyof Breaker)[]
  const budgetParts = ['tryRepeat', 'succeeded', 'failed'] as const satisfies readonly (keyof Budget)[]
  const cases = Object.keys(ways).flatMap((way) => [
    ...breakerParts.map((part) => [way, 'breaker', part] as const),
    ...budgetParts.map((part) => [way, 'budget', part] as const),
  ])

  // A rejection that nobody handles, or an uncaught error, fails the whole run.
  it.each(cases)('%s: ends the call, and repeats no success: %s.%s', async (way, kind, part) => {
    const whole = kind === 'breaker' ? consecutiveBreaker() : ratioBudget({ initial: 5 })
    const { policy, clock } = setup({ ...ways[way as keyof typeof ways], [kind]: { ...whole, [part]: throws } })
    const fails = part === 'failed' || part === 'tryRepeat' || part === 'ignored'
    const error = part === 'ignored' ? new Error('permanent') : new Flaky()
    const body = vi.fn(async () => (fails ? Promise.reject(error) : 'done'))
    let call: Promise<unknown> | undefined
    expect(() => {
      call = policy.run(readOnly(), body)
    }).not.toThrow()
    await expect(settle(clock, call as Promise<unknown>)).rejects.toBe(mistake)
    expect(body).toHaveBeenCalledTimes(part === 'tryEnter' ? 0 : 1)
    expect(clock.pendingTimers).toBe(0)
  })

  it('a budget that throws when a hedge is due', async () => {
    const budget = { ...ratioBudget({ initial: 5 }), tryRepeat: throws }
    const { policy, clock } = setup({ budget, hedge: hedging({ after: 50 }) })
    const running = policy.run(readOnly(), () => new Promise(() => {})).catch((error: unknown) => error)
    await clock.advance(60)
    expect(await running).toBe(mistake)
    expect(clock.pendingTimers).toBe(0)
  })

  it('a breaker that throws when a hedge is due', async () => {
    let calls = 0
    const whole = consecutiveBreaker()
    const tryEnter = (nowMs: number) => (calls++ === 0 ? whole.tryEnter(nowMs) : throws())
    const { policy, clock } = setup({ breaker: { ...whole, tryEnter }, hedge: hedging({ after: 50 }) })
    const running = policy.run(readOnly(), () => new Promise(() => {})).catch((error: unknown) => error)
    await clock.advance(60)
    expect(await running).toBe(mistake)
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('a clock', () => {
  it('is not asked by a plain call that succeeds at once, and is by one that fails', async () => {
    const inner = manualClock()
    let asked = 0
    const counting = new Proxy<Clock>(inner, {
      get(target, name, receiver) {
        asked += 1
        return Reflect.get(target, name, receiver)
      },
    })
    const policy = retryPolicy({ clock: counting, attempts: 1 })
    asked = 0 // it has looked whether this is a clock
    expect(await policy.run(readOnly(), async () => 'done')).toBe('done')
    expect(await policy.once(() => 'done')).toBe('done')
    expect(await policy.run(readOnly(), async () => 'done', {})).toBe('done')
    expect(asked).toBe(0)
    await expect(policy.run(readOnly(), () => Promise.reject(mistake))).rejects.toBe(mistake)
    expect(asked).toBeGreaterThan(0)
  })
})
