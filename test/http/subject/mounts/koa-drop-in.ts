// The subject on Koa, its handlers as they would be without Reprise: they read the request, and set what Koa sends.

import { Readable } from 'node:stream'
import type { Context, Middleware } from 'koa'
import { idempotency } from '../../../../src/http/koa/index.js'
import { nodeFacts } from '../../../../src/http/wire/index.js'
import type { AtomicSubjectRoute } from '../atomic-routes.js'
import { existing } from '../existing-handler.js'
import type { Serve } from '../mounted.js'
import { principal, serveKoa } from './koa-app.js'

/** Serves it. */
export const serve: Serve = (subject) =>
  serveKoa(subject, (on) => {
    for (const route of subject.atomic) {
      const guard = idempotency(subject.db, { ...route.options, principal }) as Middleware
      on(route.method, route.path, (ctx) => guard(ctx, () => handled(route, ctx as Context)))
    }
  })

async function handled(route: AtomicSubjectRoute, ctx: Context): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of ctx.req) parts.push(part as Buffer)
  const { params } = ctx as unknown as { readonly params: Record<string, string> }
  const facts = nodeFacts(ctx.req, { target: ctx.originalUrl, params })
  const user = principal(ctx) as string
  const { status, headers, body } = await existing(route, {
    facts,
    bytes: Buffer.concat(parts),
    user,
    tx: ctx.state['tx'],
  })
  ctx.status = status
  ctx.body =
    body === null || typeof body === 'string' ? (body ?? '') : Readable.from(body instanceof Uint8Array ? [body] : body)
  ctx.remove('content-type')
  for (const [name, value] of headers) ctx.append(name, value)
}
