// The subject on Hono 4: authentication, the shape of the body, then the layer, then the handler.

import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { openLedger } from './ledger.mjs'
import { isCharge, subjectRoutes, userOf } from './routes.mjs'

/** @typedef {import('./routes.mjs').SubjectRoute} SubjectRoute */

/**
 * @param {string} folder of the ledger
 * @param {(route: SubjectRoute) => import('hono').MiddlewareHandler | undefined} guard undefined: the layer has no such
 *   route
 */
export function onHono(folder, guard) {
  const ledger = openLedger(folder)
  const app = new Hono()
  app.use(async (context, next) => {
    const user = userOf(context.req.header('authorization'))
    if (user === undefined) return context.body(null, 401)
    context.set('user', user)
    await next()
  })
  app.get('/effects', (context) => context.json({ effects: ledger.count(context.get('user')) }))
  for (const route of subjectRoutes(ledger)) {
    const layer = guard(route)
    if (layer === undefined) continue
    app.on(route.method, route.path, shape(route), layer, async (context) => {
      const query = new URL(context.req.url).searchParams
      const amount = route.form ? 0 : (await context.req.json()).amount
      return responseOf(await route.handle({ user: context.get('user'), amount, query }))
    })
  }
  app.onError((_error, context) => context.json({ reason: 'error' }, 500))
  return getRequestListener(app.fetch)
}

/** @param {SubjectRoute} route @returns {import('hono').MiddlewareHandler} */
function shape({ form }) {
  return async (context, next) => {
    const body = form ? { amount: 0 } : await context.req.json().catch(() => undefined)
    if (!isCharge(body)) return context.json({ reason: 'amount is a whole number' }, 400)
    await next()
  }
}

/** @param {import('./routes.mjs').Answer} answer */
function responseOf({ status, headers = {}, json, bytes, parts, redirect }) {
  const fields = new Headers()
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values].flat()) fields.append(name, value)
  }
  if (redirect !== undefined) fields.set('Location', redirect)
  if (json !== undefined) fields.set('Content-Type', 'application/json')
  const body = json === undefined ? (bytes ?? (parts === undefined ? null : streamOf(parts))) : JSON.stringify(json)
  return new Response(body, { status, headers: fields })
}

/** @param {readonly string[]} parts */
function streamOf(parts) {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part))
      controller.close()
    },
  })
}
