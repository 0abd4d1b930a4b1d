// Duplicates of a key race on many connections while backends are killed and sockets are cut at COMMIT, at every
// isolation level, and a quarter of the callers sends claim, effect and outcome as texts of their own, one by one: each
// key has one effect, and everybody is told of that one.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Key, scope, storedKey } from '../../../src/identity/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { patient, postgresWorld, type World } from './world.js'

const levels = ['read-committed', 'repeatable-read', 'serializable'] as const
const keys = 24
const callers = 8
const race = scope('race')

let world: World
let pool: pg.Pool
let hands: pg.Pool
let db: PostgresDomain<pg.PoolClient>
const met = { byHand: 0, killed: 0, cut: 0 }
let commits = 0

// By count and not by chance, so that every run is cut as often: each fifth COMMIT.
function cutting(client: pg.PoolClient): void {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection
  const { query } = client
  client.on('error', () => undefined)
  Object.assign(client, {
    query: (...values: unknown[]) => {
      const [config] = values
      const text = typeof config === 'string' ? config : String((config as { text?: string }).text)
      const answer = Reflect.apply(query, client, values)
      if (text.endsWith('COMMIT')) {
        commits += 1
        if (commits % 5 === 0) {
          met.cut += 1
          setImmediate(() => stream.destroy())
        }
      }
      return answer
    },
  })
}

beforeAll(async () => {
  world = await postgresWorld()
  await world.raw.query('create table effect (key text not null, by text not null)')
  pool = new pg.Pool({ connectionString: world.url, max: 16 })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => cutting(client))
  db = postgres({ pool, name: 'race', ...patient, attempts: 50 })
  hands = new pg.Pool({ connectionString: world.url, max: 8, min: 8 })
  hands.on('error', () => undefined)
  afterAll(() => Promise.all([pool.end(), hands.end()]))
})

/** As the store does it. The token of whoever did it is the result. */
function ours(key: string, isolation: (typeof levels)[number]): Promise<string> {
  const token = randomUUID()
  const options = { key: { scope: race, key: key as Key }, content: 'none', isolation } as const
  return db.transact(async (tx) => {
    await tx.query('insert into effect values ($1, $2)', [key, token])
    return token
  }, options)
}

/** The same by hand: a row for the claim, the effect, the outcome. What is lost is asked for by inserting once more. */
async function byHand(key: string, isolation: string): Promise<string> {
  const token = randomUUID()
  const id = storedKey(race, key as Key)
  for (let round = 0; round < 200; round++) {
    const client = await hands.connect()
    const ignore = () => undefined
    client.on('error', ignore)
    let sound = false
    try {
      await client.query(`begin isolation level ${isolation.replace('-', ' ')}`)
      const claim =
        "insert into reprise_marker (id, format, mode, state, token, claimed_at_ms) values ($1, 2, 'atomic', 'claimed', $2, 1) on conflict (id) do nothing"
      const { rowCount } = await client.query(claim, [id, token])
      if (rowCount === 0) {
        await client.query('rollback')
        sound = true
        const { rows } = await client.query('select value from reprise_marker where id = $1', [id])
        if (rows.length > 0) return JSON.parse(rows[0].value)
        continue
      }
      await client.query('insert into effect values ($1, $2)', [key, token])
      const outcome =
        "update reprise_marker set state = 'succeeded', value = $2, completed_at_ms = 1 where id = $1 and state = 'claimed'"
      await client.query(outcome, [id, JSON.stringify(token)])
      await client.query('commit')
      sound = true
      met.byHand += 1
      return token
    } catch {
      // Killed, or it lost the race at a strict level: the next round meets whatever came of it.
    } finally {
      client.removeListener('error', ignore)
      client.release(!sound)
    }
  }
  throw new Error('It never came to an end.')
}

let killing: Promise<unknown> = Promise.resolve()

// One after the other, on one connection.
function killOne(): Promise<unknown> {
  killing = killing.then(kill)
  return killing
}

async function kill(): Promise<void> {
  const { rowCount } = await world.raw.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
     and query ~ 'effect|marker' and state <> 'idle' order by random() limit 1`,
  )
  met.killed += rowCount ?? 0
}

it.each(levels)('one effect for each key, and one answer for all: %s', async (isolation) => {
  const told = new Map<string, string[]>()
  await Promise.all(
    Array.from({ length: 3 }, async (_, lane) => {
      for (let number = lane; number < keys; number += 3) {
        const key = `${isolation}-${number}`
        const calls = Array.from({ length: callers }, (_, caller) =>
          caller % 4 === number % 4 ? byHand(key, isolation) : ours(key, isolation),
        )
        const kills = killOne()
        told.set(key, await Promise.all(calls))
        await kills
      }
    }),
  )
  const { rows } = await world.raw.query('select key, array_agg(by) as by from effect where key like $1 group by key', [
    `${isolation}-%`,
  ])
  expect(rows).toHaveLength(keys)
  for (const { key, by } of rows) {
    expect(by, key).toHaveLength(1)
    expect(new Set(told.get(key)), key).toEqual(new Set(by))
  }
})

it('was a race: both ways won, backends were killed and sockets cut', () => {
  expect(met.byHand).toBeGreaterThan(0)
  expect(met.byHand).toBeLessThan(keys * levels.length)
  expect(met.killed).toBeGreaterThan(5)
  expect(met.cut).toBeGreaterThan(5)
})
