import { describe, expect, it } from 'vitest'
import { Flaky, failing, settle, setup } from '../../../test/retry/virtual-policy.js'
import { readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import { consecutiveBreaker } from '../target/breaker.js'

describe('attempts one after another', () => {
  it.each([{}, { attemptTimeout: '1m' as const }, { deadline: '1m' as const }])(
    'end where the breaker opens between them, with the error of the last: %o',
    async (options) => {
      const { policy, clock } = setup({ breaker: consecutiveBreaker({ failures: 2 }), attempts: 5, ...options })
      const { body, calls } = failing(9, () => new Flaky())
      const error = await settle(clock, policy.run(readOnly(), body)).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(Flaky)
      expect(historyOf(error)?.stop).toBe('breaker')
      expect(calls.map(({ number }) => number)).toEqual([1, 2])
    },
  )

  it('wait for a body that gives nothing but an object with a then', async () => {
    const { policy, clock } = setup()
    let calls = 0
    const query = {
      // biome-ignore lint/suspicious/noThenProperty: a query that runs when it is awaited looks like this.
      then(resolve: (value: string) => void, reject: (error: unknown) => void) {
        calls += 1
        if (calls < 3) reject(new Flaky())
        else resolve('rows')
      },
    } as PromiseLike<string>
    expect(
      await settle(
        clock,
        policy.run(readOnly(), () => query),
      ),
    ).toBe('rows')
    expect(calls).toBe(3)
  })
})
