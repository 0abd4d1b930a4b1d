// The subject on the store in memory and plain node:http: for the cases themselves, the command, and bugs that are
// planted.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  type Answer,
  atomicRoute,
  isBodiless,
  leasedRoute,
  type Route,
  type RouteOptions,
  readNodeBody,
} from '../../../src/http/core/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { atomicRoutes } from '../subject/atomic-routes.js'
import { leasedRoutes } from '../subject/leased-routes.js'
import type { SubjectDomain } from '../subject/ledger.js'
import { listening } from '../subject/listening.js'
import { userOf } from '../subject/mounted.js'
import { openSink } from '../subject/sink.js'

/** A bug that is planted: what the layer is not told, or told wrongly. */
export interface Plant {
  /** Changes the request on its way in. */
  request?(request: IncomingMessage): void
  /** Changes the answer on its way out. */
  answer?(answer: Answer): Answer
  /** Who is taken for the caller of a route. */
  principal?(name: string): string
}

/** How such a subject differs from the usual. */
export interface MemorySubjectOptions {
  readonly plant?: Plant
  /** Other options of all routes. */
  readonly more?: Pick<Partial<RouteOptions<never, never>>, 'stores' | 'fields'>
}

/** Starts one, which ends with the test; answers its address. */
export async function memorySubject({ plant = {}, more = {} }: MemorySubjectOptions = {}): Promise<string> {
  const db = memory({ name: 'subject' })
  db.table('subject_effects', { unique: [['id']] })
  const folder = mkdtempSync(join(tmpdir(), 'reprise-sink-'))
  const sink = openSink(folder)
  const domain = db as unknown as SubjectDomain
  const principal = (request: IncomingMessage): string | undefined => {
    const user = userOf(request.headers.authorization)
    return user === undefined ? undefined : (plant.principal?.(user) ?? user)
  }
  // Effects are counted for whoever asked, also where a bug takes all for one.
  const routes: readonly { readonly is: RegExp; readonly route: Route<IncomingMessage> }[] = [
    ...atomicRoutes().map(({ method, path, options, handle }) => ({
      is: patternOf(method, path),
      route: atomicRoute(domain, { ...options, ...more, principal }, handle),
    })),
    ...leasedRoutes(sink).map(({ method, path, options, handle }) => ({
      is: patternOf(method, path),
      route: leasedRoute(domain, { ...options, ...more, principal }, handle),
    })),
  ]
  const effects = (user: string): number =>
    db.rows('subject_effects').filter((row) => row['owner'] === user).length + sink.count(user)
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url: target = '/' } = request
    const user = principal(request)
    if (target === '/effects') {
      if (user === undefined) return void response.writeHead(401).end()
      return void response.end(JSON.stringify({ effects: effects(user) }))
    }
    const found = routes.find(({ is }) => is.test(`${method} ${target}`))
    if (found === undefined) return void response.writeHead(404).end()
    const readBody = (mostBytes: number) => readNodeBody(request, mostBytes)
    const answer = await found.route.handle({ method, target, fields: request.headersDistinct, readBody }, request)
    await sendAnswer(response, plant.answer?.(answer) ?? answer)
  }
  const server = createServer((request, response) => {
    plant.request?.(request)
    void serve(request, response).catch(() => response.writeHead(500).end())
  })
  const { url, close } = await listening(server)
  onTestFinished(async () => {
    await close()
    rmSync(folder, { recursive: true, force: true })
  })
  return url
}

function patternOf(method: string, path: string): RegExp {
  return new RegExp(`^${method} ${path.replaceAll(/:\w+/g, '[^/?]+')}(\\?.*)?$`)
}

async function sendAnswer(response: ServerResponse, { status, headers, body }: Answer): Promise<void> {
  response.writeHead(status, headers.flat() as string[])
  if (isBodiless(status)) response.end()
  else if (body === null || typeof body === 'string' || body instanceof Uint8Array) response.end(body ?? '')
  else {
    for await (const part of body) response.write(part)
    response.end()
  }
}
