// Routes on PostgreSQL: a serialization failure runs the whole handler again, in a fresh transaction and with a fresh
// request; an answer that was made of trouble is never remembered.

import { readFileSync } from 'node:fs'
import pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { AnswerError, atomicRoute, dropInRoute, leasedRoute, reply } from '../../../src/http/core/index.js'
import { hold } from '../../../src/idempotency/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type Native, send, usual } from '../../http/route-world.js'
import { postgresWorld, type World } from '../postgres/world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

/** What is thrown by the statement of a transaction that another one has overtaken. */
async function overtaken(tx: { query(text: string): Promise<unknown> }, id: string): Promise<void> {
  await tx.query(`select amount from item where id = '${id}'`)
  await world.raw.query('update item set amount = amount + 10 where id = $1', [id])
  await tx.query(`update item set amount = amount + 1 where id = '${id}'`)
}

it('runs a handler again after a serialization failure, whatever the first run did to its request and input', async () => {
  await world.raw.query("insert into item (id, amount) values ('rerun', 0)")
  const seen: unknown[] = []
  const route = atomicRoute(
    world.db,
    {
      ...usual,
      isolation: 'serializable',
      principal: ({ user }: Native) => user,
      parse: (request) => request.json() as { amount: number; list: number[] },
    },
    async ({ tx, request, input, principal }) => {
      const { params } = request
      seen.push(structuredClone({ input, body: request.json(), field: request.fields('x-a'), principal, params }))
      input.amount = 99
      input.list.push(99)
      request.bytes().fill(0)
      Object.assign(request.params, { id: '99' })
      ;(request.fields('x-a') as string[]).push('99')
      expect(() => (principal as unknown as string[]).push('99')).toThrow(TypeError)
      if (seen.length === 1) await overtaken(tx, 'rerun')
      else await tx.query("update item set amount = amount + 1 where id = 'rerun'")
      return reply(201, { run: seen.length })
    },
  )
  const sent = { key: mintKey() as string, body: '{"amount":1,"list":[1]}', headers: { 'x-a': '1' } }
  expect(await send(route, sent)).toMatchObject({ status: 201, text: '{"run":2}' })
  const fresh = { amount: 1, list: [1] }
  const run = { input: fresh, body: fresh, field: ['1'], principal: ['ada'], params: {} }
  expect(seen).toEqual([run, run])
  expect(await send(route, sent)).toMatchObject({
    status: 201,
    text: '{"run":2}',
    headers: { 'idempotent-replayed': 'true' },
  })
  expect((await world.raw.query("select amount from item where id = 'rerun'")).rows).toEqual([{ amount: 11 }])
})

it('runs again also where errors are made into answers, and remembers none that stands for a store in trouble', async () => {
  await world.raw.query("insert into item (id, amount) values ('busy', 0)")
  let runs = 0
  let isBusy = true
  const route = (name: string, status: number) =>
    atomicRoute(
      world.db,
      {
        ...usual,
        name,
        attempts: 3,
        required: false,
        isolation: 'serializable',
        principal: ({ user }: Native) => user,
        // Whatever is thrown becomes an answer; one of them would be stored.
        answerOf: () => reply(status, 'translated'),
      },
      async ({ tx }) => {
        runs += 1
        if (isBusy) await overtaken(tx, 'busy')
        return reply(201)
      },
    )
  const key = mintKey()
  const busy = route('busy', 409)
  const problem = { status: 503, problem: 'store-unavailable', headers: { 'retry-after': '1' } }
  expect(await send(busy, { key })).toMatchObject(problem)
  expect(runs).toBe(3)
  expect(await send(busy, { key: undefined })).toMatchObject(problem)
  expect(await send(route('busier', 500))).toMatchObject(problem)
  expect(runs).toBe(9)
  isBusy = false
  const later = await send(busy, { key })
  expect(later).toMatchObject({ status: 201 })
  expect(later.headers['idempotent-replayed']).toBeUndefined()
})

it('remembers an answer that is made of an error which trying again does not help', async () => {
  await world.raw.query("insert into item (id) values ('taken')")
  let runs = 0
  const route = atomicRoute(
    world.db,
    { ...usual, name: 'taken', principal: ({ user }: Native) => user },
    async ({ tx }) => {
      runs += 1
      try {
        await tx.query("insert into item (id) values ('taken')")
      } catch (cause) {
        throw new AnswerError(reply(409, 'taken'), { cause })
      }
      return reply(201)
    },
  )
  const key = mintKey()
  expect(await send(route, { key })).toMatchObject({ status: 409, text: 'taken' })
  expect((await send(route, { key })).headers['idempotent-replayed']).toBe('true')
  expect(runs).toBe(1)
})

it('counts keys in the store, by the index that the documentation says to create', async () => {
  const page = readFileSync(new URL('../../../docs/reference/http-server.md', import.meta.url), 'utf8')
  const [, statement = ''] = /^(CREATE INDEX .+)$/m.exec(page) ?? []
  await world.raw.query(statement)
  await world.raw.query('set enable_seqscan = off')
  const plan = await world.raw.query("explain select 1 from reprise_marker where scope = 'x' limit 5")
  expect(JSON.stringify(plan.rows)).toContain('reprise_marker_scope')
  const route = atomicRoute(
    world.db,
    { ...usual, name: 'limited', liveKeys: 1, principal: ({ user }: Native) => user },
    () => reply(201),
  )
  expect((await send(route)).status).toBe(201)
  expect(await send(route)).toMatchObject({ status: 429, problem: 'too-many-keys' })
  expect((await send(route, { user: 'bob' })).status).toBe(201)
})

it('refuses with 503 where the store cannot be reached, soon, and runs nothing', async () => {
  const pool = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/none' })
  const db = postgres({ pool, name: 'gone', deadline: '1s' })
  let runs = 0
  const handler = () => {
    runs += 1
    return reply(201)
  }
  const who = { ...usual, principal: ({ user }: Native) => user }
  const routes = [
    atomicRoute(db, { ...who, name: 'atomic', required: false }, handler),
    atomicRoute(db, { ...who, name: 'counted', liveKeys: 1 }, handler),
    leasedRoute(db, { ...who, name: 'leased', recover: hold() }, handler),
  ]
  for (const route of routes) {
    expect(await send(route)).toMatchObject({
      status: 503,
      problem: 'store-unavailable',
      headers: { 'retry-after': '1' },
    })
  }
  expect(await send(routes[0] as (typeof routes)[0], { key: undefined })).toMatchObject({ status: 503 })
  expect(runs).toBe(0)
  await pool.end()
})

it('runs a handler that exists once: a serialization failure is a 503 that can be repeated, and nothing is kept', async () => {
  await world.raw.query("insert into item (id, amount) values ('once', 0)")
  let runs = 0
  const options = { ...usual, name: 'once', isolation: 'serializable', principal: ({ user }: Native) => user } as const
  const route = dropInRoute(world.db, options, async ({ tx }) => {
    runs += 1
    if (runs === 1) await overtaken(tx, 'once')
    else await tx.query("update item set amount = amount + 1 where id = 'once'")
    return reply(201, { run: runs })
  })
  const sent = { key: mintKey() as string, body: '{}' }
  const lost = await send(route, sent)
  expect([lost.status, JSON.parse(lost.text), runs]).toMatchObject([503, { retryable: true }, 1])
  expect(await send(route, sent)).toMatchObject({ status: 201, text: '{"run":2}' })
  const { rows } = await world.raw.query("select amount from item where id = 'once'")
  expect(Number(rows[0]?.['amount'])).toBe(11)
})
