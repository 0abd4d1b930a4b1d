// Budgets that other libraries lack, or count otherwise.

import { describe, expect, it } from 'vitest'
import { httpClient } from '../../../src/http/client/index.js'
import { constantDelay, hedging, ratioBudget, readOnly, retryPolicy, tokenBudget } from '../../../src/retry/index.js'
import { answers, serversOfTest } from '../sockets.js'
import { Flaky, failing, settle, setup } from '../virtual-policy.js'

const server = serversOfTest()

/** How many repeats a budget allows in a row, from new, while nothing succeeds; asked ten times a second. */
function repeatsWhileDown(budget: ReturnType<typeof tokenBudget>, forMs: number): number {
  let repeats = 0
  for (let nowMs = 0; nowMs < forMs; nowMs += 100) {
    budget.failed(nowMs)
    if (budget.tryRepeat(nowMs)) repeats += 1
  }
  return repeats
}

describe('how much is counted', () => {
  it('grpc-js 1.14.7: a tokenRatio of 0.5466 counts as 0.546, and not as 0.547', () => {
    const budget = tokenBudget({ maxTokens: 10, tokenRatio: 0.5466 })
    budget.failed(0)
    budget.succeeded(0)
    expect(budget.level(0)).toBe(9.546)
    expect(budget.data).toMatchObject({ tokenRatio: 0.546 })
  })

  it('tower: a ratio of 0.3 is three repeats in ten calls, and not one in three', () => {
    const budget = ratioBudget({ ratio: 0.3, initial: 0, refillPerSecond: 0 })
    for (let call = 0; call < 1_000; call++) budget.succeeded(0)
    let repeats = 0
    while (budget.tryRepeat(0)) {
      budget.succeeded(0, true)
      repeats += 1
    }
    expect(repeats).toBe(300)
  })

  it('cockatiel 4.0.0: three attempts are three calls', async () => {
    const { policy, clock } = setup({ attempts: 3 })
    const { body, calls } = failing(9, () => new Flaky())
    await settle(clock, policy.run(readOnly(), body)).catch(() => {})
    expect(calls).toHaveLength(3)
  })

  it('dotnet/extensions #7686: by default three calls in all', () => {
    expect(retryPolicy({ layer: 'own' }).toJSON().attempts).toBe(3)
  })
})

describe('who has one', () => {
  it('resilience4j #172, Polly #2348: a budget is there without asking, and ends the repeats of a target that is down', async () => {
    const { policy, clock } = setup()
    let calls = 0
    for (let call = 0; call < 100; call++) {
      const { body, calls: made } = failing(9, () => new Flaky())
      await settle(clock, policy.run(readOnly(), body)).catch(() => {})
      calls += made.length
    }
    // Without one it would be 300.
    expect(calls).toBe(103)
  })

  it('aws-sdk-rust #1234: a budget that is not installed is seen in the data', () => {
    expect(retryPolicy({ layer: 'own' }).toJSON().budget).toEqual({ kind: 'token', maxTokens: 10, tokenRatio: 0.1 })
    expect(retryPolicy({ layer: 'own', budget: false }).toJSON()).not.toHaveProperty('budget')
  })

  it('aws-sdk-js-v3 #4754: a budget that is used up stops no repeat to another origin', async () => {
    const [down, up] = [await server(answers(503)), await server([answers(503), answers(200)])]
    const client = httpClient({ policy: { backoff: constantDelay(0) } })
    for (let call = 0; call < 5; call++) await client.fetch(down.origin)
    const before = down.requests.length
    expect((await client.fetch(down.origin)).status).toBe(503)
    expect(down.requests).toHaveLength(before + 1)
    expect((await client.fetch(up.origin)).status).toBe(200)
  })

  it('failsafe-go #139: a budget that is used up refuses the hedge, and not the call', async () => {
    const budget = tokenBudget()
    for (let failure = 0; failure < 10; failure++) budget.failed(0)
    const { policy, clock } = setup({ budget, hedge: hedging({ after: 10 }) })
    let calls = 0
    const body = () => {
      calls += 1
      return new Promise<string>((resolve) => void clock.setTimer(100, () => resolve('done')))
    }
    expect(await settle(clock, policy.run(readOnly(), body))).toBe('done')
    expect(calls).toBe(1)
  })
})

describe('fleets', () => {
  it('AWS 500/14: a new client has four repeats in hand, and not 35', () => {
    expect(repeatsWhileDown(tokenBudget(), 60_000)).toBe(4)
  })

  it('Finagle: a client whose target is down repeats nothing by default beyond its reserve', () => {
    // Ten a second and client would be 600.
    expect(repeatsWhileDown(ratioBudget({ ratio: 0 }), 60_000)).toBe(1)
    // The floor is there for those who ask for it: in every window, 20 s of it here.
    expect(repeatsWhileDown(ratioBudget({ ratio: 0, floorPerSecond: 1, initial: 0, refillPerSecond: 0 }), 20_000)).toBe(
      20,
    )
  })

  it('aws-sdk-go-v2 #3550: a budget that was used up comes back with the first successes', () => {
    const budget = tokenBudget()
    while (budget.tryRepeat(0)) budget.failed(0)
    budget.succeeded(0)
    expect(budget.tryRepeat(0)).toBe(true)
    const quiet = ratioBudget({ initial: 1, refillPerSecond: 0.01 })
    while (quiet.tryRepeat(0)) quiet.failed(0)
    expect(quiet.tryRepeat(99_000)).toBe(false)
    expect(quiet.tryRepeat(100_001)).toBe(true)
  })
})
