import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { constantDelay } from '../backoff.js'
import { readOnly, repeatable } from '../guard.js'
import { historyOf } from '../history.js'
import { type Classifier, defaultClassifier, failedBecause, permanent, transient } from '../index.js'
import type { RetryPolicyOptions } from '../options.js'
import { retryPolicy } from '../policy.js'
import { consecutiveBreaker } from '../target/breaker.js'
import { hedging } from './hedge.js'
import { failureIn, letGoOf } from './returned.js'

const policyOf = (options: RetryPolicyOptions = {}) => retryPolicy({ backoff: constantDelay(1), ...options })

describe('a Response that is not ok', () => {
  let server: Server
  let origin = ''
  let statuses: number[] = []
  let arrived = 0
  let open = new Set<object>()
  // A body that never ends by itself: its connection is free again only when somebody lets go of it.
  beforeEach(async () => {
    arrived = 0
    const out = new Set<object>()
    open = out
    server = createServer((_request, response) => {
      const status = statuses[Math.min(arrived, statuses.length - 1)] as number
      arrived += 1
      out.add(response)
      response.writeHead(status).on('close', () => out.delete(response))
      if (status < 400) response.end('fine')
      else response.write('some of it')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })
  /** The answers that are still open, once there are no more than expected. */
  const openWithin = async (expected: number) => {
    for (let turn = 0; open.size > expected && turn < 500; turn += 1)
      await new Promise((resolve) => setTimeout(resolve, 10))
    return open.size
  }

  it('counts as an attempt with its status, and a later success is the result', async () => {
    statuses = [503, 500, 200]
    const response = await policyOf().run(readOnly(), () => fetch(origin))
    expect([response.status, await response.text(), arrived]).toEqual([200, 'fine', 3])
    expect(await openWithin(0)).toBe(0)
  })

  it('is returned as it is where it is the last one, and the bodies of the others are cancelled', async () => {
    statuses = [503, 502, 500]
    const history: { verdict: { why: string } }[] = []
    const response = await policyOf().run(readOnly(), () => fetch(origin), { history: history as never })
    expect([response.status, arrived, await openWithin(1)]).toEqual([500, 3, 1])
    const { value } = (await response.body?.getReader().read()) ?? {}
    expect(new TextDecoder().decode(value)).toBe('some of it')
    expect(history.map(({ verdict }) => verdict.why)).toEqual(['http-503', 'http-502', 'http-500'])
  })

  it('is not repeated where that would not help, nor unguarded where it may have happened', async () => {
    statuses = [404]
    expect((await policyOf().run(readOnly(), () => fetch(origin))).status).toBe(404)
    statuses = [500]
    expect((await policyOf().once(() => fetch(origin))).status).toBe(500)
    expect(arrived).toBe(2)
  })

  it('is the latest that may have had an effect, where a later one had none', async () => {
    statuses = [500, 429, 429]
    const response = await policyOf().run(repeatable('sets the same state'), () => fetch(origin, { method: 'POST' }))
    expect([response.status, arrived]).toEqual([500, 3])
    const { value } = (await response.body?.getReader().read()) ?? {}
    expect(new TextDecoder().decode(value)).toBe('some of it')
  })

  it('counts against the breaker and asks the caller’s own classifier', async () => {
    statuses = [503]
    const breaker = consecutiveBreaker({ failures: 2 })
    const classify: Classifier = (failed) => ((failed as Response).status === 503 ? permanent('mine') : undefined)
    await policyOf({ breaker, classify }).run(readOnly(), () => fetch(origin))
    expect([arrived, breaker.state(0)]).toEqual([1, 'closed'])
    await policyOf({ breaker, attempts: 2 }).run(readOnly(), () => fetch(origin))
    expect(breaker.state(0)).toBe('open')
  })

  it('gives its body back when the call ends otherwise: an error, an abort, a hedge that won', async () => {
    statuses = [500]
    const failing = policyOf({ attempts: 2 }).run(readOnly(), ({ number }) => {
      if (number === 1) return fetch(origin)
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    })
    const error = await failing.catch((reason: unknown) => reason)
    expect(historyOf(error)?.attempts).toHaveLength(2)
    expect(await openWithin(0)).toBe(0)

    const controller = new AbortController()
    const left = policyOf({ backoff: constantDelay(60_000) }).run(readOnly(), () => fetch(origin), {
      signal: controller.signal,
    })
    setTimeout(() => controller.abort(), 200)
    await expect(left).rejects.toMatchObject({ name: 'AbortError' })
    expect(await openWithin(0)).toBe(0)

    statuses = [200]
    const hedged = policyOf({ hedge: hedging({ after: 1 }) })
    const won = await hedged.run(readOnly(), ({ number }) => (number === 1 ? fetch(`${origin}/`) : fetch(origin)))
    expect(await won.text()).toBe('fine')
    expect(await openWithin(0)).toBe(0)
  })
})

describe('failureIn', () => {
  it('leaves everything else alone', () => {
    const values = [
      new Response('x'),
      new Response(null, { status: 304 }),
      Response.error(),
      { ok: false, status: 503 },
    ]
    for (const value of values) expect(failureIn(value, defaultClassifier)).toBeUndefined()
    expect(failureIn(failedBecause(transient('busy', 'no'), 7), defaultClassifier)).toMatchObject({ value: 7 })
  })

  it('is let go of only where nobody reads it', async () => {
    const read = new Response('x', { status: 500 })
    const reader = read.body?.getReader()
    letGoOf(read)
    expect(await reader?.read()).toMatchObject({ done: false })
    letGoOf(undefined)
    letGoOf({ body: 1 })
  })
})

describe('an error that says nothing', () => {
  const said: { message: string; code?: string }[] = []
  const listen = (warning: Error) => void said.push(warning as never)
  const run = async (policy: RetryPolicyOptions, error: unknown) => {
    said.length = 0
    vi.resetModules()
    const retry = await import('../index.js')
    process.on('warning', listen)
    const call = () =>
      retry.retryPolicy({ name: 'orders', ...policy }).run(retry.readOnly(), () => Promise.reject(error))
    await expect(call()).rejects.toBe(error)
    await expect(call()).rejects.toBe(error)
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', listen)
    return said.filter(({ code }) => code === 'ERROR_UNCLASSIFIED').map(({ message }) => message)
  }

  it('is named once, with the fix, where it ended a call that had attempts left', async () => {
    const messages = await run({}, new Error('HTTP 503'))
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatch(/policy orders .* return the Response .* status: response\.status/)
  })

  it('is no matter where there was nothing left to try, or where it says what failed', async () => {
    expect(await run({ attempts: 1 }, new Error('HTTP 503'))).toEqual([])
    expect(await run({ budget: false }, Object.assign(new Error('HTTP 404'), { status: 404 }))).toEqual([])
    expect(await run({}, new TypeError('a mistake of one’s own'))).toEqual([])
    expect(await run({ classify: () => permanent('mine') }, new Error('mine'))).toEqual([])
  })
})
