// On real sockets: headers for trusted origins, and redirects as fetch follows them.

import { describe, expect, it } from 'vitest'
import { impatientClient as client } from '../../../test/http/impatient-client.js'
import {
  actsThenIsSilent,
  actsThenResets,
  answers,
  answersWith,
  refusedPort,
  type Step,
  serversOfTest,
} from '../../../test/retry/sockets.js'
import { atomic, forCodes, hedging, readOnly, transient, UnknownOutcomeError } from '../../retry/index.js'
import { manualClock } from '../../testing/index.js'

const server = serversOfTest()
const post = { method: 'POST', body: 'charge 4711' }

describe('headers of ours', () => {
  it('go to trusted origins only', async () => {
    const { origin, requests } = await server([answers(503), answers(200)])
    await client({ trusts: [origin] }).fetch(origin, { deadline: '5s' })
    const own = requests.map(({ headers }) => [headers['reprise-attempt'], headers['reprise-retry-owner']])
    expect(own).toEqual([
      ['1', 'caller'],
      ['2', 'caller'],
    ])
    const left = requests.map(({ headers }) => Number(headers['reprise-deadline-ms']))
    expect(left[0]).toBeLessThanOrEqual(5_000)
    expect(left[0]).toBeGreaterThan(4_000)
    expect(left[1]).toBeLessThan(left[0] ?? 0)

    const stranger = await server(answers(200))
    await client({ trusts: [origin] }).fetch(stranger.origin, { deadline: '5s' })
    expect(Object.keys(stranger.requests[0]?.headers ?? {}).filter((name) => name.startsWith('reprise'))).toEqual([])
  })

  it('claim ownership only where this client would repeat', async () => {
    const { origin, requests } = await server(answers(200))
    const trusts = [origin]
    await client({ trusts }).fetch(origin, post)
    await client({ trusts, policy: { attempts: 1 } }).fetch(origin)
    await client({ trusts, honoursKeys: trusts }).fetch(origin, post)
    expect(requests.map(({ headers }) => headers['reprise-retry-owner'])).toEqual([undefined, undefined, 'caller'])
  })

  it('stay behind when a redirect leaves for another origin', async () => {
    const stranger = await server(answers(200))
    const { origin } = await server(answers(302, { headers: { location: stranger.origin } }))
    await client({ trusts: [origin] }).fetch(origin, { headers: { authorization: 'secret', 'x-own': '1' } })
    const [arrived] = stranger.requests
    expect(arrived?.headers).toMatchObject({ 'x-own': '1' })
    expect(arrived?.headers).not.toHaveProperty('authorization')
    expect(arrived?.headers).not.toHaveProperty('reprise-attempt')
  })
})

