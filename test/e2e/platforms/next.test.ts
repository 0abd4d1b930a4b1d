// The app that docs/guides/next-js.md shows. Its route handler is called as Next calls it, with a Request; `npm run
// test:matrix -- platforms` builds and serves the app with Next itself.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type FreshDatabase, freshDatabase } from '../../servers/fresh-database.js'
import { withClient } from '../../servers/postgres.js'
import { type NextApp, type NextServer, nextApp } from './next-app.js'
import { isLong } from './platform-packages.js'

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
  const pool = new pg.Pool({ connectionString: database.url })
  await postgres({ pool, name: 'shop' }).migrate()
  await pool.query(`create table charge (id int generated always as identity, who text, amount int);
    create table transfer (who text, amount int)`)
  await pool.end()
})

const rowsOf = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)

const headersOf = (key: string, user: string) => ({
  'content-type': 'application/json',
  'idempotency-key': key,
  'x-user': user,
})

async function read(answer: Response): Promise<unknown[]> {
  return [answer.status, await answer.json(), answer.headers.get('idempotent-replayed')]
}

describe('the route handlers', () => {
  type Handler = (request: Request, context?: unknown) => Promise<Response>
  // Next resolves imports without an extension, as Vite does, and TypeScript for Node does not.
  const load = async (path: string): Promise<Handler> => (await import(/* @vite-ignore */ path)).POST

  const post = (key: string, body: string): Request =>
    new Request('http://shop.example/api/charges', { method: 'POST', headers: headersOf(key, 'ann'), body })

  beforeAll(() => {
    process.env['DATABASE_URL'] = database.url
  })
  afterAll(() => (globalThis as { pool?: pg.Pool }).pool?.end())

  it('carry out a request and its repeat once', async () => {
    const POST = await load('./fixtures/next/app/api/charges/route.ts')
    const first = await read(await POST(post('k-1', '{"amount":7}')))
    expect(first).toEqual([201, { id: expect.any(Number), amount: 7 }, null])
    expect(await read(await POST(post('k-1', '{ "amount": 7.0 }')))).toEqual([201, first[1], 'true'])
    expect((await POST(post('k-1', '{"amount":8}'))).status).toBe(422)
    expect((await POST(post('k-2', '{"amount":"8"}'))).status).toBe(400)
    expect(await rowsOf("select amount from charge where who = 'ann'")).toEqual([{ amount: 7 }])
  })

  it('read what Next found in the path', async () => {
    const POST = await load('./fixtures/next/app/api/accounts/[account]/charges/route.ts')
    const context = { params: Promise.resolve({ account: '77' }) }
    for (const replayed of [null, 'true']) {
      const answer = await POST(post('k-3', '{"amount":9}'), context)
      expect(await read(answer)).toEqual([201, { id: expect.any(Number), who: '77', amount: 9 }, replayed])
    }
    expect(await rowsOf("select amount from charge where who = '77'")).toEqual([{ amount: 9 }])
  })
})

function servedByNext(): void {
  let app: NextApp
  let server: NextServer | undefined
  beforeAll(() => {
    app = nextApp()
  })
  afterAll(async () => {
    await server?.end('SIGKILL')
    app?.remove()
  })

  const serve = async (how: 'start' | 'dev'): Promise<NextServer> => {
    await server?.end('SIGKILL')
    server = await app.serve(how, { DATABASE_URL: database.url })
    return server
  }
  const post = async ({ url }: NextServer, path: string, key: string, user: string): Promise<unknown[]> =>
    read(await fetch(url + path, { method: 'POST', headers: headersOf(key, user), body: '{"amount":7}' }))

  it('builds without a complaint', () => {
    expect(app.build()).not.toMatch(/warn|error/i)
  })

  it('a request and its repeat are one charge, also after the server was killed', async () => {
    const first = await post(await serve('start'), '/api/charges', 'k-1', 'cleo')
    expect(first).toEqual([201, { id: expect.any(Number), amount: 7 }, null])
    expect(await post(await serve('start'), '/api/charges', 'k-1', 'cleo')).toEqual([201, first[1], 'true'])
    expect(await rowsOf("select amount from charge where who = 'cleo'")).toEqual([{ amount: 7 }])
  })

  it('fifty of them at once are one charge', async () => {
    const started = await serve('start')
    const all = await Promise.all(Array.from({ length: 50 }, () => post(started, '/api/charges', 'k-1', 'dora')))
    for (const [status] of all) expect([201, 409]).toContain(status)
    expect(await rowsOf("select amount from charge where who = 'dora'")).toEqual([{ amount: 7 }])
  })

  it('a route has what is in its path', async () => {
    const made = [201, { id: expect.any(Number), who: '78', amount: 7 }]
    const started = await serve('start')
    expect(await post(started, '/api/accounts/78/charges', 'k-2', 'cleo')).toEqual([...made, null])
    expect(await post(started, '/api/accounts/78/charges', 'k-2', 'cleo')).toEqual([...made, 'true'])
  })

  it('a form that is sent twice is one transfer', async () => {
    const { url } = await serve('start')
    const page = await (await fetch(`${url}/transfers`)).text()
    const [, action = ''] = /name="(\$ACTION_ID_[0-9a-f]+)"/.exec(page) ?? []
    const [, key = ''] = /name="key" value="([^"]+)"/.exec(page) ?? []
    expect([action, key]).not.toContain('')
    for (const _ of ['first', 'again']) {
      const body = new FormData()
      for (const [name, value] of Object.entries({ [action]: '', key, amount: '5' })) body.append(name, value)
      expect((await fetch(`${url}/transfers`, { method: 'POST', headers: { origin: url }, body })).status).toBe(200)
    }
    expect(await rowsOf('select who, amount from transfer')).toEqual([{ who: 'ann', amount: 5 }])
  })

  it('the instrumentation does the upkeep', async () => {
    await rowsOf("delete from reprise_marker where operation = 'reprise.upkeep'")
    await serve('start')
    const turns = () => rowsOf("select state from reprise_marker where operation = 'reprise.upkeep'")
    await expect.poll(turns).toEqual([{ state: 'succeeded' }])
  })

  it('next dev: a route that is edited while it runs goes on', async () => {
    const started = await serve('dev')
    expect(await post(started, '/api/charges', 'k-1', 'emil')).toMatchObject([201, { amount: 7 }, null])
    const file = join(app.folder, 'app', 'api', 'charges', 'route.ts')
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('reply(201, rows[0])', 'reply(202, rows[0])'))
    let number = 0
    const status = async () => (await post(started, '/api/charges', `edited-${++number}`, 'emil'))[0]
    await expect.poll(status).toBe(202)
    expect(await post(started, '/api/charges', 'k-1', 'emil')).toMatchObject([201, { amount: 7 }, 'true'])
  })
}

if (isLong) describe('served by Next', servedByNext)
