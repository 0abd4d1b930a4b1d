// On real sockets: every attempt sends the same bytes, and what can be sent only once is.

import { describe, expect, it } from 'vitest'
import { actsThenEnds, actsThenIsSilent, actsThenResets, answers, serversOfTest } from '../../../test/retry/sockets.js'
import { withIntent } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { constantDelay } from '../../retry/index.js'
import { manualClock } from '../../testing/index.js'
import { type HttpClientOptions, httpClient } from './client.js'

const server = serversOfTest()
const client = (options: HttpClientOptions = {}) =>
  httpClient({ ...options, policy: { backoff: constantDelay(1), ...options.policy } })

describe('bodies', () => {
  it('bytes are copied: what the caller writes into them afterwards is not sent', async () => {
    for (const whole of [false, true]) {
      const { origin, requests } = await server([actsThenEnds, answers(200)])
      const bytes = new TextEncoder().encode('a=before')
      const sent = client().fetch(origin, { method: 'PUT', body: whole ? bytes.buffer : bytes })
      bytes.fill(0x78)
      await sent
      expect(requests.map(({ body }) => body)).toEqual(['a=before', 'a=before'])
    }
    const { origin, requests } = await server([actsThenEnds, answers(200)])
    const fields = new URLSearchParams('a=before')
    const sent = client().fetch(origin, { method: 'PUT', body: fields })
    fields.set('a', 'after')
    await sent
    expect(requests.map(({ body }) => body)).toEqual(['a=before', 'a=before'])
  })

  it('a form has one boundary in all attempts', async () => {
    const { origin, requests } = await server([actsThenEnds, answers(200)])
    const form = new FormData()
    form.append('file', new Blob(['contents'], { type: 'text/plain' }), 'a.txt')
    const sent = client().fetch(origin, { method: 'PUT', body: form })
    form.append('late', 'x')
    await sent
    expect(requests).toHaveLength(2)
    expect(requests[0]?.headers['content-type']).toMatch(/^multipart\/form-data; ?boundary=/)
    expect(requests[1]).toMatchObject({ body: requests[0]?.body })
    expect(requests[1]?.headers['content-type']).toBe(requests[0]?.headers['content-type'])
    expect(requests[0]?.body).toContain(requests[0]?.headers['content-type']?.split('boundary=')[1])
    expect(requests[0]?.body).toContain('contents')
    expect(requests[0]?.body).not.toContain('late')
  })

  it.each<[string, () => NonNullable<RequestInit['body']>, string | undefined]>([
    ['a string', () => 'a=1', 'text/plain;charset=UTF-8'],
    ['search parameters', () => new URLSearchParams({ a: '1' }), 'application/x-www-form-urlencoded;charset=UTF-8'],
    ['a Blob', () => new Blob(['a=1'], { type: 'text/x' }), 'text/x'],
    ['an ArrayBuffer', () => new TextEncoder().encode('a=1').buffer, undefined],
    ['a view', () => new DataView(new TextEncoder().encode('xa=1x').buffer, 1, 3), undefined],
  ])('%s is sent again', async (_kind, make, type) => {
    const { origin, requests } = await server([actsThenEnds, answers(200)])
    await client().fetch(origin, { method: 'PUT', body: make() })
    expect(requests.map(({ body }) => body)).toEqual(['a=1', 'a=1'])
    expect(requests[1]?.headers['content-type']).toBe(type)
  })

  it('a stream is sent once, whatever the method and the failure', async () => {
    const stream = () => new Blob(['streamed']).stream() as ReadableStream
    async function* chunks() {
      yield new TextEncoder().encode('streamed')
    }
    for (const make of [stream, chunks]) {
      for (const step of [actsThenResets, answers(503), answers(429)]) {
        const { origin, requests } = await server([step, answers(200)])
        const init = { method: 'PUT', body: make() as ReadableStream, duplex: 'half' as const }
        await client()
          .fetch(origin, init)
          .catch(() => {})
        expect(requests.map(({ body }) => body)).toEqual(['streamed'])
      }
    }
    const { origin, requests } = await server(actsThenIsSilent)
    const clock = manualClock()
    const sent = client({ policy: { attemptTimeout: '1h', clock } }).fetch(origin, { method: 'PUT', body: stream() })
    const failed = expect(sent).rejects.toMatchObject({ code: 'ATTEMPT_TIMEOUT' })
    await expect.poll(() => requests.length).toBe(1)
    await clock.advance('1h')
    await failed
    expect(requests).toHaveLength(1)
  })

  it('the body of a Request is kept up to the limit, and sent once beyond it', async () => {
    const small = await server([actsThenEnds, answers(200)])
    const request = () => new Request(small.origin, { method: 'PUT', body: 'contents', headers: { 'x-own': '1' } })
    await client().fetch(request())
    expect(small.requests).toMatchObject([{ body: 'contents' }, { body: 'contents', headers: { 'x-own': '1' } }])
    const large = await server([actsThenEnds, answers(200)])
    const again = new Request(large.origin, request())
    await client({ maxBodyBytes: 4 })
      .fetch(again)
      .catch(() => {})
    expect(large.requests.map(({ body }) => body)).toEqual(['contents'])
  })

  it('a form beyond the limit is sent once', async () => {
    const { origin, requests } = await server([actsThenEnds, answers(200)])
    const form = new FormData()
    form.append('file', new Blob(['x'.repeat(5_000)]))
    await client({ maxBodyBytes: 1_000 })
      .fetch(origin, { method: 'PUT', body: form })
      .catch(() => {})
    expect(requests).toHaveLength(1)
  })
})

