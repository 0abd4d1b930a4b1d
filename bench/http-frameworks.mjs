// The services of the server bench: the same handler without a layer, with ours, and with those of others. Each loads
// its own framework when it is started.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { reply } from '../dist/http/core/index.js'
import { response } from './operation-work.mjs'

/** @typedef {import('./http-stores.mjs').Kept} Kept */
/** @typedef {{ server: import('node:http').Server, stop: () => Promise<unknown> }} Started */

/**
 * The handler without a layer: what it does, and what it answers.
 * @param {string} way
 * @param {Kept} kept
 * @returns {(body: any, key?: any) => Promise<unknown>}
 */
function workOf(way, { db, insert, bare, byHand }) {
  if (way === 'by-hand') return (body, key) => byHand({ ...body, key })
  return async (body) => {
    if (way === 'transact') await db.transact((/** @type {any} */ tx) => insert(tx, body.note))
    else await bare(body.note)
    return response
  }
}

/**
 * The same under the layer.
 * @param {string} way
 * @param {Kept} kept
 * @param {(native: any) => string | undefined} principal
 */
function routeOf(way, { db, insert }, principal) {
  const options = { name: 'payments', principal, required: way !== 'keyless' }
  const handler = async (/** @type {any} */ { request, tx }) => {
    await insert(tx, request.json().note)
    return reply(201, response)
  }
  return /** @type {const} */ ([db, options, handler])
}

const peers = async () => (await import('./http-peers.mjs')).peerOn
const isOurs = (/** @type {string} */ way) => way === 'keyed' || way === 'keyless'
const isBare = (/** @type {string} */ way) => ['transact', 'bare', 'by-hand'].includes(way)
const field = 'idempotency-key'

/**
 * @param {import('node:http').Server} server
 * @returns {Promise<Started>}
 */
async function listening(server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    server,
    stop: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * @param {string} way
 * @param {Kept} kept
 */
async function node(way, kept) {
  if (isOurs(way)) {
    const { idempotent } = await import('../dist/http/node/index.js')
    const listener = idempotent(...routeOf(way, kept, (request) => request.headers.authorization))
    return listening(createServer(listener))
  }
  const work = workOf(way, kept)
  const answer = isBare(way)
    ? async (/** @type {any} */ { headers }, /** @type {any} */ body) => ({ body: await work(body, headers[field]) })
    : await (await peers()).node(way, kept, work)
  return listening(
    createServer(async (request, out) => {
      const parts = []
      for await (const part of request) parts.push(part)
      const { body, replayed = false } = await answer(request, JSON.parse(Buffer.concat(parts).toString()))
      const text = JSON.stringify(body)
      out.writeHead(201, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(text),
        ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
      })
      out.end(text)
    }),
  )
}

/**
 * @param {string} way
 * @param {Kept} kept
 */
async function onExpress(way, kept) {
  const { default: express } = await import('express')
  const app = express()
  if (isOurs(way)) {
    const { idempotent } = await import('../dist/http/express/index.js')
    app.post('/payments', idempotent(...routeOf(way, kept, (request) => request.headers.authorization)))
  } else if (way === 'drop-in') {
    const { idempotency } = await import('../dist/http/express/index.js')
    const [db, options] = routeOf(way, kept, (request) => request.headers.authorization)
    app.post('/payments', express.json(), idempotency(db, options), async (request, out) => {
      await kept.insert(request.tx, request.body.note)
      out.status(201).json(response)
    })
  } else {
    const work = workOf(way, kept)
    const before = isBare(way) ? [] : await (await peers()).express(way, kept)
    app.post('/payments', express.json(), ...before, async (request, out) => {
      out.status(201).json(await work(request.body, request.headers[field]))
    })
  }
  return listening(createServer(app))
}

/**
 * @param {string} way
 * @param {Kept} kept
 * @returns {Promise<Started>}
 */
async function fastify(way, kept) {
  const { default: makeFastify } = await import('fastify')
  const app = makeFastify()
  if (isOurs(way)) {
    const { idempotent, repriseIdempotency } = await import('../dist/http/fastify/index.js')
    await app.register(repriseIdempotency)
    app.post('/payments', idempotent(...routeOf(way, kept, (request) => request.headers.authorization)))
  } else if (way === 'drop-in') {
    const { idempotency } = await import('../dist/http/fastify/index.js')
    const [db, options] = routeOf(way, kept, (request) => request.headers.authorization)
    app.post('/payments', idempotency(db, options), async (request, out) => {
      await kept.insert(request.tx, request.body.note)
      return out.code(201).send(response)
    })
  } else {
    const work = workOf(way, kept)
    const options = isBare(way) ? {} : await (await peers()).fastify(app, way, kept)
    app.post('/payments', options, async (request, out) => {
      out.code(201)
      return work(request.body, request.headers[field])
    })
  }
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { server: app.server, stop: async () => app.server.closeAllConnections() }
}

/**
 * @param {string} way
 * @param {Kept} kept
 */
async function hono(way, kept) {
  const { createAdaptorServer } = await import('@hono/node-server')
  const { Hono } = await import('hono')
  const app = new Hono()
  if (isOurs(way)) {
    const { idempotent } = await import('../dist/http/hono/index.js')
    app.post('/payments', idempotent(...routeOf(way, kept, (c) => c.req.header('authorization'))))
  } else {
    const work = workOf(way, kept)
    if (!isBare(way)) app.use('/payments', await (await peers()).hono())
    app.post('/payments', async (c) => c.json(await work(await c.req.json()), 201))
  }
  return listening(/** @type {import('node:http').Server} */ (createAdaptorServer({ fetch: app.fetch })))
}

/** By name. @type {Record<string, (way: string, kept: Kept) => Promise<Started>>} */
export const frameworks = { node, express: onExpress, fastify, hono }
