// On real sockets: answers that ask for a wait, and bodies that break off.

import { describe, expect, it } from 'vitest'
import { impatientClient as client } from '../../../test/http/impatient-client.js'
import { retryAfterReadMs, retryAfterShapes } from '../../../test/retry/retry-after.js'
import { answers, refusedPort, type Step, serversOfTest } from '../../../test/retry/sockets.js'
import { mintKey } from '../../identity/index.js'
import {
  type AttemptRecord,
  forCodes,
  historyOf,
  keyed,
  permanent,
  transient,
  UnknownOutcomeError,
} from '../../retry/index.js'
import { manualClock } from '../../testing/index.js'

const server = serversOfTest()
const post = { method: 'POST', body: 'charge 4711' }

describe('answers that ask for a wait', () => {
  it('wait as long as they say, and not at all when they make no sense', async () => {
    for (const [headers, leastMs, mostMs] of [
      [{ 'retry-after-ms': '80' }, 75, 30_000],
      [{ 'retry-after': 'soon' }, 0, 30_000],
      [{ 'retry-after': '-5' }, 0, 30_000],
    ] as const) {
      const { origin } = await server([answers(503, { headers }), answers(200)])
      const began = performance.now()
      expect((await client().fetch(origin)).status).toBe(200)
      const tookMs = performance.now() - began
      expect(tookMs).toBeGreaterThanOrEqual(leastMs)
      expect(tookMs).toBeLessThan(mostMs)
    }
  })

  // Each shape as it comes over the wire; undefined: ignored, so that the policy's own backoff counts.
  it.each(retryAfterShapes)('Retry-After: %j is read as %j', async (value, expected) => {
    const { origin } = await server(answers(503, { headers: { 'retry-after': value } }))
    const history: AttemptRecord[] = []
    const clock = manualClock({ wallMs: retryAfterReadMs })
    await client({ policy: { attempts: 1, clock } }).fetch(origin, { history })
    expect(history[0]?.verdict.retryAfterMs).toBe(expected)
  })

  it.each(['61', '99999999999999999999', 'Fri, 31 Dec 2099 23:59:59 GMT'])(
    'Retry-After: %s is a stop',
    async (value) => {
      const { origin, requests } = await server([
        answers(503, { headers: { 'retry-after': value }, body: 'busy' }),
        answers(200),
      ])
      const response = await client().fetch(origin)
      expect(response.status).toBe(503)
      expect(await response.text()).toBe('busy')
      expect(requests).toHaveLength(1)
    },
  )

  it.each(['x-should-retry', 'stripe-should-retry'])('%s: false is a stop', async (name) => {
    const { origin, requests } = await server([answers(500, { headers: { [name]: 'false' } }), answers(200)])
    expect((await client().fetch(origin)).status).toBe(500)
    expect(requests).toHaveLength(1)
  })

  it('let go of their bodies: the connection of an endless one is closed', async () => {
    let closed = 0
    const endless: Step = {
      request: (socket) => {
        socket.on('close', () => closed++)
        socket.write('HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n')
      },
    }
    const { origin } = await server([endless, endless, answers(200)])
    await client().fetch(origin)
    await expect.poll(() => closed).toBe(2)
  })

  it('the last one is handed over with its body', async () => {
    const { origin, requests } = await server(answers(500, { body: 'why' }))
    const response = await client().fetch(origin)
    expect(await response.text()).toBe('why')
    expect(requests).toHaveLength(3)
  })
})

describe('an answer that may come after an effect', () => {
  it.each([
    ['429', [answers(429, { body: 'busy' })]],
    ['several', [answers(429), answers(500, { body: 'why' }), answers(429)]],
  ])('keeps its body when it is handed over after %s', async (_name, later) => {
    const { origin } = await server([answers(500, { body: 'why' }), ...later])
    const policy = { attempts: later.length + 1 }
    const response = await client({ policy }).fetch(origin, { method: 'PUT', body: 'x' })
    expect(response.status).toBe(500)
    expect(await response.text()).toBe('why')
  })

  it('keeps it after a refused connection', async () => {
    const { origin } = await server(answers(500, { body: 'why' }))
    const port = await refusedPort()
    let calls = 0
    const goesDown: typeof fetch = (_input, init) => fetch(++calls === 1 ? origin : `http://127.0.0.1:${port}`, init)
    const response = await client({ fetch: goesDown }).fetch(origin, { method: 'PUT', body: 'x' })
    expect(calls).toBe(3)
    expect(await response.text()).toBe('why')
  })

  it('lets go of it once a later one takes its place, or the call ends otherwise', async () => {
    const given: Response[] = []
    const script = [500, 502, 429, 200]
    const scripted: typeof fetch = async () => {
      const response = new Response('why', { status: script[given.length] ?? 200 })
      given.push(response)
      return response
    }
    const seen: boolean[][] = []
    const watching: typeof fetch = (...args) => {
      seen.push(given.map(({ bodyUsed }) => bodyUsed))
      return scripted(...args)
    }
    const answer = await client({ fetch: watching, policy: { attempts: 4 } }).fetch('http://127.0.0.1/', {
      method: 'PUT',
    })
    expect(seen).toEqual([[], [false], [true, false], [true, false, true]])
    expect(given.map(({ bodyUsed }) => bodyUsed)).toEqual([true, true, true, false])
    expect(await answer.text()).toBe('why')
  })
})

