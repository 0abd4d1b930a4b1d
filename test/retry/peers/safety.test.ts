// What other libraries repeat although it may have happened, and what they do not repeat although it cannot.

import { createServer, type Server } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { httpClient } from '../../../src/http/client/index.js'
import {
  type Backoff,
  constantDelay,
  decorrelatedJitter,
  equalJitter,
  fullJitter,
  noJitter,
  readOnly,
  UnknownOutcomeError,
} from '../../../src/retry/index.js'
import { seededRandom } from '../../../src/testing/index.js'
import { actsThenResets, answers, refusedPort, serversOfTest } from '../sockets.js'
import { Flaky, settle, setup } from '../virtual-policy.js'

const server = serversOfTest()
const client = () => httpClient({ policy: { backoff: constantDelay(1) } })
const post = { method: 'POST', body: 'charge 4711' }

describe('functions', () => {
  it('cockatiel, p-retry, async-retry, exponential-backoff, Effect.retry: nothing unguarded is repeated after a time-out', async () => {
    const { policy, clock } = setup({ attemptTimeout: 50 })
    const body = vi.fn(() => new Promise<never>(() => {}))
    await expect(settle(clock, policy.once(body))).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(body).toHaveBeenCalledTimes(1)
  })

  it('b2-mcp #341, TemporalStore #196: an outcome that nobody knows has an error of its own', async () => {
    const { policy, clock } = setup()
    const lost = new Flaky('maybe')
    const error = await settle(
      clock,
      policy.once(() => Promise.reject(lost)),
    ).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: lost, attempts: [{ number: 1 }] })
  })
})

describe('requests', () => {
  let late: Server | undefined
  afterEach(() => late?.close())

  it.each([500, 502, 503, 504])(
    'effect 4 HttpClient.retryTransient, octokit plugin-retry: a POST answered %d is not sent again',
    async (status) => {
      const { origin, effects } = await server([answers(status, { acts: true }), answers(200)])
      expect((await client().fetch(origin, post)).status).toBe(status)
      expect(effects).toHaveLength(1)
    },
  )

  it('effect 4 HttpClient.retryTransient, octokit plugin-retry: a POST that was reset is not sent again', async () => {
    const { origin, effects } = await server([actsThenResets, answers(200)])
    await expect(client().fetch(origin, post)).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(effects).toHaveLength(1)
  })

  it('ky #692: a POST whose connection was refused is sent again', async () => {
    const port = await refusedPort()
    let calls = 0
    let arrived = 0
    const opensLate: typeof fetch = async (input, init) => {
      if (++calls === 2) {
        late = createServer((_request, response) => {
          arrived += 1
          response.end()
        })
        await new Promise<void>((resolve) => late?.listen(port, '127.0.0.1', resolve))
      }
      return fetch(input, {
        ...init,
        headers: { ...Object.fromEntries(new Headers(init?.headers)), connection: 'close' },
      })
    }
    const patient = httpClient({ fetch: opensLate, policy: { backoff: constantDelay(1) } })
    expect((await patient.fetch(`http://127.0.0.1:${port}`, post)).status).toBe(200)
    expect([calls, arrived]).toEqual([2, 1])
  })
})

describe('waits', () => {
  it.each<[string, Backoff]>([
    ['none', noJitter({ baseMs: 50, capMs: 2_000 })],
    ['full', fullJitter({ baseMs: 50, capMs: 2_000 })],
    ['equal', equalJitter({ baseMs: 50, capMs: 2_000 })],
    ['decorrelated', decorrelatedJitter({ baseMs: 50, capMs: 2_000 })],
  ])('agenda #1748: no jitter passes the cap (%s)', (_kind, backoff) => {
    const random = seededRandom(4711)
    let previousMs = 0
    for (let failures = 1; failures <= 5_000; failures++) {
      previousMs = backoff.delayMs(((failures - 1) % 20) + 1, previousMs, random)
      expect(previousMs).toBeLessThanOrEqual(2_000)
      expect(previousMs).toBeGreaterThanOrEqual(0)
    }
  })

  it('axios-retry 4.5: by default there is a wait, and it differs', async () => {
    const waits = new Set<number>()
    const { backoff: data } = setup({ backoff: fullJitter() }).policy.toJSON()
    expect(data).toEqual({ kind: 'full', baseMs: 50, capMs: 2_000 })
    const random = seededRandom(1)
    for (let draw = 0; draw < 100; draw++) waits.add(fullJitter().delayMs(3, 0, random))
    expect(waits.size).toBe(100)
  })
})

describe('guards', () => {
  it('MongoDB: a later harmless failure does not hide that the first may have happened', async () => {
    const { policy, clock } = setup({ attempts: 2 })
    const failures = [new Flaky('maybe'), new Flaky('no')]
    const thrown = [...failures]
    const error = await settle(
      clock,
      policy.run(readOnly(), () => Promise.reject(thrown.shift())),
    ).catch((e: unknown) => e)
    expect(error).toBe(failures[0])
  })
})