describe('a Request, with an init on top', () => {
  const request = (origin: string) => new Request(origin, { method: 'POST', body: 'x', headers: { 'x-own': '1' } })

  it.each([
    ['undefined members hide nothing', { headers: undefined, method: undefined, signal: undefined, body: undefined }],
    ['a body that is null hides nothing', { body: null }],
  ])('%s, as with fetch', async (_name, init) => {
    const { origin, requests } = await server(answers(200))
    await client().fetch(request(origin), init as RequestInit)
    await fetch(request(origin), init as RequestInit)
    const [ours, theirs] = requests.map(({ method, headers, body }) => [method, headers['x-own'], body])
    expect(ours).toEqual(['POST', '1', 'x'])
    expect(ours).toEqual(theirs)
  })

  it('that has been read, wholly or in part, is refused before anything is sent', async () => {
    const { origin, requests } = await server(answers(200))
    const [whole, part] = [request(origin), request(origin)]
    await client().fetch(whole)
    await expect(client().fetch(whole)).rejects.toBeInstanceOf(TypeError)
    const reader = part.body?.getReader()
    await reader?.read()
    reader?.releaseLock()
    await expect(client().fetch(part)).rejects.toBeInstanceOf(TypeError)
    expect(requests).toHaveLength(1)
  })

  it('whose body does not end is left when the signal aborts', async () => {
    const { origin, connections } = await server(answers(200))
    const controller = new AbortController()
    const reason = new Error('mine')
    let cancelled: unknown
    const body = new ReadableStream({
      cancel: (why) => {
        cancelled = why
      },
    })
    const endless = new Request(origin, { method: 'POST', body, signal: controller.signal, duplex: 'half' } as never)
    const sent = client().fetch(endless)
    setTimeout(() => controller.abort(reason), 20)
    await expect(sent).rejects.toBe(reason)
    expect(cancelled).toBe(reason)
    expect(connections).toBe(0)
    await expect(client().fetch(new Request(origin, { ...endless, signal: AbortSignal.abort(reason) }))).rejects.toBe(
      reason,
    )
  })
})

describe('a body that does not end', () => {
  // The stream hangs after its first part.
  const endless = (origin: string) => {
    const seen: { cancelled?: unknown } = {}
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(3)),
      cancel: (why) => {
        seen.cancelled = why
      },
    })
    return { seen, request: new Request(origin, { method: 'POST', body, duplex: 'half' } as never) }
  }
  const passed = { code: 'DEADLINE_EXCEEDED' }

  it.each([
    ['the call', { init: { deadline: '5s' } }],
    ['the policy', { policy: { deadline: '5s' } }],
    ['the intent around it', { around: 5_000 }],
  ] as const)('is read no longer than the deadline of %s', async (_name, options) => {
    const { origin, connections } = await server(answers(200))
    const clock = manualClock()
    const { init = {}, policy = {}, around } = { init: undefined, policy: undefined, around: undefined, ...options }
    const { seen, request } = endless(origin)
    const send = () => client({ policy: { ...policy, clock } }).fetch(request, init)
    const deadline = around === undefined ? undefined : { expiresAtMs: clock.monotonicMs() + around }
    let error: unknown
    const sent = withIntent(deadline ? { deadline } : {}, send).catch((reason: unknown) => {
      error = reason
    })
    await eventLoopTurn()
    await clock.advance(4_999)
    expect(error).toBeUndefined()
    await clock.advance(1)
    await sent
    expect(error).toMatchObject(passed)
    expect(seen.cancelled).toBe(error)
    expect([connections, clock.pendingTimers]).toEqual([0, 0])
  })

  it('takes its time from the attempts that follow', async () => {
    const { origin } = await server(answers(200, { lateMs: 60_000 }))
    const clock = manualClock()
    let release = (): void => {}
    const body = new ReadableStream({
      start: (controller) => {
        release = () => controller.close()
      },
    })
    const request = new Request(origin, { method: 'POST', body, duplex: 'half' } as never)
    const sent = client({ policy: { deadline: '5s', clock } }).fetch(request)
    const ended = expect(sent).rejects.toMatchObject({ cause: passed })
    await eventLoopTurn()
    await clock.advance(4_000)
    release()
    await expect.poll(() => clock.pendingTimers).toBe(1)
    await clock.advance(1_000)
    await ended
  })
})

describe('bodies that fetch takes and types do not', () => {
  it('a number is sent as text', async () => {
    const { origin, requests } = await server(answers(200))
    await client().fetch(origin, { method: 'POST', body: 5 as never })
    expect(requests[0]?.body).toBe('5')
  })

  it('a form of another package is a form', async () => {
    const { origin, requests } = await server([actsThenEnds, answers(200)])
    const form = { [Symbol.toStringTag]: 'FormData', [Symbol.iterator]: () => [['name', 'value']].values() }
    await client().fetch(origin, { method: 'PUT', body: form as never })
    expect(requests).toHaveLength(2)
    expect(requests[1]?.headers['content-type']).toMatch(/^multipart\/form-data/)
    expect(requests[1]?.body).toContain('value')
  })
})
