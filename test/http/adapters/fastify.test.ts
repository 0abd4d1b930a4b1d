import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, it } from 'vitest'
import { idempotent, reply, repriseIdempotency } from '../../../src/http/fastify/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import { openWorld } from './world.js'

const { db, post, route, rows, serve } = await openWorld()

const listen = async (app: FastifyInstance): Promise<string> =>
  serve({ url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() })

describe('on Fastify', () => {
  it('what the handler throws goes to the error handler, and is rolled back', async () => {
    const app = fastify()
    const seen: unknown[] = []
    app.setErrorHandler((error, _request, answer) => {
      seen.push(error)
      return answer.code(503).send({ down: true })
    })
    const thrown = new Error('no ledger')
    await app.register(repriseIdempotency)
    app.post(
      '/charges',
      idempotent(db, route(), async ({ tx }) => {
        await tx.insertOnce('charge', { id: '1' }, ['id'])
        throw thrown
      }),
    )
    const answer = await post(`${await listen(app)}/charges`)
    expect([answer.status, await answer.json()]).toEqual([503, { down: true }])
    expect(seen).toEqual([thrown])
    expect(await rows()).toBe(0)
  })

  it('the plugin leaves bodies alone in its scope only; outside of it, the error says what to do', async () => {
    const app = fastify()
    const seen: unknown[] = []
    app.setErrorHandler((error, _request, answer) => {
      seen.push(error)
      return answer.code(500).send()
    })
    app.post('/parsed', async ({ body }) => body)
    app.post(
      '/outside',
      idempotent(db, route(), () => reply(200, 'never')),
    )
    await app.register(async (scope) => {
      await scope.register(repriseIdempotency)
      scope.post(
        '/inside',
        idempotent(db, route(), ({ input }) => reply(200, input)),
      )
    })
    const url = await listen(app)
    expect(await (await post(`${url}/parsed`)).json()).toEqual({ amount: 7 })
    expect(await (await post(`${url}/inside`)).json()).toEqual({ amount: 7 })
    expect((await post(`${url}/outside`)).status).toBe(500)
    expect(isRepriseError(seen[0], 'BODY_CONSUMED')).toBe(true)
    expect(String(seen[0])).toContain('Register repriseIdempotency')
  })

  it('hooks run around it, on replays too', async () => {
    const app = fastify()
    const heard: string[] = []
    app.addHook('onRequest', async ({ headers }, answer) => {
      if (headers['x-user'] === undefined) return answer.code(401).send()
    })
    app.addHook('onSend', async (_request, answer, payload) => {
      answer.header('x-sent', 'yes')
      return payload
    })
    app.addHook('onResponse', async (_request, answer) => void heard.push(`${answer.statusCode}`))
    await app.register(repriseIdempotency)
    app.post(
      '/charges',
      idempotent(db, route(), () => reply(201, { id: 7 })),
    )
    const url = `${await listen(app)}/charges`
    expect((await post(url)).status).toBe(401)
    for (const replayed of [null, 'true']) {
      const { status, headers } = await post(url, { headers: { 'x-user': 'ann' } })
      expect([status, headers.get('x-sent'), headers.get('idempotent-replayed')]).toEqual([201, 'yes', replayed])
    }
    expect(heard).toEqual(['401', '201', '201'])
  })

  it('requests that are injected without a socket are served as well', async () => {
    const app = fastify()
    await app.register(repriseIdempotency)
    app.post(
      '/charges',
      idempotent(db, route(), ({ input }) => reply(201, input)),
    )
    const request = {
      method: 'POST',
      url: '/charges',
      headers: { 'idempotency-key': 'k-1' },
      payload: { amount: 7 },
    } as const
    const [first, again] = [await app.inject(request), await app.inject(request)]
    expect([first.statusCode, first.json(), again.headers['idempotent-replayed']]).toEqual([201, { amount: 7 }, 'true'])
    await app.close()
  })

  it('a body that is too large keeps the shape of all refusals', async () => {
    const app = fastify({ bodyLimit: 10 })
    await app.register(repriseIdempotency)
    app.post(
      '/charges',
      idempotent(db, { ...route(), mostBodyBytes: 5 }, () => reply(200, 'never')),
    )
    const answer = await post(`${await listen(app)}/charges`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([413, 'application/problem+json'])
  })

  it('a route with a schema of its answers is refused, which would not be kept to', async () => {
    const schema = { response: { 201: { type: 'object', properties: { a: { type: 'number' } } } } }
    const leaking = idempotent(db, route(), () => reply(201, { a: 1, secret: 2 }))
    const app = fastify()
    await app.register(repriseIdempotency)
    expect(() => app.post('/charges', { schema }, leaking)).toThrow(
      expect.objectContaining({ code: 'OPERATION_INVALID' }),
    )
    app.post('/other', { schema }, async (_request, answer) => answer.code(201).send({ a: 1, secret: 2 }))
    app.post('/described', { schema: { headers: { type: 'object' } } }, leaking)
    const url = await listen(app)
    expect(await (await fetch(`${url}/other`, { method: 'POST' })).json()).toEqual({ a: 1 })
    expect((await post(`${url}/described`)).status).toBe(201)
  })

  it('a route with such a schema that the plugin has not seen refuses every request', async () => {
    const schema = { response: { '2xx': { type: 'object', properties: {} } } }
    const app = fastify()
    const seen: unknown[] = []
    app.setErrorHandler((error, _request, answer) => {
      seen.push(error)
      return answer.code(500).send()
    })
    let runs = 0
    const counting = idempotent(db, route(), () => reply(201, { secret: ++runs }))
    app.post('/charges', { schema }, counting)
    await app.register(repriseIdempotency)
    const answer = await post(`${await listen(app)}/charges`)
    expect([answer.status, await answer.text(), runs]).toEqual([500, '', 0])
    expect(isRepriseError(seen[0], 'OPERATION_INVALID')).toBe(true)
  })
})
