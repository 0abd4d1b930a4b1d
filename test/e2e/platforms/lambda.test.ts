// The functions that docs/guides/aws-lambda.md shows, on PostgreSQL, with events of the shapes that AWS documents: each
// in a process that is stopped between two calls, as Lambda freezes it.

import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { gate } from '../../gate.js'
import { type FreshDatabase, freshDatabase } from '../../servers/fresh-database.js'
import { withClient } from '../../servers/postgres.js'
import { type Bank, openBank } from '../apps/bank.js'
import type { GatewayEvent, GatewayResult } from './fixtures/lambda/gateway.js'
import { type Environment, startEnvironment } from './lambda-environment.js'

const recorded = <Event>(name: string): Event =>
  JSON.parse(readFileSync(new URL(`fixtures/lambda/events/${name}.json`, import.meta.url), 'utf8'))

let database: FreshDatabase
let bank: Bank
const reached = gate()
const running: Environment[] = []
beforeAll(async () => {
  database = await freshDatabase()
  const pool = new pg.Pool({ connectionString: database.url })
  await postgres({ pool, name: 'shop' }).migrate()
  await pool.end()
  await run(`create table charge (id int generated always as identity, who text, amount int);
    create table deposit (account text, amount int not null);
    create table receipt (id text, amount int)`)
  // It never answers the first transfer.
  bank = await openBank(() => reached.open())
})
afterAll(async () => {
  for (const environment of running) await environment.end()
  await bank?.close()
})

const run = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)

async function start(file: string): Promise<Environment> {
  const environment = await startEnvironment(file, { DATABASE_URL: database.url, BANK_URL: bank.url })
  running.push(environment)
  return environment
}

/** An event of API Gateway, with another key or body than the recorded one. */
function post(key: string, body = '{"amount":7}', isBase64Encoded = false): GatewayEvent {
  const event = recorded<GatewayEvent>('post')
  return { ...event, headers: { ...event.headers, 'idempotency-key': key }, body, isBase64Encoded }
}

function read({ statusCode, headers, body, isBase64Encoded }: GatewayResult): unknown[] {
  const text = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8').toString()
  return [statusCode, JSON.parse(text), headers['idempotent-replayed'] === 'true']
}

describe.each(['charges.ts', 'charges-hono.ts'])('API Gateway, %s', (file) => {
  const key = (name: string): string => `${file}-${name}`
  let one: Environment
  beforeAll(async () => {
    one = await start(file)
  })

  it('a request and its repeat, in this environment and in another, are one charge of whom the authorizer found', async () => {
    const first = read(await one.call(post(key('twice'))))
    expect(first).toEqual([201, { id: expect.any(Number), amount: 7 }, false])
    expect(read(await one.call(post(key('twice'))))).toEqual([201, first[1], true])
    const other = await start(file)
    // The same request: API Gateway sends bodies of types that it takes for binary in base64.
    const again = post(key('twice'), Buffer.from('{"amount":7}').toString('base64'), true)
    expect(read(await other.call(again))).toEqual([201, first[1], true])
    expect(read(await other.call(post(key('twice'), '{"amount":8}')))).toEqual([422, expect.anything(), false])
    const { id } = first[1] as { id: number }
    expect(await run(`select who, amount from charge where id >= ${id}`)).toEqual([{ who: 'ann', amount: 7 }])
  })

  it('a function whose connections ended while it was frozen goes on, with one charge', async () => {
    const before = read(await one.call(post(key('thawed'))))
    const ended = await run(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`)
    expect(ended.length).toBeGreaterThan(0)
    expect(read(await one.call(post(key('thawed'))))).toEqual([201, before[1], true])
    expect(read(await one.call(post(key('thawed-2'))))).toEqual([201, expect.anything(), false])
  })

  it('nobody is let in whom the authorizer did not find', async () => {
    const event = post(key('nobody'))
    const { authorizer: _authorizer, ...requestContext } = event.requestContext
    expect((await one.call<GatewayResult>({ ...event, requestContext })).statusCode).toBe(401)
  })
})

it('SQS: of a batch that comes again only what failed has an effect', async () => {
  const { Records } = recorded<{ Records: { messageId: string; eventSourceARN: string; body: string }[] }>('sqs')
  const [first, second, third] = Records.map(({ messageId }) => messageId)
  const deposits = await start('deposits.ts')
  // The amount of the second is missing.
  expect(await deposits.call({ Records })).toEqual({ batchItemFailures: [{ itemIdentifier: second }] })
  expect(await deposits.call({ Records })).toEqual({ batchItemFailures: [{ itemIdentifier: second }] })
  const made = () => run('select account, amount from deposit order by account')
  expect(await made()).toEqual([
    { account: 'ann', amount: 7 },
    { account: 'cleo', amount: 9 },
  ])
  // In a queue that keeps an order, what follows comes again too.
  const ordered = Records.map((record) => ({ ...record, eventSourceARN: `${record.eventSourceARN}.fifo` }))
  expect(await deposits.call({ Records: ordered })).toEqual({
    batchItemFailures: [{ itemIdentifier: second }, { itemIdentifier: third }],
  })
  expect((await made()).map(({ account }) => account)).toEqual(['ann', 'ann', 'cleo'])
  expect(first).not.toBe(third)
})

it('a schedule: a payout whose function was ended at its time-out is taken up, and is one transfer', async () => {
  const payouts = await start('payouts.ts')
  const event = { key: 'payout-1', account: 'ann', amount: 7 }
  const call = payouts.call(event)
  await reached.opened
  await Promise.all([expect(call).rejects.toThrow('has ended'), payouts.end()])
  // Its lease is over: by the clock of the store, which is all that counts.
  const made = await run("update reprise_marker set due_at_ms = 1 where operation = 'payout' returning state")
  expect(made).toEqual([{ state: 'claimed' }])
  const everyMinute = await start('every-minute.ts')
  expect(await everyMinute.call(recorded('schedule'))).toMatchObject({ taken: 1 })
  expect([bank.requests(), bank.transfers()]).toEqual([2, 1])
  const again = await start('payouts.ts')
  expect(await again.call(event)).toEqual({ transfer: '{"receipt":"receipt 1"}' })
  expect([bank.requests(), bank.transfers()]).toEqual([2, 1])
})

it('a schedule: what the charges emitted is handled once, by drain', async () => {
  const everyMinute = await start('every-minute.ts')
  const charges = await start('charges.ts')
  await everyMinute.call(recorded('schedule'))
  await charges.call(post('scheduled'))
  const [first, again] = [await everyMinute.call(recorded('schedule')), await everyMinute.call(recorded('schedule'))]
  // A consumer counts for as long as it lives.
  expect(first).toEqual({ handled: 1, taken: 0, finished: 0, messages: 0 })
  expect(again).toEqual(first)
  const emitted = await run('select count(*)::int as n from reprise_message')
  expect(await run('select count(*)::int as n from receipt')).toEqual(emitted)
})
