// The subject as a handler of the fetch standard, served by a server that knows nothing but that.

import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { type FetchHandler, idempotent, idempotentLeased } from '../../../../src/http/fetch/index.js'
import { statusPath } from '../leased-routes.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

type Params = Readonly<Record<string, string>>

const principal = (request: Request) => userOf(request.headers.get('authorization') ?? undefined)
const params = (found: Params): Params => found

/** Serves it. */
export const serve: Serve = async ({ db, atomic, leased, effects }) => {
  const routes: { method: string; pattern: RegExp; handler: FetchHandler<[Params]> }[] = [
    ...atomic.map(({ method, path, options, handle }) => ({
      method,
      pattern: patternOf(path),
      handler: idempotent(db, { ...options, principal, params }, handle),
    })),
    ...leased.flatMap(({ method, path, options, handle }) => {
      const handler = idempotentLeased(db, { ...options, principal, params }, handle)
      const status = { method: 'GET', pattern: patternOf(statusPath(path)), handler: handler.status }
      return [{ method, pattern: patternOf(path), handler }, status]
    }),
  ]
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    for (const { method, pattern, handler } of routes) {
      const found = method === request.method ? pattern.exec(pathname) : null
      if (found !== null) return handler(request, { ...found.groups }).catch(() => new Response(null, { status: 500 }))
    }
    const user = principal(request)
    if (request.method !== 'GET' || pathname !== '/effects') return new Response(null, { status: 404 })
    return user === undefined ? new Response(null, { status: 401 }) : Response.json({ effects: await effects(user) })
  }
  return listening(createAdaptorServer({ fetch, createServer }) as Server)
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
}
