// The subject on bare `node:http`: a table of routes, and a listener for each.

import { createServer, type IncomingMessage } from 'node:http'
import { idempotent, idempotentLeased, type NodeListener, type NodeOptions } from '../../../../src/http/node/index.js'
import { statusPath } from '../leased-routes.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

const principal = (request: IncomingMessage) => userOf(request.headers.authorization)
const quiet: NodeOptions = { onError: (_error, _request, response) => void response.writeHead(500).end() }

/** Serves it. */
export const serve: Serve = async ({ db, atomic, leased, effects }) => {
  const routes: { readonly method: string; readonly path: RegExp; readonly listener: NodeListener }[] = [
    ...atomic.map(({ method, path, options, handle }) => ({
      method,
      path: pattern(path),
      listener: idempotent(db, { ...options, ...quiet, principal }, handle),
    })),
    ...leased.flatMap(({ method, path, options, handle }) => {
      const listener = idempotentLeased(db, { ...options, ...quiet, principal }, handle)
      const status = { method: 'GET', path: pattern(statusPath(path)), listener: listener.status }
      return [{ method, path: pattern(path), listener }, status]
    }),
  ]
  const server = createServer(async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    const route = routes.find(({ method, path: expected }) => method === request.method && expected.test(path))
    if (route !== undefined) return route.listener(request, response)
    const user = principal(request)
    if (request.method !== 'GET' || path !== '/effects') return void response.writeHead(404).end()
    if (user === undefined) return void response.writeHead(401).end()
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ effects: await effects(user) }))
  })
  return listening(server)
}

function pattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`)
}
