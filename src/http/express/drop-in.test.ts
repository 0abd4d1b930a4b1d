// The drop-in form on Express: handlers as people write them, behind a middleware, on a real server.

import { createServer, request as nodeRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import { afterEach, describe, expect, it } from 'vitest'
import { eventLoopTurn } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'
import { openTransaction } from '../../transaction/index.js'
import { idempotency, keepRawBody } from './index.js'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

interface World {
  readonly db: ReturnType<typeof memory>
  readonly app: Express
  readonly clock: ReturnType<typeof manualClock>
  charges(): number
  post(body: string, headers?: Record<string, string>): Promise<Response>
  /** Mounts the handlers behind the middleware, as `POST /charges`. */
  mount(...handlers: RequestHandler[]): void
}

async function world(): Promise<World> {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  db.table('charge', { unique: [['id']] })
  const app = express().disable('x-powered-by')
  const server = createServer(app)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/charges`
  const principal = () => 'ann'
  return {
    db,
    app,
    clock,
    charges: () => db.rows('charge').length,
    post: (body, headers = {}) =>
      fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }),
    mount: (...handlers) => {
      app.post('/charges', idempotency(db, { name: 'charges', principal }), ...handlers)
    },
  }
}

let last = 0
const charge: RequestHandler = async (request, response) => {
  const id = `c-${++last}`
  await request.tx.insertOnce('charge', { id, amount: request.body.amount }, ['id'])
  response.status(201).location(`/charges/${id}`).json({ id })
}

const key = (name: string) => ({ 'idempotency-key': name })

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

describe.each([
  ['behind a parser', [express.json()], []],
  ['behind a parser that keeps the bytes', [express.json({ verify: keepRawBody })], []],
  ['before its own parser', [], [express.json()]],
] as const)('a handler %s', (_, before, behind) => {
  it('takes effect once, and its answer is repeated byte by byte', async () => {
    const { app, mount, post, charges } = await world()
    for (const parser of before) app.use(parser)
    mount(...behind, charge)
    const first = await post('{"amount":7}', key('a'))
    const again = await post('{ "amount": 7.0 }', key('a'))
    expect([first.status, again.status]).toEqual([201, 201])
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.headers.get('location')).toBe(first.headers.get('location'))
    expect(again.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await again.text()).toBe(await first.text())
    expect(charges()).toBe(1)
    const other = await post('{"amount":8}', key('a'))
    expect(other.status).toBe(422)
    expect(charges()).toBe(1)
    expect((await post('{"amount":8}', key('b'))).status).toBe(201)
    expect((await post('{"amount":8}')).status).toBe(400)
  })
})

it('leaves the body to a handler that reads it by itself, in parts of any size', async () => {
  const { mount, post } = await world()
  const body = JSON.stringify({ text: 'x'.repeat(300_000) })
  mount(async (request, response) => {
    let size = 0
    for await (const part of request) size += (part as Buffer).length
    response.json({ size })
  })
  for (const _ of [1, 2]) {
    expect(await (await post(body, key('a'))).json()).toEqual({ size: body.length })
  }
})

it('sends nothing before COMMIT, and sees no transaction after the answer', async () => {
  const { app, db, mount, post } = await world()
  const seen: unknown[] = []
  app.use(express.json())
  mount(async (request, response) => {
    seen.push(response.headersSent)
    const { tx } = request
    await tx.insertOnce('charge', { id: 'late' }, ['id'])
    response.on('finish', () => seen.push(`finished, ${db.rows('charge').length} committed`))
    response.status(201).json({ ok: true })
    seen.push(response.headersSent, response.writableEnded, db.rows('charge').length)
    expect(() => request.tx).toThrow(expect.objectContaining({ code: 'TRANSACTION_OVER' }))
    await eventLoopTurn()
    await expect(tx.insertOnce('charge', { id: 'later' }, ['id'])).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
    seen.push('refused')
  })
  expect((await post('{}', key('a'))).status).toBe(201)
  await expect.poll(() => seen.length).toBe(6)
  expect(seen.slice(0, 4)).toEqual([false, true, true, 0])
  expect(seen.slice(4).sort()).toEqual(['finished, 1 committed', 'refused'])
})

const failing = () =>
  new Readable({
    read() {
      this.push('part')
      this.destroy(new Error('odd'))
    },
  })

const answerErrors: ErrorRequestHandler = (error, _request, response, _next) => {
  response.status(error.status ?? 500).json({ reason: error.message })
}

describe('what is rolled back, and not stored', () => {
  const teapot = Object.assign(new Error('odd'), { status: 418 })
  it.each([
    ['a throw', () => Promise.reject(teapot), 418],
    [
      'a throw at once',
      () => {
        throw teapot
      },
      418,
    ],
    ['next(error)', (_response, next) => next(teapot), 418],
    ['req.next(error)', ({ req }) => req.next?.(teapot), 418],
    ['a file that is not there', (response) => response.sendFile('/not-there/at-all'), 404],
    ['a download that is not there', (response) => response.download('/not-there/at-all'), 404],
    ['a template that fails', (response) => response.render('drop-in.test.ts'), 418],
    ['a rejection without a reason', () => Promise.reject(), 500],
    ['a status of 5xx', (response) => void response.status(502).json({ reason: 'bad' }), 502],
  ] satisfies [string, (response: express.Response, next: express.NextFunction) => unknown, number][])(
    '%s',
    async (_, end, status) => {
      const { app, mount, post, charges } = await world()
      app.use(express.json())
      app.engine('ts', (_path, _options, done) => done(teapot)).set('views', import.meta.dirname)
      let fails = true
      mount(async (request, response, next) => {
        await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
        if (fails) response.setHeader('x-odd', '1')
        if (fails) await end(response, next)
        else response.status(201).json({ ok: true })
      })
      app.use(answerErrors)
      const failed = await post('{}', key('a'))
      expect([failed.status, charges()]).toEqual([status, 0])
      // What the handler has set belongs to the answer that is not sent.
      if (status !== 502) expect(failed.headers.get('x-odd')).toBeNull()
      fails = false
      expect([(await post('{}', key('a'))).status, charges()]).toEqual([201, 1])
    },
  )

  it('a handler that never answers, at the deadline; what it writes late goes nowhere', async () => {
    const { app, clock, mount, post, charges } = await world()
    app.use(express.json())
    let late: (() => void) | undefined
    mount(async (request, response) => {
      await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
      await new Promise<void>((resolve) => {
        late = resolve
      })
      response.status(201).json({ late: true })
      late = undefined
    })
    const answering = post('{}', key('a'))
    await expect.poll(() => late).toBeDefined()
    clock.advance(60_000)
    const answer = await answering
    expect([answer.status, charges()]).toEqual([503, 0])
    expect(await answer.json()).toMatchObject({ retryable: true })
    late?.()
    await expect.poll(() => late).toBeUndefined()
  })

  it('what a part of it writes after another one threw, however long the error handler takes', async () => {
    const { app, mount, post, charges } = await world()
    app.use(express.json())
    const [late, logged] = [gate(), gate()]
    const seen: unknown[] = []
    mount(async (request, response) => {
      const writes = late.opened.then(() => {
        seen.push(response.headersSent)
        response.status(201).set('x-late', '1').json({ late: true })
        seen.push('written')
      })
      await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
      await Promise.all([writes, Promise.reject(teapot)])
    })
    app.use((async (error, _request, response, _next) => {
      response.status(error.status)
      seen.push('asked')
      await logged.opened
      response.json({ reason: error.message })
    }) satisfies ErrorRequestHandler)
    const answering = post('{}', key('a'))
    await expect.poll(() => seen).toEqual(['asked'])
    late.open()
    await expect.poll(() => seen).toEqual(['asked', true, 'written'])
    logged.open()
    const answer = await answering
    expect([answer.status, await answer.json(), answer.headers.get('x-late')]).toEqual([418, { reason: 'odd' }, null])
    expect(charges()).toBe(0)
  })

  it.each([
    ['a stream that fails', (response) => pipeline(failing(), response, () => undefined)],
    ['a stream that fails, of which it tells', (response, next) => pipeline(failing(), response, next)],
    ['the response, destroyed', (response) => response.destroy()],
  ] satisfies [string, (response: express.Response, next: express.NextFunction) => unknown][])(
    '%s: the connection is cut, and nothing waits for the deadline',
    async (_, cut) => {
      const { app, mount, post, charges } = await world()
      app.use(express.json())
      let fails = true
      mount(async (request, response, next) => {
        await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
        if (fails) cut(response, next)
        else response.status(201).json({ ok: true })
      })
      app.use(answerErrors)
      await expect(post('{}', key('a'))).rejects.toThrow()
      fails = false
      await expect.poll(async () => (await post('{}', key('a'))).status).toBe(201)
      expect(charges()).toBe(1)
    },
  )

  it('a stream of events, in words, before anything leaves', async () => {
    const { app, mount, post } = await world()
    app.use(express.json())
    mount((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
    })
    app.use(answerErrors)
    const refused = await post('{}', key('a'))
    expect([refused.status, refused.headers.get('content-type')]).toEqual([500, 'application/json; charset=utf-8'])
    expect(await refused.json()).toMatchObject({ reason: expect.stringContaining('A stream of events') })
  })
})

it('passes a request on that its handler passes on, without an effect', async () => {
  const { app, mount, post, charges } = await world()
  app.use(express.json())
  mount(async (request, _response, next) => {
    await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
    next()
  })
  app.post('/charges', (_request, response) => void response.json({ by: 'the next one' }))
  const answer = await post('{}', key('a'))
  expect([await answer.json(), charges()]).toEqual([{ by: 'the next one' }, 0])
})

it('holds back what is streamed, sent and redirected alike', async () => {
  const { app, mount } = await world()
  app.use(express.json())
  mount((request, response) => {
    const { how } = request.body as { how: string }
    if (how === 'piped') Readable.from(['a', 'b', 'c']).pipe(response.type('text/plain').status(202))
    else if (how === 'parts') {
      response.writeHead(200, 'fine', { 'x-part': 'yes', 'content-type': 'text/plain' })
      response.write(Buffer.from('one '))
      response.write('dHdv', 'base64')
      response.end()
    } else if (how === 'redirect') response.redirect(303, '/elsewhere')
    else response.sendStatus(204)
  })
  for (const [how, status, body] of [
    ['piped', 202, 'abc'],
    ['parts', 200, 'one two'],
    ['redirect', 303, undefined],
    ['nothing', 204, ''],
  ] as const) {
    for (const replayed of [null, 'true']) {
      const answer = await fetch(`http://${addressOf()}/charges`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'content-type': 'application/json', ...key(how) },
        body: JSON.stringify({ how }),
      })
      expect([how, answer.status, answer.headers.get('idempotent-replayed')]).toEqual([how, status, replayed])
      if (body !== undefined) expect(await answer.text()).toBe(body)
    }
  }
})

