// On real sockets: aborts, time-outs, budgets and breakers. Effects are counted at the server.

import { describe, expect, it } from 'vitest'
import { impatientClient as client, passUntil } from '../../../test/http/impatient-client.js'
import { actsThenIsSilent, actsThenResets, answers, serversOfTest } from '../../../test/retry/sockets.js'
import {
  type AttemptRecord,
  concurrency,
  consecutiveBreaker,
  constantDelay,
  tokenBudget,
  UnknownOutcomeError,
} from '../../retry/index.js'
import { manualClock } from '../../testing/index.js'
import { httpClient } from './client.js'

const server = serversOfTest()
const post = { method: 'POST', body: 'charge 4711' }

describe('aborts, deadlines, time-outs', () => {
  it('rejects with the reason, as fetch does, and makes no further attempt', async () => {
    const { origin, requests } = await server(actsThenIsSilent)
    const reason = new Error('mine')
    const controller = new AbortController()
    const sent = client().fetch(origin, { signal: controller.signal })
    await expect.poll(() => requests.length).toBe(1)
    controller.abort(reason)
    await expect(sent).rejects.toBe(reason)
    await expect(client().fetch(origin, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(requests).toHaveLength(1)
  })

  it('an abort after the answer ends the body', async () => {
    const { origin } = await server(
      answers(200, { body: 'x'.repeat(100), breaksOff: { afterBytes: 5, by: 'silence' } }),
    )
    const controller = new AbortController()
    const response = await client().fetch(new Request(origin, { signal: controller.signal }))
    const text = response.text()
    controller.abort()
    await expect(text).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('a server that answers too late is asked again, under a guard', async () => {
    const { origin, effects } = await server([actsThenIsSilent, answers(200)])
    const clock = manualClock()
    const sent = client({ policy: { attemptTimeout: '1h', clock } }).fetch(origin, { method: 'PUT', body: 'x' })
    await expect.poll(() => effects.length).toBe(1)
    await clock.advance('1h')
    await passUntil(clock, () => effects.length === 2)
    expect((await sent).status).toBe(200)
    expect(effects).toHaveLength(2)
  })

  it('an answer that comes after its attempt ended is let go, also where fetch did not hear of the end', async () => {
    const { origin, requests } = await server([answers(200, { body: 'late', lateMs: 1_500 }), answers(200)])
    const given: Response[] = []
    const deaf: typeof fetch = async (input, init) => {
      const response = await fetch(input, { ...init, signal: null })
      given.push(response)
      return response
    }
    const clock = manualClock()
    const sent = client({ fetch: deaf, policy: { attemptTimeout: '1h', clock } }).fetch(origin)
    await expect.poll(() => requests.length).toBe(1)
    await clock.advance('1h')
    await passUntil(clock, () => requests.length === 2)
    const response = await sent
    await expect.poll(() => given).toHaveLength(2)
    await expect.poll(() => given.find((each) => each !== response)?.bodyUsed).toBe(true)
    expect(response.bodyUsed).toBe(false)
    expect(requests).toHaveLength(2)
  })

  it('fetch is called as a function, which browsers insist on', async () => {
    const { origin } = await server(answers(200))
    let self: unknown = 'never called'
    async function strict(this: unknown, ...args: Parameters<typeof fetch>) {
      self = this
      return fetch(...args)
    }
    await client({ fetch: strict }).fetch(origin)
    expect(self).toBeUndefined()
  })

  it('what fetch refuses is refused before anything is counted', async () => {
    const careful = client()
    await expect(careful.fetch('not a url')).rejects.toBeInstanceOf(TypeError)
    await expect(careful.fetch('http://127.0.0.1/', { headers: { 'a b': '1' } })).rejects.toBeInstanceOf(TypeError)
    await expect(careful.fetch('http://127.0.0.1/', { body: 'x' })).rejects.toBeInstanceOf(TypeError)
  })
})

describe('budgets and breakers', () => {
  it('are one per origin, and bounded in number', async () => {
    const made: string[] = []
    const budget = (origin: string) => {
      made.push(origin)
      return tokenBudget({ maxTokens: 2, tokenRatio: 0.1 })
    }
    const [down, up] = [await server(answers(503)), await server([answers(503), answers(200)])]
    const careful = client({ budget, maxOrigins: 2 })
    expect((await careful.fetch(down.origin)).status).toBe(503)
    expect((await careful.fetch(down.origin)).status).toBe(503)
    // Two tokens, of which more than one must be left after a failure: none is ever repeated.
    expect(down.requests).toHaveLength(2)
    expect(made).toEqual([down.origin])
    await careful.fetch(up.origin)
    const third = await server(answers(200))
    await careful.fetch(third.origin)
    await careful.fetch(down.origin)
    // Both have failures to remember, so that the third one shares the budget of the rest.
    expect(made).toEqual([down.origin, up.origin, third.origin])
  })

  it('of many origins that fail are not made anew in turn: what has no place shares one', async () => {
    let calls = 0
    const down: typeof fetch = async () => {
      calls += 1
      return new Response(null, { status: 500 })
    }
    const careful = client({ fetch: down, policy: { backoff: constantDelay(0) } })
    const origins = Array.from({ length: 150 }, (_, index) => `http://origin-${index}.example`)
    for (let round = 0; round < 20; round++) {
      for (const origin of origins) await careful.fetch(origin)
    }
    // 3,000 calls. 100 origins have a budget of their own: five failures and no repeat after the fifth, which are at
    // most four repeats each; the other fifty have one together.
    expect(calls).toBeGreaterThanOrEqual(3_000)
    expect(calls).toBeLessThanOrEqual(3_000 + 101 * 4)
  })

  it('of origins that answer leave for others, and come back as they went', async () => {
    const made: string[] = []
    const budget = (origin: string) => {
      made.push(origin)
      return tokenBudget()
    }
    const up: typeof fetch = async () => new Response(null)
    const careful = client({ fetch: up, budget, maxOrigins: 2, breaker: () => consecutiveBreaker({ failures: 1 }) })
    const [a, b, c] = ['http://a.example', 'http://b.example', 'http://c.example']
    for (const origin of [a, b, c, a]) await careful.fetch(origin)
    expect(made).toEqual([a, b, c, a])
  })

  it('an open breaker keeps its place', async () => {
    const asked: string[] = []
    const down: typeof fetch = async (url) => {
      asked.push(String(url))
      return new Response(null, { status: 500 })
    }
    const breaker = () => consecutiveBreaker({ failures: 1, openFor: '1h' })
    const careful = client({ fetch: down, budget: false, breaker, maxOrigins: 1, policy: { attempts: 1 } })
    await careful.fetch('http://a.example')
    // Without a place there is no breaker: one for many would refuse the sound ones too.
    for (let call = 0; call < 2; call++) await careful.fetch('http://b.example')
    await expect(careful.fetch('http://a.example')).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect(asked).toHaveLength(3)
  })

  it('without a budget 503 is not repeated', async () => {
    const { origin, requests } = await server(answers(503))
    await client({ budget: false }).fetch(origin)
    expect(requests).toHaveLength(1)
  })

  it('an open breaker refuses its own origin only', async () => {
    const breaker = () => consecutiveBreaker({ failures: 2, openFor: '1h' })
    const [down, up] = [await server(answers(500)), await server(answers(200))]
    const careful = client({ breaker, policy: { attempts: 1 } })
    for (let call = 0; call < 2; call++) await careful.fetch(down.origin)
    await expect(careful.fetch(down.origin)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect((await careful.fetch(up.origin)).status).toBe(200)
    expect(down.requests).toHaveLength(2)
  })

  it('a limit is one per origin: what finds no slot is refused unsent, and a busy origin keeps its place', async () => {
    const made: string[] = []
    const limit = (origin: string) => {
      made.push(origin)
      return concurrency({ most: 1 })
    }
    const [slow, well] = [await server(actsThenIsSilent), await server(answers(200))]
    const careful = client({ limit, maxOrigins: 1, policy: { attempts: 1 } })
    const controller = new AbortController()
    const out = careful.fetch(slow.origin, { signal: controller.signal }).catch((error: unknown) => error)
    await expect.poll(() => slow.requests.length).toBe(1)
    await expect(careful.fetch(slow.origin, post)).rejects.toMatchObject({ code: 'CONCURRENCY_LIMITED' })
    // The one limit for the rest, which is free.
    expect((await careful.fetch(well.origin)).status).toBe(200)
    await expect(careful.fetch(slow.origin)).rejects.toMatchObject({ code: 'CONCURRENCY_LIMITED' })
    expect(made).toEqual([slow.origin, well.origin])
    controller.abort('left')
    expect(await out).toBe('left')
    expect(slow.requests).toHaveLength(1)
  })

  it('refuses what makes no sense at once', () => {
    expect(() => httpClient({ policy: { attempts: 0 } })).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
    expect(() => httpClient({ trusts: ['nowhere'] })).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    expect(() => httpClient({ honoursKeys: ['file:///x'] })).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
    )
  })
})

describe('bugs of peers', () => {
  it('dotnet/extensions #6548: a time-out does not make a POST repeatable; the request decides, not the missing answer', async () => {
    const { origin, effects } = await server([actsThenIsSilent, answers(200)])
    const clock = manualClock()
    const sent = client({ policy: { attemptTimeout: '1h', clock } }).fetch(origin, post)
    const failed = expect(sent).rejects.toBeInstanceOf(UnknownOutcomeError)
    await expect.poll(() => effects.length).toBe(1)
    await clock.advance('1h')
    await failed
    expect(effects).toHaveLength(1)
  })

  it('axios-retry #66: a POST is not repeated after ECONNRESET', async () => {
    const { origin, effects } = await server([actsThenResets, answers(200)])
    await expect(client().fetch(origin, post)).rejects.toMatchObject({ cause: { cause: { code: 'ECONNRESET' } } })
    expect(effects).toHaveLength(1)
  })

  it('comfy-python-sdk #79, svix-webhooks #2401: one key and one snapshot of the body for all attempts', async () => {
    const { origin, effects } = await server([actsThenResets, answers(502, { acts: true }), answers(200)])
    const bytes = new TextEncoder().encode('{"amount":100}')
    const sent = client({ honoursKeys: [origin] }).fetch(origin, { method: 'POST', body: bytes })
    bytes.fill(0x20)
    await sent
    expect(effects).toHaveLength(3)
    expect(new Set(effects.map(({ headers, body }) => `${headers['idempotency-key']} ${body}`))).toHaveLength(1)
  })

  it('undici: a Retry-After that is too long is not cut short, the call ends', async () => {
    const { origin, requests } = await server(answers(503, { headers: { 'retry-after': '120' } }))
    const history: AttemptRecord[] = []
    expect((await client().fetch(origin, { history })).status).toBe(503)
    expect(requests).toHaveLength(1)
    expect(history[0]?.verdict.retryAfterMs).toBe(120_000)
  })

  it('openai-node #2580: an abort during the wait settles at once, and no attempt follows', async () => {
    const { origin, requests } = await server(answers(503, { headers: { 'retry-after': '30' } }))
    const controller = new AbortController()
    const sent = client().fetch(origin, { signal: controller.signal })
    await expect.poll(() => requests.length).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const began = performance.now()
    controller.abort()
    await expect(sent).rejects.toMatchObject({ name: 'AbortError' })
    // The wait that was asked for is 30 s.
    expect(performance.now() - began).toBeLessThan(20_000)
    expect(requests).toHaveLength(1)
  })
})
