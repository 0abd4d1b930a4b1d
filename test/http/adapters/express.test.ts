import { createServer } from 'node:http'
import express, { type ErrorRequestHandler } from 'express'
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
})