const addressOf = () => `127.0.0.1:${((servers.at(-1) as Server).address() as AddressInfo).port}`

it('answers duplicates that come at once with one effect', async () => {
  const { app, mount, post, charges } = await world()
  app.use(express.json())
  let arrived = 0
  const { opened, open } = gate()
  mount(async (request, response, next) => {
    arrived += 1
    await opened
    return charge(request, response, next)
  })
  const all = Array.from({ length: 8 }, () => post('{"amount":1}', key('a')))
  await expect.poll(() => arrived).toBe(1)
  open()
  const statuses = (await Promise.all(all)).map(({ status }) => status)
  expect(charges()).toBe(1)
  expect(statuses.filter((status) => status === 201).length).toBeGreaterThan(0)
  for (const status of statuses) expect([201, 409]).toContain(status)
})

it('keeps only a tombstone of an answer that is too large, and the first caller gets all of it', async () => {
  const { app, mount, post } = await world()
  app.use(express.json())
  mount((_request, response) => void response.type('text/plain').send('x'.repeat(300_000)))
  expect((await (await post('{}', key('a'))).text()).length).toBe(300_000)
  expect((await post('{}', key('a'))).status).toBe(410)
})

it('is refused where it is not in the route of its handler', async () => {
  const { app, db, post } = await world()
  const reasons: string[] = []
  app.use(express.json())
  app.use('/charges', idempotency(db, { name: 'charges', principal: () => 'ann' }))
  app.post('/charges', charge)
  app.use(((error, _request, response, _next) => {
    reasons.push(error.code)
    response.status(500).end()
  }) satisfies ErrorRequestHandler)
  expect((await post('{"amount":1}', key('a'))).status).toBe(500)
  expect(reasons).toEqual(['OPERATION_INVALID'])
})

