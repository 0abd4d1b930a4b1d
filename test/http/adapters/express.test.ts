import { AsyncResource } from 'node:async_hooks'
import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import express, { type ErrorRequestHandler, type Response } from 'express'
import { describe, expect, it } from 'vitest'
import { idempotent, keepRawBody, reply } from '../../../src/http/express/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import { listening } from '../subject/listening.js'
import { openWorld } from './world.js'

const { db, post, route, rows, serve } = await openWorld()

describe('on Express', () => {
  it('what the handler throws goes to the error handlers, and is rolled back', async () => {
    const seen: unknown[] = []
    const onError: ErrorRequestHandler = (error, _request, response, _next) => {
      seen.push(error)
      response.status(503).json({ down: true })
    }
    const thrown = new Error('no ledger')
    const app = express()
    app.post(
      '/charges',
      idempotent(db, route(), async ({ tx }) => {
        await tx.insertOnce('charge', { id: '1' }, ['id'])
        throw thrown
      }),
    )
    const url = serve(await listening(createServer(app.use(onError))))
    const answer = await post(`${url}/charges`)
    expect([answer.status, await answer.json()]).toEqual([503, { down: true }])
    expect(seen).toEqual([thrown])
    expect(await rows()).toBe(0)
  })

  it('a parser before it must keep the bytes; where it does not, the error says what to do', async () => {
    const seen: unknown[] = []
    const onError: ErrorRequestHandler = (error, _request, response, _next) => {
      seen.push(error)
      response.status(500).end()
    }
    for (const [parser, status] of [
      [express.json(), 500],
      [express.json({ verify: keepRawBody }), 200],
    ] as const) {
      const app = express().use(parser)
      app.post(
        '/charges',
        idempotent(db, route(), ({ input, native }) => reply(200, [input.amount, native.body.amount])),
      )
      const url = serve(await listening(createServer(app.use(onError))))
      // Whitespace that only the bytes have: what was parsed and printed again is not what arrived.
      const answer = await post(`${url}/charges`, { body: '{ "amount": 7 }' })
      expect(answer.status).toBe(status)
      if (status === 200) expect(await answer.json()).toEqual([7, 7])
    }
    expect(seen).toHaveLength(1)
    expect(isRepriseError(seen[0], 'BODY_CONSUMED')).toBe(true)
    expect(String(seen[0])).toContain('express.json({ verify: keepRawBody })')
  })

  it('a parser that leaves a body alone leaves it to the route', async () => {
    const app = express().use(express.json())
    app.post(
      '/charges',
      idempotent(db, { ...route(), parse: (request) => request.text() }, ({ input }) => reply(200, input)),
    )
    const url = serve(await listening(createServer(app)))
    const answer = await post(`${url}/charges`, { body: 'a=1', headers: { 'content-type': 'text/plain' } })
    expect([answer.status, await answer.text()]).toEqual([200, 'a=1'])
  })

  it('a body that a parser has inflated counts as it is then, and one that nobody has inflated is refused', async () => {
    const fields: unknown[] = []
    const handler = idempotent(db, { ...route(), fields: { omit: ['/sentAt'] } }, async ({ input, request, tx }) => {
      await tx.insertOnce('charge', { id: String(input.amount) }, ['id'])
      fields.push([request.header('content-encoding'), request.header('content-length'), request.size])
      return reply(201, input)
    })
    const bare = idempotent(db, route(), ({ input }) => reply(201, input))
    const app = express().post('/bare', bare)
    const url = serve(
      await listening(createServer(app.use(express.json({ verify: keepRawBody })).post('/kept', handler))),
    )
    const zipped = (path: string, body: string, chunked = false) => {
      const bytes = gzipSync(body)
      const parts = ReadableStream.from([bytes.subarray(0, 5), bytes.subarray(5)])
      return fetch(url + path, {
        method: 'POST',
        headers: { 'idempotency-key': 'k-1', 'content-type': 'application/json', 'content-encoding': 'gzip' },
        ...(chunked ? { body: parts, duplex: 'half' } : { body: bytes }),
      })
    }
    const first = await zipped('/kept', '{"amount":7,"sentAt":1}')
    expect([first.status, await first.json()]).toEqual([201, { amount: 7, sentAt: 1 }])
    expect(fields).toEqual([[undefined, undefined, 23]])
    const repeats = [
      await zipped('/kept', '{ "sentAt": 2, "amount": 7.0 }'),
      await zipped('/kept', '{"amount":7}', true),
      await post(`${url}/kept`, { body: '{"amount":7}' }),
    ]
    for (const repeat of repeats) {
      expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    }
    expect((await zipped('/kept', '{"amount":8}')).status).toBe(422)
    expect(await rows()).toBe(1)
    const refused = await zipped('/bare', '{"amount":7}')
    expect([refused.status, ((await refused.json()) as { type: string }).type]).toEqual([
      415,
      'urn:reprise:problem:request-invalid',
    ])
  })

  it('authentication before it is asked for replays too', async () => {
    let isKnown = true
    const app = express()
    app.use((_request, response, next) => void (isKnown ? next() : response.status(401).end()))
    app.post(
      '/charges',
      idempotent(db, route(), () => reply(201, { id: 7 })),
    )
    const url = serve(await listening(createServer(app)))
    expect((await post(`${url}/charges`)).status).toBe(201)
    isKnown = false
    expect((await post(`${url}/charges`)).status).toBe(401)
  })

  it('a handler that answers by the response itself is refused before anything leaves, and rolled back', async () => {
    const seen: unknown[] = []
    const onError: ErrorRequestHandler = (error, _request, response, _next) => {
      seen.push(error)
      response.status(500).end('refused')
    }
    const app = express()
    const ways: Record<string, (response: Response) => unknown> = {
      json: (response) => response.status(200).json({ paid: true }),
      end: (response) => response.end(),
      write: (response) => response.write('paid'),
      head: (response) => response.writeHead(200).end('paid'),
    }
    for (const [name, answer] of Object.entries(ways)) {
      const handler = idempotent(db, route(), async ({ tx, native }) => {
        await tx.insertOnce('charge', { id: `by-${name}` }, ['id'])
        answer(native.res as Response)
        return undefined as never
      })
      app.post(`/${name}`, handler)
    }
    const url = serve(await listening(createServer(app.use(onError))))
    const before = await rows()
    for (const name of Object.keys(ways)) {
      const answer = await post(`${url}/${name}`)
      expect([answer.status, await answer.text()]).toEqual([500, 'refused'])
    }
    expect(seen.map((error) => isRepriseError(error, 'ANSWER_NOT_RETURNED'))).toEqual([true, true, true, true])
    expect(await rows()).toBe(before)
  })

  it('a middleware may answer in place of a route that takes too long', async () => {
    let answerNow = (): void => undefined
    let isDone: Promise<unknown> = Promise.resolve()
    const app = express().use((_request, response, next) => {
      answerNow = () => void response.status(504).end('too late')
      next()
    })
    app.post(
      '/slow',
      idempotent(db, route(), async ({ tx }) => {
        isDone = new Promise((resolve) => tx.afterCommit(() => resolve(true)))
        await tx.insertOnce('charge', { id: 'slow' }, ['id'])
        await outside(() => answerNow())
        return reply(201)
      }),
    )
    const url = serve(await listening(createServer(app)))
    const before = await rows()
    const answer = await post(`${url}/slow`)
    expect([answer.status, await answer.text()]).toEqual([504, 'too late'])
    await isDone
    expect(await rows()).toBe(before + 1)
  })
})

// Runs work outside of every async context that is open here, as the timer of somebody else does.
const outsider = new AsyncResource('outside')
function outside(work: () => void): Promise<void> {
  return new Promise((resolve) => {
    outsider.runInAsyncScope(() =>
      setImmediate(() => {
        work()
        resolve()
      }),
    )
  })
}
