// One route, `/api/things/:id` for POST, HEAD and GET, on every adapter, behind something that sets fields of its own
// and below a prefix.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import { Controller, Module, RequestMapping, RequestMethod } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express, { Router } from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import Database from 'libsql'
import type {
  Answered,
  AtomicHandlerCall,
  AtomicRouteOptions,
  HttpRequest,
  RouteDomain,
} from '../../../src/http/core/index.js'
import * as onExpress from '../../../src/http/express/index.js'
import * as onFastify from '../../../src/http/fastify/index.js'
import * as onFetch from '../../../src/http/fetch/index.js'
import * as onHono from '../../../src/http/hono/index.js'
import * as onKoa from '../../../src/http/koa/index.js'
import * as onNest from '../../../src/http/nest/index.js'
import * as onNode from '../../../src/http/node/index.js'
import { type SqliteHandle, type SqliteTransaction, sqlite } from '../../../src/stores/sqlite/index.js'
import { listening } from '../subject/listening.js'
import type { Served } from '../subject/mounted.js'
import type { AdapterName } from '../subject/subject.js'

/** What a handler of a stage gets: what all adapters give. */
type StageCall = Pick<AtomicHandlerCall<unknown, SqliteTransaction<unknown>, HttpRequest>, 'tx' | 'input' | 'key'>

/** The route of a stage. */
export interface StageRoute {
  readonly handler: (call: StageCall) => Answered | Promise<Answered>
  readonly options?: Partial<AtomicRouteOptions<unknown, HttpRequest>>
}

/** A stage: a server, and its effects. */
export interface Stage extends Served {
  /** The sockets that clients have open. */
  readonly server: Server
}

/** What is set before the route is reached, for the adapters whose frameworks have a before. */
const setBefore = [
  ['x-request-id', 'r-1'],
  ['vary', 'Accept'],
  ['access-control-expose-headers', 'X-Request-Id'],
  ['set-cookie', 'before=1'],
] as const

const path = '/api/things/:id'

type Given = {
  readonly db: RouteDomain<SqliteTransaction<unknown>>
  readonly options: AtomicRouteOptions<unknown, HttpRequest>
  readonly handler: StageRoute['handler']
}

const mounts: Readonly<Record<AdapterName, (given: Given) => Promise<Server>>> = {
  async node({ db, options, handler }) {
    const listener = onNode.idempotent(
      db,
      { ...options, onError: (_error, _request, response) => response.headersSent || response.writeHead(500).end() },
      handler,
    )
    return createServer((request, response) => {
      for (const [name, value] of setBefore) response.setHeader(name, value)
      void listener(request, response)
    })
  },
  async express({ db, options, handler }) {
    const router = Router().all('/things/:id', onExpress.idempotent(db, options, handler))
    const app = express()
    app.use((_request, response, next) => {
      for (const [name, value] of setBefore) response.setHeader(name, value)
      next()
    })
    return createServer(app.use('/api', router))
  },
  async fastify({ db, options, handler }) {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => {
      for (const [name, value] of setBefore) reply.header(name, value)
    })
    await app.register(
      async (scope) => {
        await scope.register(onFastify.repriseIdempotency)
        scope.route({
          method: ['POST', 'GET', 'HEAD'],
          url: '/things/:id',
          handler: onFastify.idempotent(db, options, handler),
        })
      },
      { prefix: '/api' },
    )
    await app.ready()
    return app.server
  },
  async hono({ db, options, handler }) {
    const app = new Hono()
    app.use(async (c, next) => {
      // One by each of the two ways that there are.
      for (const [name, value] of setBefore.slice(0, 2)) c.header(name, value)
      for (const [name, value] of setBefore.slice(2)) c.res.headers.append(name, value)
      await next()
    })
    app.all(path, onHono.idempotent(db, options, handler))
    return createAdaptorServer({ fetch: app.fetch, createServer }) as Server
  },
  async koa({ db, options, handler }) {
    const app = new Koa()
    app.silent = true
    app.use((ctx, next) => {
      for (const [name, value] of setBefore) ctx.append(name, value)
      ctx['params'] = { id: ctx.path.split('/').at(-1) }
      return next()
    })
    app.use(onKoa.idempotent(db, options, handler))
    return createServer(app.callback())
  },
  async nest({ db, options, handler }) {
    class Things {
      handle(call: StageCall) {
        return handler(call)
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Things.prototype, 'handle') as PropertyDescriptor
    onNest.Call()(Things.prototype, 'handle', 0)
    onNest.Idempotent(options)(Things.prototype, 'handle', descriptor)
    RequestMapping({ path: 'things/:id', method: RequestMethod.ALL })(Things.prototype, 'handle', descriptor)
    Controller('api')(Things)
    class Application {}
    Module({ imports: [onNest.RepriseModule.forRoot(db)], controllers: [Things] })(Application)
    const app = await NestFactory.create(Application, { logger: false, bodyParser: false })
    app.use((_request: unknown, response: { setHeader(name: string, value: string): void }, next: () => void) => {
      for (const [name, value] of setBefore) response.setHeader(name, value)
      next()
    })
    await app.init()
    return app.getHttpServer() as Server
  },
  async fetch({ db, options, handler }) {
    const params = (found: Record<string, string>) => found
    const handle = onFetch.idempotent(db, { ...options, params }, handler)
    const fetch = (request: Request) =>
      handle(request, { id: new URL(request.url).pathname.split('/').at(-1) ?? '' }).catch(
        () => new Response(null, { status: 500 }),
      )
    return createAdaptorServer({ fetch, createServer }) as Server
  },
}

/** Starts a stage on a database of its own. */
export async function openStage(adapter: AdapterName, { handler, options = {} }: StageRoute): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-stage-'))
  const file = join(folder, 'stage.db')
  const db = sqlite({ name: 'stage', open: () => new Database(file) as unknown as SqliteHandle })
  await db.migrate()
  const usual = { name: 'things', principal: () => 'north', parse: (request: HttpRequest) => request }
  const server = await mounts[adapter]({ db, handler, options: { ...usual, ...options } })
  const { url, close } = await listening(server)
  return {
    server,
    url,
    async close() {
      await close()
      await db.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