it('is refused in words where a route has it twice', async () => {
  const { app, db, mount, post, charges } = await world()
  app.use(express.json())
  mount(idempotency(db, { name: 'other', principal: () => 'ann' }), charge)
  app.use(answerErrors)
  for (const _ of [1, 2]) {
    const refused = await post('{"amount":1}', key('a'))
    expect(await refused.json()).toEqual({ reason: expect.stringContaining('more than once') })
  }
  expect(charges()).toBe(0)
})

it('is one for each method of a route', async () => {
  const { app, db, charges } = await world()
  app.use(express.json())
  const made = (name: string) => idempotency(db, { name, principal: () => 'ann' })
  app.route('/charges').post(made('add'), charge).put(made('set'), charge)
  for (const method of ['POST', 'PUT', 'POST', 'PUT']) {
    const headers = { 'content-type': 'application/json', ...key('a') }
    const answer = await fetch(`http://${addressOf()}/charges`, { method, headers, body: '{"amount":1}' })
    expect(answer.status).toBe(201)
  }
  expect(charges()).toBe(2)
})

it('is one for each method of app.all, HEAD among them', async () => {
  const { app, db } = await world()
  app.all('/charges', idempotency(db, { name: 'all', principal: () => 'ann' }), (_request, response) => {
    response.status(202).end()
  })
  for (const method of ['HEAD', 'GET', 'POST']) {
    expect((await fetch(`http://${addressOf()}/charges`, { method, headers: key('a') })).status).toBe(202)
  }
})

