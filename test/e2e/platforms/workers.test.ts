// The Workers that docs/guides/cloudflare-workers.md shows. Their code is called as it is on Node; `npm run test:matrix
// -- platforms` runs it in workerd, and holds the page's table of entry points against what loads there.

import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { root } from '../../markdown.js'
import { type FreshDatabase, freshDatabase } from '../../servers/fresh-database.js'
import { withClient } from '../../servers/postgres.js'
import charges from './fixtures/workers/charges.js'
import shop from './fixtures/workers/shop.js'
import { openFlakyShop } from './flaky-shop.js'
import { isLong } from './platform-packages.js'
import { type Compatibility, type Worker, type WorkersProject, workersProject } from './workerd.js'

const { exports: ways } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { exports: object }
const entryPoints = Object.entries(ways)
  .filter(([, target]) => typeof target === 'object')
  .map(([name]) => `reprise${name.slice(1)}`)

/** The table of entry points of the page: name, and whether it loads without and with `nodejs_compat`. */
function listed(): Record<string, readonly string[]> {
  const page = readFileSync(`${root}/docs/guides/cloudflare-workers.md`, 'utf8')
  const rows = [...page.matchAll(/^\| (`reprise.*`) \| (\S+) \| (\S+) \|$/gm)]
  return Object.fromEntries(
    rows.flatMap(([, names = '', without = '', withIt = '']) =>
      [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => [name, [without, withIt]]),
    ),
  )
}

/** Calls a Worker with requests: in workerd, or its function on Node. */
type Send = (path: string, init: RequestInit) => Promise<Response>

/** A keyed POST and its repeat reach the service under one key, though the first answer is lost. */
async function passesOn(send: (url: string) => Promise<Send>): Promise<void> {
  const service = await openFlakyShop()
  try {
    const call = await send(service.url)
    const init = { method: 'POST', headers: { 'idempotency-key': '"k-1"' }, body: '{"amount":7}' }
    const answer = await call('/charges', init)
    expect([answer.status, await answer.json()]).toEqual([201, { key: '"k-1"' }])
    expect(service.keys).toEqual(['"k-1"', '"k-1"'])
  } finally {
    await service.close()
  }
}

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
  const pool = new pg.Pool({ connectionString: database.url })
  await postgres({ pool, name: 'shop' }).migrate()
  await pool.query('create table charge (id int generated always as identity, who text, amount int)')
  await pool.end()
})

/** A charge and its repeat are one row. */
async function chargesOnce(send: Send, user: string): Promise<void> {
  const post = async (body: string): Promise<unknown[]> => {
    const headers = { 'idempotency-key': 'k-1', 'content-type': 'application/json', 'x-user': user }
    const answer = await send('/charges', { method: 'POST', headers, body })
    return [answer.status, await answer.json(), answer.headers.get('idempotent-replayed')]
  }
  const first = await post('{"amount":7}')
  expect(first).toEqual([201, { id: expect.any(Number), amount: 7 }, null])
  expect(await post('{"amount":7}')).toEqual([201, first[1], 'true'])
  expect((await post('{"amount":8}'))[0]).toBe(422)
  const made = withClient(database.url, (client) => client.query('select amount from charge where who = $1', [user]))
  expect((await made).rows).toEqual([{ amount: 7 }])
}

describe('on Node', () => {
  it('the Worker passes a keyed request on, and repeats it under its key', () =>
    passesOn(async (url) => (path, init) => shop.fetch(new Request(`http://worker${path}`, init), { SHOP_URL: url })))

  it('the Worker charges once', async () => {
    const left: Promise<unknown>[] = []
    const context = { waitUntil: (work: Promise<unknown>) => void left.push(work) }
    const send: Send = (path, init) =>
      charges.fetch(new Request(`http://worker${path}`, init), { DATABASE_URL: database.url }, context)
    await chargesOnce(send, 'on Node')
    await Promise.all(left)
  })

  it('the page lists every entry point', () => {
    expect(Object.keys(listed()).sort()).toEqual([...entryPoints].sort())
  })
})

