// The subject on Express, its handlers as they would be without Reprise: they read the request, and write to the
// response. The routes are those with an effect in the ledger.

import type { Request, Response } from 'express'
import { idempotency } from '../../../../src/http/express/index.js'
import { nodeFacts } from '../../../../src/http/wire/index.js'
import type { AtomicSubjectRoute } from '../atomic-routes.js'
import { existing } from '../existing-handler.js'
import type { Serve } from '../mounted.js'
import { principal, serveExpress } from './express-app.js'

/** Serves it. */
export const serve: Serve = (subject) =>
  serveExpress(subject, (app) => {
    for (const route of subject.atomic) {
      const mount = route.method === 'POST' ? app.post.bind(app) : app.put.bind(app)
      const guard = idempotency(subject.db, { ...route.options, principal })
      mount(route.path, guard, (request: Request, response: Response) => handled(route, request, response))
    }
  })

async function handled(route: AtomicSubjectRoute, request: Request, response: Response): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const facts = nodeFacts(request, { target: request.originalUrl, params: request.params })
  const user = principal(request) as string
  const { status, headers, body } = await existing(route, { facts, bytes: Buffer.concat(parts), user, tx: request.tx })
  response.status(status)
  for (const [name, value] of headers) response.appendHeader(name, value)
  if (body === null) return void response.end()
  if (typeof body === 'string' || body instanceof Uint8Array) return void response.end(body)
  for await (const part of body) response.write(part)
  response.end()
}
