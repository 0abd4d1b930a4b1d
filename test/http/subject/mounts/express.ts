// The subject on Express: authentication first, then the routes.

import { createServer } from 'node:http'
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express'
import { idempotent, idempotentLeased } from '../../../../src/http/express/index.js'
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
export const serve: Serve = async ({ db, atomic, leased, effects }) => {
  const app = express().disable('x-powered-by')
  app.use(authenticate)
  app.get('/effects', async (request, response) => {
    response.json({ effects: await effects(principal(request) ?? '') })
  })
  for (const { method, path, options, handle } of atomic) {
    const handler = idempotent(db, { ...options, principal }, handle)
    if (method === 'POST') app.post(path, handler)
    else app.put(path, handler)
  }
  for (const { path, options, handle } of leased) {
    app.post(path, idempotentLeased(db, { ...options, principal }, handle))
  }
  app.use(answerErrors)
  return listening(createServer(app))
}
