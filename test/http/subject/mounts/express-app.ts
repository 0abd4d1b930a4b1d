// What the subject has on Express whichever form its routes have: authentication before them, an answer to errors
// behind them.

import { createServer } from 'node:http'
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express'
import { listening } from '../listening.js'
import { type Served, type Subject, userOf } from '../mounted.js'

const users = new WeakMap<Request, string>()

/** Who calls. */
export const principal = (request: Request): string | undefined => users.get(request)

const authenticate: RequestHandler = (request, response, next) => {
  const user = userOf(request.headers.authorization)
  if (user === undefined) return void response.status(401).end()
  users.set(request, user)
  next()
}

const answerErrors: ErrorRequestHandler = (_error, _request, response, _next) => {
  response.status(500).json({ reason: 'error' })
}

/** Serves an application with the routes that are mounted. */
export function serveExpress({ effects }: Subject, mount: (app: Express) => void): Promise<Served> {
  const app = express().disable('x-powered-by')
  app.use(authenticate)
  app.get('/effects', async (request, response) => {
    response.json({ effects: await effects(principal(request) ?? '') })
  })
  mount(app)
  app.use(answerErrors)
  return listening(createServer(app))
}
