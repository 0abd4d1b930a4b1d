// On real sockets: what guards a request, and which key it carries. Effects are counted at the server.

import { describe, expect, it } from 'vitest'
import { impatientClient as client, passUntil } from '../../../test/http/impatient-client.js'
import {
  actsThenEnds,
  actsThenResets,
  answers,
  answersWith,
  type MisbehavingServer,
  refusedPort,
  serversOfTest,
} from '../../../test/retry/sockets.js'
import { mintKey, parseKey, withIntent } from '../../identity/index.js'
import { type AttemptRecord, keyed, repeatable, UnknownOutcomeError } from '../../retry/index.js'
import { manualClock } from '../../testing/index.js'

const server = serversOfTest()
const post = { method: 'POST', body: 'charge 4711' }

describe('what guards a request', () => {
  it.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'QUERY'])('%s is repeated after a reset', async (method) => {
    const { origin, effects } = await server([actsThenResets, answers(200)])
    expect((await client().fetch(origin, { method })).status).toBe(200)
    expect(effects).toHaveLength(2)
  })

  it.each(['POST', 'PATCH', 'patch', 'LINK'])('%s is not, and the outcome is unknown', async (method) => {
    const { origin, effects } = await server([actsThenResets, answers(200)])
    const error = await client()
      .fetch(origin, { method })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(UnknownOutcomeError)
    expect((error as Error).cause).toBeInstanceOf(TypeError)
    expect(effects).toHaveLength(1)
  })

  it.each([
    ['PATCH', 'if-match', '"v1"', 2],
    ['PATCH', 'if-none-match', '*', 2],
    // Neither becomes false by our own success, so neither guards anything.
    ['PATCH', 'if-match', '*', 1],
    ['PATCH', 'if-none-match', '"v1"', 1],
    // What POST makes need not change the tag of the resource it is sent to.
    ['POST', 'if-match', '"v1"', 1],
    ['POST', 'if-none-match', '*', 1],
  ])('%s with %s: %s arrives %d time(s)', async (method, name, value, times) => {
    const { origin, effects } = await server([actsThenEnds, answers(200)])
    await client()
      .fetch(origin, { ...post, method, headers: { [name]: value } })
      .catch(() => {})
    expect(effects).toHaveLength(times)
  })

  it('POST is repeated with the same key and body where the origin honours keys', async () => {
    const { origin, effects } = await server([actsThenResets, actsThenEnds, answers(201)])
    const response = await client({ honoursKeys: [`${origin}/any/path`] }).fetch(`${origin}/charges`, post)
    expect(response.status).toBe(201)
    expect(effects).toHaveLength(3)
    const [key, ...others] = effects.map(({ headers }) => headers['idempotency-key'])
    expect(key).toMatch(/^"[0-9a-f-]{36}"$/)
    expect(others).toEqual([key, key])
    expect(new Set(effects.map(({ body }) => body))).toEqual(new Set(['charge 4711']))
  })

  it('a key alone is no guard towards an origin that nobody declared', async () => {
    const { origin, effects } = await server([actsThenResets, answers(200)])
    await expect(client().fetch(origin, { ...post, key: 'order-4711' })).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(effects).toHaveLength(1)
    expect(effects[0]?.headers['idempotency-key']).toBe('"order-4711"')
  })

  it('a guard of the caller’s own', async () => {
    const { origin, effects } = await server([actsThenResets, answers(200)])
    await client().fetch(origin, { ...post, guard: repeatable('sets the status to paid') })
    expect(effects).toHaveLength(2)
  })

  it('an unguarded POST is repeated only where nothing can have happened', async () => {
    const port = await refusedPort()
    const { fetch } = globalThis
    let calls = 0
    let late: MisbehavingServer | undefined
    const startsLate: typeof globalThis.fetch = async (input, init) => {
      if (++calls === 2) late = await server(answers(200), port)
      return fetch(input, init)
    }
    const history: AttemptRecord[] = []
    const response = await client({ fetch: startsLate }).fetch(`http://127.0.0.1:${port}`, { ...post, history })
    expect(response.status).toBe(200)
    expect(history.map(({ verdict }) => verdict)).toMatchObject([{ happened: 'no', why: 'ECONNREFUSED' }])
    expect(late?.effects).toHaveLength(1)
  })

  it.each([
    [421, 2],
    [425, 2],
    [429, 2],
    [503, 1],
    [408, 1],
    [500, 1],
    [502, 1],
    [409, 1],
  ])('an unguarded POST answered %d arrives %d time(s)', async (status, times) => {
    const { origin, requests } = await server([answers(status), answers(200)])
    const response = await client().fetch(origin, post)
    expect(response.status).toBe(times === 2 ? 200 : status)
    expect(requests).toHaveLength(times)
  })

  it('an origin that refuses before processing may be asked again after 503', async () => {
    const { origin, requests } = await server([answers(503), answers(200)])
    const response = await client({ refusesBeforeProcessing: [origin] }).fetch(origin, post)
    expect(response.status).toBe(200)
    expect(requests).toHaveLength(2)
  })

  it('a trusted server’s retryable problem was refused before the handler, anybody else’s says nothing', async () => {
    const body = JSON.stringify({ type: 'https://reprise.example/in-flight', status: 409, retryable: true })
    const problem = answers(409, { body, headers: { 'content-type': 'application/problem+json; charset=utf-8' } })
    const trusted = await server([problem, answers(200)])
    expect((await client({ trusts: [trusted.origin] }).fetch(trusted.origin, post)).status).toBe(200)
    const stranger = await server([problem, answers(200)])
    const response = await client().fetch(stranger.origin, post)
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({ retryable: true })
  })
})

