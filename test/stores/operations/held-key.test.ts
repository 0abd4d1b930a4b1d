// What a caller is told while another process works under its key: since when, and what it waited for when its time is
// over. Two processes are two domains, with nothing in common but the store.

import pg from 'pg'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { atomicRoute, leasedRoute, type Route, reply } from '../../../src/http/core/index.js'
import { hold } from '../../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../../src/identity/index.js'
import { systemClock } from '../../../src/kernel/index.js'
import { type PostgresDomain, type PostgresOptions, postgres } from '../../../src/stores/postgres/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { type Native, send, usual } from '../../http/route-world.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { freshFile, itemStore } from '../sqlite/files.js'

const pools: pg.Pool[] = []
let url: string
beforeAll(async () => {
  const database = await createDatabase(inject('postgresUrl'))
  url = database.url
  await domain().migrate()
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await database.drop()
  })
})

function domain(more: Partial<PostgresOptions<pg.Pool, pg.Pool>> = {}): PostgresDomain<pg.Pool> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pools.push(pool)
  return postgres({ name: 'shop', pool, ...more })
}

/** Sends a request to each of two routes while the handler of the first is at work. */
async function whileHeld(holder: (work: () => Promise<void>) => Route<Native>, others: readonly Route<Native>[]) {
  const works = gate(2)
  const [key, fromMs] = [mintKey() as string, Math.floor(systemClock.wallMs())]
  const first = send(
    holder(() => works.arrive()),
    { key },
  )
  await works.waiting(1)
  const untilMs = Math.ceil(systemClock.wallMs())
  const refused = []
  for (const other of others) refused.push(await refusedBy(other, key))
  works.open()
  expect(await first).toMatchObject({ status: 201 })
  return { refused, fromMs, untilMs }
}

// Who holds the key is asked while one waits for it; of a short wait on a busy machine the answer may come too late.
async function refusedBy(other: Route<Native>, key: string) {
  for (let tries = 1; ; tries += 1) {
    const answer = await send(other, { key })
    if (tries === 100 || answer.status !== 409 || problemIn(answer).heldSinceMs !== undefined) return answer
  }
}

const problemIn = ({ text }: { readonly text: string }) => JSON.parse(text) as { readonly heldSinceMs?: number }

it('PostgreSQL tells since when the transaction is open that holds the key, whoever waits and however long', async () => {
  const [here, there, patient] = [domain(), domain(), domain()]
  const never = async () => reply(500)
  // The first transaction of a connection asks who it is; later ones send their claim with BEGIN.
  await Promise.all([there, patient].map((db) => db.transact(async (tx) => tx.query('select 1'))))
  const { refused, fromMs, untilMs } = await whileHeld(
    (work) =>
      atomicRoute(here, usual, async () => {
        await work()
        return reply(201)
      }),
    [
      atomicRoute(there, usual, never),
      atomicRoute(patient, { ...usual, duplicates: 'wait', wait: '900ms' }, never),
      // Through another domain of the same name, whose connections are new.
      atomicRoute(domain(), usual, never),
    ],
  )
  for (const answer of refused) {
    expect(answer).toMatchObject({ status: 409, problem: 'in-flight' })
    const { heldSinceMs = 0 } = problemIn(answer)
    expect(heldSinceMs).toBeGreaterThanOrEqual(fromMs - 1)
    expect(heldSinceMs).toBeLessThanOrEqual(untilMs + 1)
    expect(heldSinceMs).toBe(problemIn(refused[0] as { text: string }).heldSinceMs)
  }
  expect(refused).toHaveLength(3)
})

it('the record of a lease tells when it was claimed', async () => {
  const [here, there] = [domain(), domain()]
  const options = { ...usual, name: 'leased', recover: hold() }
  const { refused, fromMs, untilMs } = await whileHeld(
    (work) =>
      leasedRoute(here, options, async () => {
        await work()
        return reply(201)
      }),
    [leasedRoute(there, options, async () => reply(500))],
  )
  const [answer = { text: '{}' }] = refused
  expect(answer).toMatchObject({ status: 409, problem: 'in-flight' })
  expect(problemIn(answer).heldSinceMs).toBeGreaterThanOrEqual(fromMs - 1)
  expect(problemIn(answer).heldSinceMs).toBeLessThanOrEqual(untilMs + 1)
})

it('SQLite cannot tell who has its lock, nor since when, and nothing is made up', async () => {
  const file = freshFile()
  const [here, there] = [await itemStore(file), await itemStore(file)]
  const { refused } = await whileHeld(
    (work) =>
      atomicRoute(here, usual, async () => {
        await work()
        return reply(201)
      }),
    [atomicRoute(there, { ...usual, wait: '300ms' }, async () => reply(500))],
  )
  const [answer = { text: '{}' }] = refused
  expect(answer).toMatchObject({ status: 503, problem: 'store-unavailable' })
  expect(problemIn(answer)).not.toHaveProperty('heldSinceMs')
})

it('whose deadline ends meanwhile is told that it waited for the key, and never that it was in its body', async () => {
  const works = gate(2)
  let bodies = 0
  const charge = (work: () => Promise<void>) =>
    domain({ lockWait: '20s' }).operation('charge', {
      scope: () => scope('shop'),
      key: (input: { readonly key: Key }) => input.key,
      window: '1h',
      duplicates: 'wait',
      run: async () => {
        bodies += 1
        await work()
        return 'charged'
      },
    })
  const key = mintKey()
  const first = charge(() => works.arrive())({ key })
  await works.waiting(1)
  const other = charge(async () => undefined)
  const told = await other({ key }, { deadline: '700ms' }).then(
    () => ({ code: 'none' }),
    (error: { readonly code: string; readonly details?: { readonly phase?: string } }) => error,
  )
  works.open()
  expect(await first).toBe('charged')
  expect(bodies).toBe(1)
  expect(['DEADLINE_EXCEEDED', 'OPERATION_IN_FLIGHT']).toContain(told.code)
  if (told.code === 'DEADLINE_EXCEEDED') expect(told).toMatchObject({ details: { phase: 'waiting for its key' } })
})
