import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, it } from 'vitest'
import type { Answered } from '../../../src/http/core/index.js'
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

  it('a schema of the body is kept to before anything is claimed: its 400 is not stored, and the key stays free', async () => {
    const schema = { body: { type: 'object', required: ['amount'], properties: { amount: { type: 'integer' } } } }
    const app = fastify()
    await app.register(repriseIdempotency)
    const create = idempotent(db, route(), async ({ tx, input, native }) => {
      await tx.insertOnce('charge', { id: 'schema' }, ['id'])
      return reply(201, [input, native.body])
    })
    app.post('/charges', { schema, bodyLimit: 100 }, create)
    const url = `${await listen(app)}/charges`
    const before = await rows()
    for (const [body, message] of [
      ['{}', "body must have required property 'amount'"],
      ['[', expect.stringMatching(/JSON/)],
      [`{"amount":7,"note":"${'x'.repeat(100)}"}`, expect.stringContaining('100')],
    ]) {
      const answer = await post(url, { key: 'k', body: body as string })
      expect(await answer.json()).toMatchObject({ statusCode: answer.status, message })
      expect([400, 413]).toContain(answer.status)
    }
    expect(await rows()).toBe(before)
    // Fastify coerces what the schema calls an integer; the route has what arrived.
    for (const replayed of [null, 'true']) {
      const answer = await post(url, { key: 'k', body: '{"amount":"7"}' })
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, replayed])
      expect(await answer.json()).toEqual([{ amount: '7' }, { amount: 7 }])
    }
    expect(await rows()).toBe(before + 1)
  })

  it('a schema of the answers decides what is stored and sent', async () => {
    const shown = { type: 'object', properties: { a: { type: 'number' } } }
    const schema = { response: { '2xx': shown, 409: { content: { 'application/json': { schema: shown } } } } }
    const app = fastify()
    await app.register(repriseIdempotency)
    const answers: Record<string, () => Answered> = {
      made: () => reply(201, { a: 1, secret: 2 }, { 'x-own': 'yes' }),
      standard: () => Response.json({ a: 1, secret: 2 }, { status: 201, headers: { 'x-own': 'yes' } }),
      refusal: () => reply(409, { a: 1, secret: 2 }, { 'x-own': 'yes' }),
    }
    for (const [name, answer] of Object.entries(answers)) {
      app.post(`/${name}`, { schema }, idempotent(db, route(), answer))
    }
    app.post(
      '/text',
      { schema },
      idempotent(db, route(), () => reply(201, 'plain')),
    )
    app.post(
      '/other',
      { schema },
      idempotent(db, route(), () => reply(404, { secret: 2 })),
    )
    const url = await listen(app)
    for (const replayed of [null, 'true']) {
      for (const name of Object.keys(answers)) {
        const answer = await post(`${url}/${name}`, { key: 'k' })
        const { headers } = answer
        // Fields of one's own leave with the first answer alone.
        expect([headers.get('x-own'), headers.get('idempotent-replayed')]).toEqual([replayed ? null : 'yes', replayed])
        expect(await answer.json()).toEqual({ a: 1 })
      }
      expect(await (await post(`${url}/text`, { key: 'k' })).text()).toBe('plain')
      // No schema names its status.
      expect(await (await post(`${url}/other`, { key: 'k' })).json()).toEqual({ secret: 2 })
    }
  })
})