describe('the members of a Request', () => {
  const members = (request: Request) => {
    const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy } = request
    return { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy }
  }
  const url = 'http://127.0.0.1/page'
  const given = {
    cache: 'no-store',
    credentials: 'omit',
    integrity: 'sha256-x',
    keepalive: true,
    mode: 'same-origin',
    redirect: 'error',
    referrer: 'http://127.0.0.1/from',
    referrerPolicy: 'origin',
  }

  // The fetch of Node 24 (undici 7) loses the referrer of a Request even where nothing stands beside it. There, what
  // the Fetch standard says (5.4, the constructor) is expected in its place: only an init that says something takes it
  // away.
  const forgotten = (init: object) => {
    const { referrer, referrerPolicy } = given
    const isForgotten = new Request(new Request(url, given as RequestInit)).referrer !== referrer
    return isForgotten && Object.values(init).every((member) => member === undefined) && { referrer, referrerPolicy }
  }

  it.each([
    ['alone', {}],
    ['beside what is undefined', { headers: undefined as never }],
    ['beside another init', { headers: { 'x-own': '1' } }],
    ['where the init says otherwise', { cache: 'reload', mode: 'cors', referrer: 'http://127.0.0.1/other' }],
  ])('are sent as fetch would send them: %s', async (_name, init) => {
    const seen: Request[] = []
    const watching: typeof fetch = async (input, own) => {
      seen.push(new Request(input, own))
      return new Response('')
    }
    const original = () => new Request(url, given as RequestInit)
    await client({ fetch: watching }).fetch(original(), { ...(init as RequestInit), history: [] })
    expect(seen.map(members)).toEqual([
      { ...members(new Request(original(), init as RequestInit)), ...forgotten(init) },
    ])
    expect(seen[0]?.credentials).toBe('omit')
  })

  it('reach the server', async () => {
    const { origin, requests } = await server(answers(200))
    const init = { cache: 'no-store', referrer: `${origin}/from`, referrerPolicy: 'unsafe-url', mode: 'same-origin' }
    await client().fetch(new Request(origin, init as RequestInit))
    expect(requests[0]?.headers).toMatchObject({
      'cache-control': 'no-cache',
      referer: `${origin}/from`,
      'sec-fetch-mode': 'same-origin',
    })
  })

  it('of a page’s navigation make it a plain request, since an init may not say otherwise', async () => {
    const modes: unknown[] = []
    const watching: typeof fetch = async (_input, own) => {
      modes.push(own?.mode)
      return new Response('')
    }
    const navigation = Object.defineProperty(new Request(url), 'mode', { value: 'navigate' })
    await client({ fetch: watching }).fetch(navigation)
    expect(modes).toEqual(['same-origin'])
  })
})

