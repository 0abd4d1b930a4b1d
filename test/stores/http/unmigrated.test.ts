// A service whose store was never migrated: a problem of its own that names the fix, in every mode, told to the
// server's log, and no handler runs; after the migration everything as usual.

import { createServer, type Server } from 'node:http'
import Database from 'libsql'
import { afterAll, describe, expect, it } from 'vitest'
import type { RouteDomain } from '../../../src/http/core/index.js'
import { idempotent, idempotentLeased, reply } from '../../../src/http/node/index.js'
import { hold, type RecordStore } from '../../../src/idempotency/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { listening } from '../../http/subject/listening.js'
import { postgresWorld } from '../postgres/world.js'
import { freshFile } from '../sqlite/files.js'

type Unmigrated = RouteDomain<unknown> & RecordStore & { migrate(): Promise<unknown>; close(): Promise<unknown> }

const stores: Record<string, () => Promise<Unmigrated>> = {
  SQLite: async () => {
    const file = freshFile()
    return sqlite({ name: 'new', open: () => new Database(file) as unknown as SqliteHandle })
  },
  PostgreSQL: async () => {
    const { pool } = await postgresWorld()
    return postgres({ pool, name: 'new', prefix: 'unmigrated_' })
  },
}

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

describe.each(Object.keys(stores))('on %s', (name) => {
  it('a store without its tables is a 500 that says what to run, and serves once it has them', async () => {
    const db = await (stores[name] as () => Promise<Unmigrated>)()
    let runs = 0
    const thrown: unknown[] = []
    const told: { route: string; problem: string; message: string }[] = []
    const handler = () => reply(201, { runs: ++runs })
    const options = (route: string) => ({
      name: route,
      principal: () => 'ada',
      log: ({ problem, message }: { problem: string; message: string }) => void told.push({ route, problem, message }),
      onError: (error: unknown, _request: unknown, response: { writeHead(status: number): { end(): void } }) => {
        thrown.push(error)
        response.writeHead(500).end()
      },
    })
    const atomic = idempotent(db, options('atomic'), handler)
    const leased = idempotentLeased(db, { ...options('leased'), recover: hold() }, handler)
    const server = createServer((request, response) => (request.url === '/leased' ? leased : atomic)(request, response))
    servers.push(server)
    const { url } = await listening(server)
    const post = (path: string) =>
      fetch(url + path, { method: 'POST', headers: { 'idempotency-key': 'k-1' }, body: 'x' })
    for (const path of ['/atomic', '/leased']) {
      const answer = await post(path)
      expect([path, answer.status, thrown]).toEqual([path, 500, []])
      expect(answer.headers.get('retry-after')).toBeNull()
      const problem = (await answer.json()) as { type: string; detail: string; retryable: boolean }
      expect(problem).toMatchObject({ type: 'urn:reprise:problem:store-not-migrated', retryable: false })
      expect(problem.detail).toMatch(/db\.migrate\(\).*reprise migrate/)
      expect((await post(path)).status).toBe(500)
    }
    // Once for each route, since each has a log of its own here, and not once for each request.
    expect(told.map(({ route, problem }) => [route, problem])).toEqual([
      ['atomic', 'store-not-migrated'],
      ['leased', 'store-not-migrated'],
    ])
    for (const { message } of told) expect(message).toMatch(/MIGRATION_MISSING.*db\.migrate\(\)/)
    expect(runs).toBe(0)
    await db.migrate()
    for (const path of ['/atomic', '/leased']) expect((await post(path)).status).toBe(201)
    expect(runs).toBe(2)
    await db.close()
  })
})