describe('read', () => {
  it.each([204, 205])('a %d has no JSON, and no failure', async (status) => {
    const { origin, effects } = await server(answers(status))
    expect(await client().read(origin, 'json', post)).toMatchObject({ ok: true, value: undefined })
    expect(await client().read(origin, 'text', post)).toMatchObject({ ok: true, value: '' })
    expect(effects).toHaveLength(2)
  })

  const body = JSON.stringify({ paid: true, filler: 'x'.repeat(100) })

  it.each(['reset', 'end'] as const)('a body that breaks off after a 2xx (%s) is a failed attempt', async (by) => {
    const { origin, effects } = await server([
      answers(200, { body, breaksOff: { afterBytes: 10, by } }),
      answers(200, { body }),
    ])
    expect(await client().read(origin, 'json')).toMatchObject({ ok: true, value: { paid: true } })
    expect(effects).toHaveLength(2)
  })

  it('and may have happened: an unguarded POST is not repeated', async () => {
    const broken = answers(201, { body, breaksOff: { afterBytes: 10, by: 'reset' } })
    const { origin, effects } = await server([broken, answers(200, { body })])
    await expect(client().read(origin, 'json', post)).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(effects).toHaveLength(1)
  })

  it('even when the reader failed before it sent anything itself', async () => {
    const { origin, effects } = await server(answers(201))
    const port = await refusedPort()
    const refused = client().read(origin, () => fetch(`http://127.0.0.1:${port}`), post)
    await expect(refused).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(effects).toHaveLength(1)
  })

  it('a body that is not JSON is permanent, and its text is in no message', async () => {
    const { origin, requests } = await server(answers(200, { body: 'top secret' }))
    const error = await client()
      .read(origin, 'json')
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'BODY_MALFORMED' })
    expect(`${(error as Error).stack}${(error as Error).cause}`).not.toContain('secret')
    expect(requests).toHaveLength(1)
  })

  const failureOf = (promise: Promise<unknown>) => promise.catch((reason: unknown) => reason)

  // The server said that it acted: that is no unknown outcome, and no reason to ask again.
  describe('a success that cannot be understood is thrown as it is, and not repeated', () => {
    it.each(['unguarded', 'keyed'])('a POST answered by something that is not JSON (%s)', async (name) => {
      const { origin, effects } = await server(answers(201, { body: 'top secret' }))
      const history: AttemptRecord[] = []
      const guard = name === 'keyed' ? { guard: keyed(mintKey()) } : {}
      const error = await failureOf(client().read(origin, 'json', { ...post, ...guard, history }))
      expect(error).toMatchObject({ code: 'BODY_MALFORMED', details: { status: 201, bytes: 10 } })
      expect((error as Error).message).toContain('answered 201')
      expect(history.map(({ verdict }) => verdict)).toEqual([permanent('http-body', 'maybe')])
      expect(historyOf(error)).toEqual({ attempts: history, stop: 'permanent' })
      expect(effects).toHaveLength(1)
    })

    it('a POST answered by more than the limit', async () => {
      const { origin, effects } = await server(answers(200, { body: 'x'.repeat(100) }))
      const error = await failureOf(client({ maxReadBytes: 99 }).read(origin, 'json', post))
      expect(error).toMatchObject({ code: 'BODY_TOO_LARGE', details: { status: 200, maxBytes: 99 } })
      expect(historyOf(error)).toMatchObject({ stop: 'permanent', attempts: [{ verdict: { why: 'http-body' } }] })
      expect(effects).toHaveLength(1)
    })

    it('a reader of the caller’s own: a SyntaxError, or what the classifier calls permanent', async () => {
      const { origin, effects } = await server(answers(200, { body: '<html>' }))
      expect(await failureOf(client().read(origin, (response) => response.json(), post))).toBeInstanceOf(SyntaxError)
      const odd = Object.assign(new Error('odd'), { code: 'ODD' })
      const reader = () => Promise.reject(odd)
      const classify = forCodes({ ODD: permanent('odd') })
      expect(await failureOf(client({ policy: { classify } }).read(origin, reader, post))).toBe(odd)
      expect(effects).toHaveLength(2)
    })

    it('but one that nobody knows, or that a repeat may cure, leaves the outcome unknown', async () => {
      const { origin, effects } = await server(answers(200))
      const odd = Object.assign(new Error('odd'), { code: 'ODD' })
      const reader = () => Promise.reject(odd)
      const classify = forCodes({ ODD: transient('odd', 'no') })
      expect(await failureOf(client().read(origin, reader, post))).toMatchObject({
        code: 'UNKNOWN_OUTCOME',
        cause: odd,
      })
      const judged = client({ policy: { classify } }).read(origin, reader, post)
      expect(await failureOf(judged)).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: odd })
      expect(effects).toHaveLength(2)
    })

    it('and so does a body that is cut, whatever the classifier says of it', async () => {
      const cut = answers(200, { body, breaksOff: { afterBytes: 10, by: 'reset' } })
      const { origin, effects } = await server([cut, answers(200, { body })])
      const classify = () => permanent('all')
      const error = await failureOf(client({ policy: { classify } }).read(origin, 'json', post))
      expect(error).toBeInstanceOf(UnknownOutcomeError)
      expect(effects).toHaveLength(1)
    })
  })

  it('has a limit', async () => {
    const { origin } = await server(answers(200, { body: 'x'.repeat(1_001) }))
    expect(await client({ maxReadBytes: 1_001 }).read(origin, 'text')).toMatchObject({ value: 'x'.repeat(1_001) })
    await expect(client({ maxReadBytes: 1_000 }).read(origin, 'bytes')).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
    })
  })

  it('leaves an answer that is no success to the caller', async () => {
    const { origin } = await server(answers(404, { body: 'nobody' }))
    const answer = await client().read(origin, 'json')
    expect(answer.ok).toBe(false)
    expect(await answer.response.text()).toBe('nobody')
  })
})