describe('409 where keys are honoured', () => {
  it('may mean that the lost attempt is still being carried out, and is not the answer', async () => {
    const { origin, requests } = await server([actsThenResets, answers(409), answers(201)])
    const history: AttemptRecord[] = []
    const response = await client({ honoursKeys: [origin] }).fetch(origin, { ...post, history })
    expect(response.status).toBe(201)
    expect(requests).toHaveLength(3)
    expect(history[1]?.verdict).toMatchObject({ help: 'transient', happened: 'no', why: 'http-409' })
  })

  it('is not handed over when the attempts run out either; the loss is', async () => {
    const { origin, requests } = await server([actsThenResets, answers(409)])
    const lost = client().fetch(origin, { ...post, guard: keyed(mintKey()) })
    await expect(lost).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(requests).toHaveLength(3)
  })

  it('follows an attempt that ran out of time', async () => {
    // By requests: after an abort fetch may open a connection that it does not use.
    let count = 0
    const { origin } = await server(
      answersWith(() => [{ status: 201, lateMs: 5_000 }, { status: 409 }][count++] ?? { status: 201 }),
    )
    const clock = manualClock()
    const sent = client({ honoursKeys: [origin], policy: { attemptTimeout: '1h', clock } }).fetch(origin, post)
    await expect.poll(() => count).toBe(1)
    await clock.advance('1h')
    await passUntil(clock, () => count === 3)
    expect((await sent).status).toBe(201)
    expect(count).toBe(3)
  })

  it.each([[[answers(409)]], [[answers(429), answers(409)]]])(
    'is the answer where nothing can be in flight',
    async (script) => {
      const { origin, requests } = await server(script)
      expect((await client({ honoursKeys: [origin] }).fetch(origin, post)).status).toBe(409)
      expect(requests).toHaveLength(script.length)
    },
  )
})

describe('keys', () => {
  it('of a guard are sent, and no other beside them', async () => {
    const { origin, requests } = await server([actsThenResets, answers(200)])
    const guard = keyed(parseKey('order-4711'))
    await client().fetch(origin, { ...post, guard })
    const same = { key: 'order-4711', headers: { 'idempotency-key': '"order-4711"' } }
    await client().fetch(origin, { ...post, guard, ...same })
    expect(requests.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(3).fill('"order-4711"'))
    for (const other of [{ key: 'b' }, { step: 'charge' }, { headers: { 'idempotency-key': '"b"' } }]) {
      const sent = withIntent({ key: mintKey() }, () => client().fetch(origin, { ...post, guard, ...other }))
      await expect(sent).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    }
    expect(requests).toHaveLength(3)
  })

  it('are sent with unsafe methods only', async () => {
    const { origin, requests } = await server(answers(200))
    const methods = ['GET', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE']
    for (const method of methods) await client().fetch(origin, { method })
    expect(requests.map(({ headers }) => 'idempotency-key' in headers)).toEqual([false, false, true, true, true, true])
    expect(new Set(requests.map(({ headers }) => headers['idempotency-key']))).toHaveLength(5)
  })

  it('come from the caller, the header, or the current intent', async () => {
    const { origin, requests } = await server(answers(200))
    await client().fetch(origin, { ...post, key: 'given' })
    await client().fetch(origin, { ...post, headers: { 'idempotency-key': 'bare' } })
    const key = mintKey()
    for (const step of ['charge', 'charge', 'mail']) {
      await withIntent({ key }, () => client().fetch(origin, { ...post, step }))
    }
    const [given, bare, first, again, other] = requests.map(({ headers }) => headers['idempotency-key'])
    expect([given, bare]).toEqual(['"given"', '"bare"'])
    expect(again).toBe(first)
    expect(new Set([first, other, `"${key}"`])).toHaveLength(3)
    await expect(client().fetch(origin, { ...post, key: '' })).rejects.toMatchObject({ code: 'KEY_EMPTY' })
    await expect(client().fetch(origin, { ...post, step: 'charge' })).rejects.toMatchObject({ code: 'INTENT_MISSING' })
    expect(requests).toHaveLength(5)
  })
})
