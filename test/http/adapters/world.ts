// A database for one test file, and requests to whatever is served on it.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { afterAll, afterEach } from 'vitest'
import type { HttpRequest } from '../../../src/http/core/index.js'
import { type SqliteClient, type SqliteDomain, type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import type { Served } from '../subject/mounted.js'

/** A world. */
export interface World {
  readonly db: SqliteDomain<SqliteClient>
  /** Its file. */
  readonly file: string
  /** Closes what was served when the test is over. */
  serve(served: Served): string
  /** POST of some JSON, with a key. */
  post(
    url: string,
    init?: { readonly key?: string; readonly body?: string; readonly headers?: Record<string, string> },
  ): Promise<Response>
  /** The rest of the options of a route, under a name that no other route has. */
  route(): {
    readonly name: string
    readonly principal: () => string
    readonly parse: (request: HttpRequest) => { amount: number }
  }
  /** How many rows were written. */
  rows(): Promise<number>
}

/** Opens a world; it is closed after the tests of the file. */
export async function openWorld(): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-world-'))
  const file = join(folder, 'world.db')
  const db = sqlite({ name: 'world', open: () => new Database(file) as unknown as SqliteHandle })
  await db.migrate()
  await db.transact((tx) => tx.query('create table charge (id text primary key)'))
  const served: Served[] = []
  let names = 0
  afterEach(async () => {
    for (const one of served.splice(0)) await one.close()
    await db.transact((tx) => tx.query('delete from charge'))
  })
  afterAll(async () => {
    await db.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    db,
    file,
    serve(one) {
      served.push(one)
      return one.url
    },
    post: (url, { key = 'k-1', body = '{"amount":7}', headers = {} } = {}) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: { 'idempotency-key': key, 'content-type': 'application/json', ...headers },
      }),
    route: () => ({
      name: `route-${++names}`,
      principal: () => 'north',
      parse: (request) => request.json() as { amount: number },
    }),
    rows: async () => (await db.transact((tx) => tx.query('select id from charge'))).rows.length,
  }
}
