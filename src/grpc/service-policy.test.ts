import { describe, expect, it } from 'vitest'
import { historyOf, readOnly, tokenBudget } from '../retry/index.js'
import { manualClock, seededRandom } from '../testing/index.js'
import { policyFromServiceConfig, type ServicePolicyOptions } from './service-policy.js'

const config = {
  methodConfig: [
    {
      name: [{ service: 'shop.Orders' }],
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: '0.1s',
        maxBackoff: '1s',
        backoffMultiplier: 2,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
    {
      name: [{ service: 'shop.Orders', method: 'Find' }],
      hedgingPolicy: { maxAttempts: 3, hedgingDelay: '0.05s', nonFatalStatusCodes: ['UNAVAILABLE'] },
    },
  ],
  retryThrottling: { maxTokens: 10, tokenRatio: 0.1 },
}
const failure = (code: number, pushback?: string) =>
  Object.assign(new Error('status'), { code, metadata: { get: () => (pushback === undefined ? [] : [pushback]) } })

async function stopOf(errors: readonly Error[], budget = tokenBudget(), options: ServicePolicyOptions = {}) {
  const clock = manualClock()
  const policy = policyFromServiceConfig(config, 'shop.Orders/Place', { clock, budget, layer: 'own', ...options })
  let calls = 0
  let done = false
  const watched = policy
    .run(readOnly(), () => {
      const error = errors[calls++]
      return error === undefined ? 'ok' : Promise.reject(error)
    })
    .catch((reason: unknown) => reason)
    .finally(() => {
      done = true
    })
  for (let turns = 0; turns < 50 && !done; turns++) await clock.runToNext()
  return { calls, stop: historyOf(await watched)?.stop, atMs: clock.monotonicMs(), level: budget.level(0) }
}

describe('policyFromServiceConfig', () => {
  it('takes over attempts, backoff, throttle and hedging', () => {
    expect(policyFromServiceConfig(config, 'shop.Orders/Place').toJSON()).toMatchObject({
      attempts: 4,
      backoff: { kind: 'grpc', baseMs: 100, capMs: 1_000, multiplier: 2 },
      budget: { kind: 'token', maxTokens: 10, tokenRatio: 0.1 },
    })
    expect(policyFromServiceConfig(config, 'shop.Orders/Find').toJSON()).toMatchObject({
      attempts: 3,
      hedgeAfterMs: 50,
    })
    expect(policyFromServiceConfig(config, 'other.Service/Any').toJSON()).toMatchObject({ attempts: 1 })
  })

  it('repeats the statuses it names, and no others', async () => {
    expect(await stopOf([failure(14), failure(14)])).toMatchObject({ calls: 3, stop: undefined })
    expect(await stopOf([failure(3)])).toMatchObject({ calls: 1, stop: 'permanent', level: 10 })
  })

  // grpc-js 1.14.7: an unreadable pushback is NaN there, and repeats after a millisecond; "10x" is read as 10.
  it.each(['-1', 'abc', '10x', '', '010', '1.5'])('grpc-js: the pushback %j means no', async (pushback) => {
    expect(await stopOf([failure(14, pushback)])).toMatchObject({ calls: 1, stop: 'do-not-repeat', level: 9 })
  })

  it('waits exactly as long as the server asks, also less than the backoff', async () => {
    expect(await stopOf([failure(14, '7000')])).toMatchObject({ calls: 2, atMs: 7_000 })
    expect(await stopOf([failure(14, '3')])).toMatchObject({ calls: 2, atMs: 3 })
    expect(await stopOf([failure(14, '0'), failure(14, '0')])).toMatchObject({ calls: 3, atMs: 0 })
  })

  it('starts the backoff anew after a pushback', async () => {
    const random = { ...seededRandom(1), next: () => 0.5 }
    // 100, then the pushback, then 100 again and not 400.
    const errors = [failure(14), failure(14, '3'), failure(14)]
    expect(await stopOf(errors, tokenBudget(), { random })).toMatchObject({ calls: 4, atMs: 203 })
    const without = [failure(14), failure(14), failure(14)]
    expect(await stopOf(without, tokenBudget(), { random })).toMatchObject({ calls: 4, atMs: 700 })
  })

  it('reads a pushback as an int32: what is larger means no', async () => {
    expect(await stopOf([failure(14, '2147483648')])).toMatchObject({ calls: 1, stop: 'do-not-repeat', level: 9 })
    expect(await stopOf([failure(14, '2147483647')])).toMatchObject({ calls: 1, stop: 'retry-after' })
  })

  it('skips a classifier of its own that throws', async () => {
    const classify = () => {
      throw new Error('mistake')
    }
    expect(await stopOf([failure(14)], tokenBudget(), { classify })).toMatchObject({ calls: 2, stop: undefined })
  })

  // grpc-js: a pushback on a status that is not listed does not debit the throttle there.
  it('grpc-js: a pushback that forbids counts against the throttle, whatever the status', async () => {
    expect(await stopOf([failure(3, '-1')])).toMatchObject({ calls: 1, level: 9 })
  })
})