function inWorkerd(): void {
  const withoutNode: Compatibility = { date: '2025-09-15' }
  const withNode: Compatibility = { date: '2025-09-15', flags: ['nodejs_compat'] }
  const running: Worker[] = []
  let project: WorkersProject
  beforeAll(() => {
    project = workersProject()
  })
  afterAll(async () => {
    for (const worker of running) await worker.stop()
    project?.remove()
  })
  const kept = async (worker: Promise<Worker>): Promise<Worker> => {
    running.push(await worker)
    return worker
  }
  const sendTo = async (worker: Promise<Worker>): Promise<Send> => {
    const { url } = await kept(worker)
    return (path, init) => fetch(url + path, init)
  }
  const answerOf = async (worker: Promise<Worker>): Promise<unknown> => (await fetch((await kept(worker)).url)).json()

  it.each([
    ['without nodejs_compat', withoutNode],
    ['with nodejs_compat', withNode],
    ['of a date from which nodejs_compat is the default', { date: '2026-08-04' }],
  ])('a Worker %s loads what the page says', async (_which, compatibility) => {
    const { url } = await kept(project.serveModules(entryPoints, compatibility))
    const loaded = await Promise.all(
      entryPoints.map(async (name) => {
        const answer = await fetch(`${url}?module=${name.replaceAll('/', '.')}.js`)
        return [name, answer.ok ? 'yes' : 'no']
      }),
    )
    const column = compatibility === withoutNode ? 0 : 1
    const said = Object.entries(listed()).map(([name, columns]) => [name, columns[column]])
    expect(Object.fromEntries(loaded)).toEqual(Object.fromEntries(said))
  })

  it('a Worker without modules of Node retries, and refuses what needs them', async () => {
    expect(await answerOf(project.serve('tried.ts', withoutNode))).toEqual({
      retried: 3,
      told: 'no channels',
      minted: 36,
      simulated: 'untroubled',
      intent: [true, false],
      fingerprint: 'RUNTIME_UNSUPPORTED',
      storedKey: 'RUNTIME_UNSUPPORTED',
      fileIntents: 'RUNTIME_UNSUPPORTED',
    })
  })

  it('a Worker with modules of Node has digests, and intents that are seen after an await', async () => {
    expect(await answerOf(project.serve('tried.ts', withNode))).toMatchObject({
      retried: 3,
      told: 2,
      intent: [true, true],
      fingerprint: expect.any(Number),
      storedKey: expect.any(Number),
    })
  })

  it.each([
    ['without', withoutNode],
    ['with', withNode],
  ])('a Worker %s nodejs_compat passes a keyed request on, and repeats it under its key', (_how, compatibility) =>
    passesOn((url) => sendTo(project.serve('shop.ts', compatibility, { SHOP_URL: url }))),
  )

  it('a Worker charges once, on PostgreSQL', async () => {
    const send = await sendTo(project.serve('charges.ts', withNode, { DATABASE_URL: database.url }))
    await chargesOnce(send, 'in workerd')
  })

  it('a store in memory is one of the request that makes it; there is no SQLite', async () => {
    const became = { answers: [1, 1], runs: 1, refused: 'SQLITE_DRIVER_MISSING' }
    const { url } = await kept(project.serve('in-memory.ts', withNode))
    for (const _ of ['first', 'again']) expect(await (await fetch(url)).json()).toEqual(became)
  })

  it('a store that is made outside of a request is refused by the runtime', async () => {
    await expect(project.serve('too-early.ts', withNode)).rejects.toThrow(
      'Disallowed operation called within global scope',
    )
  })

  it('a date before 2025-09-15 has no node:fs, which pg imports', async () => {
    const earlier = { ...withNode, date: '2025-09-14' }
    await expect(project.serve('charges.ts', earlier)).rejects.toThrow('No such module "node:fs"')
  })

  it('a date before 2025-05-05 has no FinalizationRegistry, which the HTTP client needs', async () => {
    const { url } = await kept(project.serveModules(['reprise/http/client'], { date: '2025-05-04' }))
    const answer = await fetch(`${url}?module=reprise.http.client.js`)
    expect(await answer.text()).toContain('FinalizationRegistry is not defined')
    const later = await kept(project.serveModules(['reprise/http/client'], { date: '2025-05-05' }))
    expect((await fetch(`${later.url}?module=reprise.http.client.js`)).ok).toBe(true)
  })
}

if (isLong) describe('in workerd', inWorkerd)