describe('redirects', () => {
  it.each([
    [301, 'POST', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [303, 'POST', 'GET', ''],
    [303, 'PUT', 'GET', ''],
    [302, 'PUT', 'PUT', 'charge 4711'],
    [307, 'POST', 'POST', 'charge 4711'],
    [308, 'POST', 'POST', 'charge 4711'],
  ])('%d after %s is followed by %s, as fetch does', async (status, method, then, body) => {
    const script = answersWith(({ path }) =>
      path === '/from' ? { status, headers: { location: '/to' } } : { status: 200, body: 'there' },
    )
    const [ours, theirs] = [await server(script), await server(script)]
    const init = { ...post, method }
    const response = await client().fetch(`${ours.origin}/from#part`, init)
    const expected = await fetch(`${theirs.origin}/from#part`, init)
    expect(ours.requests[1]).toMatchObject({ method: then, path: '/to', body })
    for (const [mine, real] of [[ours.requests[1], theirs.requests[1]]] as const) {
      expect(mine?.headers['content-type']).toBe(real?.headers['content-type'])
    }
    expect(response.redirected).toBe(expected.redirected)
    expect(response.url.replace(ours.origin, '')).toBe(expected.url.replace(theirs.origin, ''))
    expect(await response.text()).toBe('there')
  })

  it('a refused connection after a redirect does not prove that nothing happened', async () => {
    const port = await refusedPort()
    const created = answers(303, { headers: { location: `http://127.0.0.1:${port}/orders/1` } })
    const { origin, effects } = await server(created)
    await expect(client().fetch(origin, post)).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(effects).toHaveLength(1)
  })

  it('a key does not guard what a redirect sends to an origin that does not honour keys', async () => {
    for (const step of [actsThenResets, answers(503), actsThenIsSilent]) {
      const elsewhere = await server(step)
      const { origin } = await server(answers(307, { headers: { location: elsewhere.origin }, acts: false }))
      const clock = manualClock()
      const careful = client({ honoursKeys: [origin], policy: { attemptTimeout: '1h', clock } })
      const outcome = careful.fetch(origin, post).then(
        ({ status }) => status,
        (error: unknown) => (error as { code?: string }).code ?? (error as Error).message,
      )
      await expect.poll(() => elsewhere.requests.length).toBe(1)
      // Time-outs share timers, which ring a little late.
      if (step === actsThenIsSilent) await clock.advance('2h')
      expect(await outcome).toBe(
        step === actsThenIsSilent ? 'ATTEMPT_TIMEOUT' : step === actsThenResets ? 'fetch failed' : 503,
      )
      expect(elsewhere.requests).toHaveLength(1)
    }
  })

  it.each([
    ['PUT', {}],
    ['PATCH', { headers: { 'if-match': '"v1"' } }],
    ['POST', { guard: atomic('payments') }],
    ['POST', { guard: readOnly() }],
  ])('no guard travels to another origin: %s %o', async (method, init) => {
    for (const status of [307, 308]) {
      const elsewhere = await server(actsThenResets)
      const { origin } = await server(answers(status, { headers: { location: elsewhere.origin }, acts: false }))
      await expect(client().fetch(origin, { ...post, method, ...init })).rejects.toThrow('fetch failed')
      expect(elsewhere.effects).toHaveLength(1)
    }
    const nearby = await server(
      answersWith(({ path }) => (path === '/' ? { status: 307, headers: { location: '/to' } } : { status: 503 })),
    )
    await client().fetch(nearby.origin, { ...post, method, ...init })
    expect(nearby.requests).toHaveLength(6)
  })

  it('a read may be repeated wherever it leads', async () => {
    const elsewhere = await server([actsThenResets, answers(200)])
    const { origin } = await server(answers(307, { headers: { location: elsewhere.origin } }))
    expect((await client({ trusts: [origin] }).fetch(origin)).status).toBe(200)
  })

  it.each([0, 200])(
    'a hedge does not follow to another origin, and the first answer counts (%d ms)',
    async (lateMs) => {
      const elsewhere = await server(answers(200, { lateMs: 400 }))
      const { origin } = await server(answers(307, { headers: { location: elsewhere.origin }, lateMs }))
      const hedged = client({ policy: { hedge: hedging({ after: 100 }) } })
      expect((await hedged.fetch(origin, { ...post, method: 'PUT' })).status).toBe(200)
      expect(elsewhere.effects).toHaveLength(1)
    },
  )

  it('an error that is thrown again is judged again', async () => {
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    // This fetch sends nothing that could be seen.
    const classify = forCodes({ ECONNREFUSED: transient('ECONNREFUSED', 'no') })
    let calls = 0
    const redirects: typeof fetch = async () => {
      if (++calls === 2) return new Response(null, { status: 307, headers: { location: '/to' } })
      throw refused
    }
    const sent = client({ fetch: redirects, policy: { attempts: 5, classify } }).fetch('http://127.0.0.1/', post)
    await expect(sent).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(calls).toBe(3)
  })

  it('a Location beyond ASCII is read as UTF-8, as fetch does', async () => {
    const location = Buffer.from('/caf\u00e9').toString('latin1')
    const script: Step = {
      request: (socket, { path }) => {
        const head = path === '/' ? `307 On\r\nlocation: ${location}` : '200 Fine'
        socket.end(`HTTP/1.1 ${head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`, 'latin1')
      },
    }
    const { origin, requests } = await server(script)
    await client().fetch(origin, post)
    await fetch(origin, post)
    expect(requests.map(({ path }) => path)).toEqual(['/', '/caf%C3%A9', '/', '/caf%C3%A9'])
  })

  it('credentials in a Location are refused, and are in no message', async () => {
    const { origin } = await server(answers(307, { headers: { location: 'http://user:secret@127.0.0.1/' } }))
    const error = (await client()
      .fetch(origin, { ...post, method: 'PUT' })
      .catch((reason: unknown) => reason)) as Error
    expect(error).toBeInstanceOf(TypeError)
    expect(`${error.stack}`).not.toContain('secret')
  })

  it('preconditions of a write are not those of the read that a redirect puts in its place', async () => {
    const { origin, requests } = await server(
      answersWith(({ path }) => (path === '/' ? { status: 303, headers: { location: '/to' } } : { status: 200 })),
    )
    await client().fetch(origin, { ...post, method: 'PUT', headers: { 'if-match': '"v1"', 'x-own': '1' } })
    const [write, read] = requests
    expect(write?.headers).toMatchObject({ 'if-match': '"v1"' })
    expect(read).toMatchObject({ method: 'GET', headers: { 'x-own': '1' } })
    expect(read?.headers).not.toHaveProperty('if-match')
  })

  it('a redirect that cannot be followed is called so, and may come after an effect', async () => {
    const { origin, requests } = await server(answers(307, { headers: { location: '/to' } }))
    const body = new Blob(['charge 4711']).stream()
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit
    const error = await client()
      .fetch(origin, init)
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: { name: 'TypeError' } })
    expect((error as UnknownOutcomeError).attempts[0]?.verdict.why).toBe('redirect')
    expect(requests).toHaveLength(1)
  })

  it('manual and error mean what they mean to fetch', async () => {
    const { origin } = await server(answers(302, { headers: { location: '/to' } }))
    expect((await client().fetch(origin, { ...post, redirect: 'manual' })).status).toBe(302)
    await expect(client().fetch(origin, { ...post, redirect: 'error' })).rejects.toThrow()
  })

  it('end after twenty, or where they lead out of HTTP', async () => {
    const circle = await server(answers(307, { headers: { location: '/' } }))
    await expect(client().fetch(circle.origin, post)).rejects.toMatchObject({
      cause: { message: 'redirect count exceeded' },
    })
    expect(circle.requests).toHaveLength(21)
    const out = await server(answers(307, { headers: { location: 'file:///etc/passwd' } }))
    await expect(client().fetch(out.origin, post)).rejects.toBeInstanceOf(UnknownOutcomeError)
  })
})
