// The subject on Express, its handlers as they would be without Reprise: they read the request, and write to the
// response. The routes are those with an effect in the ledger.

import { createServer } from 'node:http'
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express'
import { idempotency } from '../../../../src/http/express/index.js'
import { nodeFacts } from '../../../../src/http/wire/index.js'
import { existing } from '../existing-handler.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

const users = new WeakMap<Request, string>()
const principal = (request: Request) => users.get(request)

const authenticate: RequestHandler = (request, response, next) => {
  const user = userOf(request.headers.authorization)
  if (user === undefined) return void response.status(401).end()
  users.set(request, user)
  next()
}

const answerErrors: ErrorRequestHandler = (_error, _request, response, _next) => {
  response.status(500).json({ reason: 'error' })
}

/** Serves it. */
export const serve: Serve = async ({ db, atomic, effects }) => {
  const app = express().disable('x-powered-by').disable('etag')
  app.use(authenticate)
  app.get('/effects', async (request, response) => {
    response.json({ effects: await effects(principal(request) ?? '') })
  })
  for (const route of atomic) {
    const { method, path, options } = route
    const handler: RequestHandler = async (request, response) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part as Buffer)
      const facts = nodeFacts(request, { target: request.originalUrl, params: request.params })
      const user = principal(request) as string
      const { status, headers, body } = await existing(route, {
        facts,
        bytes: Buffer.concat(parts),
        user,
        tx: request.tx,
      })
      response.status(status)
      for (const [name, value] of headers) response.appendHeader(name, value)
      if (body === null) return void response.end()
      if (typeof body === 'string' || body instanceof Uint8Array) return void response.end(body)
      for await (const part of body) response.write(part)
      response.end()
    }
    const mount = method === 'POST' ? app.post.bind(app) : app.put.bind(app)
    mount(path, idempotency(db, { ...options, principal }), handler)
  }
  app.use(answerErrors)
  return listening(createServer(app))
}
