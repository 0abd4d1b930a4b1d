// The subject on Express 5: authentication, the body, its shape, then the layer, then the handler.

import express from 'express'
import { openLedger } from './ledger.mjs'
import { fieldsOf, isCharge, subjectRoutes, userOf } from './routes.mjs'

/** @typedef {import('./routes.mjs').SubjectRoute} SubjectRoute */

/**
 * @typedef {object} Layer
 * @property {(route: SubjectRoute) => Promise<express.RequestHandler[] | undefined>} guard what stands before the
 *   handler; undefined: the layer has no such route
 * @property {(request: express.Request) => boolean} [isAnswered] whether the layer has answered although the handler is
 *   called
 * @property {(request: express.Request) => Promise<void>} [notSent] told where the handler proves that nothing happened
 */

const refused = 'urn:subject:refused'

/** @param {string} folder of the ledger @param {Layer} layer */
export async function onExpress(folder, { guard, isAnswered, notSent }) {
  const ledger = openLedger(folder)
  const app = express().disable('x-powered-by').set('etag', false)
  app.use((request, response, next) => {
    const user = userOf(request.headers.authorization)
    if (user === undefined) return void response.status(401).end()
    response.locals['user'] = user
    next()
  })
  app.get('/effects', (_request, response) => {
    response.json({ effects: ledger.count(response.locals['user']) })
  })
  for (const route of subjectRoutes(ledger)) {
    const before = await guard(route)
    if (before === undefined) continue
    const method = route.method === 'PUT' ? 'put' : 'post'
    app[method](route.path, ...bodyOf(route), ...before, async (request, response) => {
      if (isAnswered?.(request)) return
      const query = new URL(request.url, 'http://subject').searchParams
      const answer = await route.handle({ user: response.locals['user'], amount: request.body?.amount, query })
      if (answer.notSent) await notSent?.(request)
      send(response, answer)
    })
  }
  app.use(answerErrors)
  return app
}

/** @param {SubjectRoute} route @returns {express.RequestHandler[]} */
function bodyOf({ form }) {
  if (form) {
    const read = express.raw({ type: 'multipart/form-data' })
    return [
      read,
      async (request, _response, next) => {
        request.body = await fieldsOf(request.body, request.headers['content-type'] ?? '')
        next()
      },
    ]
  }
  return [
    express.json(),
    (request, response, next) => {
      if (isCharge(request.body)) next()
      else response.status(400).json({ reason: 'amount is a whole number' })
    },
  ]
}

/** @param {express.Response} response @param {import('./routes.mjs').Answer} answer */
function send(response, { status, headers = {}, json, bytes, parts, redirect }) {
  response.status(status).set(headers)
  if (redirect !== undefined) response.location(redirect).send()
  else if (json !== undefined) response.json(json)
  else if (bytes !== undefined) response.send(Buffer.from(bytes))
  else if (parts !== undefined) {
    for (const part of parts) response.write(part)
    response.end()
  } else response.send()
}

/**
 * Layers that leave their refusals to the application set the status; a record that says an error is sent as it was.
 */
/** @type {express.ErrorRequestHandler} */
const answerErrors = (error, _request, response, next) => {
  if (response.headersSent) return next(error)
  if (!(error instanceof Error)) return void response.send(error)
  const status = response.statusCode >= 400 ? response.statusCode : (Object(error).status ?? 500)
  response.status(status).type('application/problem+json')
  response.send(JSON.stringify({ type: refused, title: error.message, status }))
}