it('runs every handler of the route in the transaction, also behind one that goes on from an event of its own', async () => {
  const { app, mount, post } = await world()
  app.use(express.json())
  const waiting: (() => void)[] = []
  const seen: unknown[] = []
  mount(
    (_request, _response, next) => void waiting.push(next),
    (_request, response) => {
      seen.push(openTransaction()?.domain)
      response.json({ ok: true })
    },
  )
  const answering = post('{}', key('a'))
  await expect.poll(() => waiting.length).toBe(1)
  expect(openTransaction()).toBeUndefined()
  waiting[0]?.()
  expect([(await answering).status, seen]).toEqual([200, ['shop']])
})

describe('a body that a parser before the route has read', () => {
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  it.each([
    ['of more bytes than the usual limit', JSON.stringify(['x'.repeat(2_000_000)]), 200],
    ['of more bytes than its limit', JSON.stringify(['x'.repeat(4_000_000)]), 413],
    ['that is longer as a canonical value', JSON.stringify(Array(200_000).fill(0)).replaceAll('0', '1e20'), 200],
    ['of 200 levels', deep(200), 200],
    ['of too many levels', deep(2_000), 400],
    ['with half of a surrogate pair', String.raw`{"a":"\ud800"}`, 400],
    ['with a number that no double holds', '{"a":1e400}', 400],
  ])('%s is refused in words, or counts', async (_, body, status) => {
    const { app, db, post } = await world()
    app.use(express.json({ limit: '10mb' }))
    const options = { name: 'charges', principal: () => 'ann', mostBodyBytes: 3_000_000 }
    app.post('/charges', idempotency(db, options), (_request, response) => void response.json({ ok: true }))
    for (const replayed of [null, 'true']) {
      const answer = await post(body, key('a'))
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([
        status,
        status === 200 ? replayed : null,
      ])
      if (status !== 200) expect(answer.headers.get('content-type')).toBe('application/problem+json')
    }
  })

  it.each([
    ['text', express.text({ limit: '10mb' })],
    ['bytes', express.raw({ type: 'text/plain', limit: '10mb' })],
  ])('as %s counts by its bytes', async (_, parser) => {
    const { app, mount, post } = await world()
    app.use(parser)
    mount((request, response) => void response.send(String(request.body)))
    const type = { 'content-type': 'text/plain' }
    for (const replayed of [null, 'true']) {
      const answer = await post('a käse', { ...type, ...key('a') })
      expect([answer.status, await answer.text(), answer.headers.get('idempotent-replayed')]).toEqual([
        200,
        'a käse',
        replayed,
      ])
    }
    expect((await post('a kase', { ...type, ...key('a') })).status).toBe(422)
    expect((await post('x'.repeat(1_048_577), { ...type, ...key('b') })).status).toBe(413)
  })
})

it('suggests a text where a principal is an object', async () => {
  const { app, db, post } = await world()
  app.use(express.json())
  const principal = () => ({ id: 7 }) as unknown as string
  app.post('/charges', idempotency(db, { name: 'charges', principal }), charge)
  app.use(answerErrors)
  expect(await (await post('{}', key('a'))).json()).toEqual({ reason: expect.stringContaining('String(req.user.id)') })
})

it('refuses a body that a parser of parts has read, since files would not count', async () => {
  const { app, mount, charges } = await world()
  app.use((request, _response, next) => {
    request.resume().on('end', () => {
      request.body = { note: 'parsed' }
      next()
    })
  })
  mount(charge)
  const status = await new Promise((resolve) => {
    const sent = nodeRequest(`http://${addressOf()}/charges`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=x', ...key('a') },
    })
    sent.on('response', (answer) => resolve(answer.resume().statusCode))
    sent.end('--x\r\n\r\n1\r\n--x--\r\n')
  })
  expect([status, charges()]).toEqual([500, 0])
})

it('waits for a middleware before it that ends the response later', async () => {
  const { app, mount, post, charges } = await world()
  app.use((_request, response, next) => {
    const { end } = response
    response.end = ((...given: unknown[]) => {
      setImmediate(() => end.apply(response, given as never))
      return response
    }) as typeof end
    next()
  })
  app.use(express.json())
  mount(charge)
  for (const _ of [1, 2]) expect((await post('{"amount":1}', key('a'))).status).toBe(201)
  expect(charges()).toBe(1)
})

it('leaves what follows an error to the handlers of the route', async () => {
  const { app, post } = await world()
  app.use(express.json())
  const answerLater: RequestHandler = (_request, response) => void response.status(202).json({ recovered: true })
  const recover: ErrorRequestHandler = (_error, _request, _response, next) => next()
  app.post(
    '/charges',
    idempotency(memory({ name: 'other' }), { name: 'other', principal: () => 'ann' }),
    () => Promise.reject(new Error('odd')),
    recover,
    answerLater,
  )
  expect((await post('{}', key('a'))).status).toBe(202)
})
