// What a route infers from its domain, its principal and its parse, without a cast; the compiler is what tests it.

import type { Pool } from 'pg'
import { expect, expectTypeOf, it } from 'vitest'
import { atomicRoute, invalid, leasedRoute, type Route, reply } from '../../src/http/core/index.js'
import { hold, type Lease } from '../../src/idempotency/index.js'
import type { Key } from '../../src/identity/index.js'
import { type MemoryTransaction, memory } from '../../src/stores/memory/index.js'
import type { PostgresDomain, PostgresTransaction } from '../../src/stores/postgres/index.js'
import type { SqliteDomain, SqliteTransaction } from '../../src/stores/sqlite/index.js'

interface Native {
  readonly user?: string
}

const principal = ({ user }: Native) => user
const parse = (request: { json(): unknown }): { amount: number } => request.json() as { amount: number }

it('infers tx from the domain, native from the principal and input from parse', () => {
  const db = memory({ name: 'shop' })
  const route = atomicRoute(db, { name: 'a', principal, parse }, ({ tx, native, input, key }) => {
    expectTypeOf(tx).toEqualTypeOf<MemoryTransaction>()
    expectTypeOf(native).toEqualTypeOf<Native>()
    expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    expectTypeOf(key).toEqualTypeOf<Key | undefined>()
    return reply(201)
  })
  expectTypeOf(route).toEqualTypeOf<Route<Native>>()
  atomicRoute(db, { name: 'b', principal }, async ({ input }) => {
    expectTypeOf(input).toEqualTypeOf<undefined>()
    return new Response(null, { status: 204 })
  })
  leasedRoute(
    db,
    { name: 'c', principal, parse: async (request) => parse(request), recover: hold() },
    ({ lease, input }) => {
      expectTypeOf(lease).toEqualTypeOf<Lease>()
      expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
      return reply(201)
    },
  )
  expect(db.operations().map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})

it('takes the domains of every store as they are', () => {
  // Never called: what is of interest is that it compiles.
  const routes = (
    pg: PostgresDomain<Pool>,
    sqlite: SqliteDomain<{ readonly query: number }>,
    bound: PostgresDomain<{ readonly drizzle: true }>,
  ) => [
    atomicRoute(pg, { name: 'pg', principal, isolation: 'serializable', attempts: 3 }, ({ tx }) => {
      expectTypeOf(tx).toEqualTypeOf<PostgresTransaction<Pool>>()
      return reply(204)
    }),
    atomicRoute(sqlite, { name: 'sqlite', principal }, ({ tx }) => {
      expectTypeOf(tx).toEqualTypeOf<SqliteTransaction<{ readonly query: number }>>()
      return reply(204)
    }),
    atomicRoute(bound, { name: 'bound', principal }, ({ tx }) => {
      expectTypeOf(tx.db).toEqualTypeOf<{ readonly drizzle: true }>()
      return reply(204)
    }),
    leasedRoute(pg, { name: 'leased', principal, recover: hold() }, () => reply(204)),
  ]
  expect(routes).toBeTypeOf('function')
})

it('does not compile where something is missing or cannot be', () => {
  const db = memory({ name: 'shop' })
  const wrong = [
    // @ts-expect-error who calls must be said
    () => atomicRoute(db, { name: 'x' }, () => reply(204)),
    // @ts-expect-error an answer is made by reply, or is a Response
    () => atomicRoute(db, { name: 'x', principal }, () => 'text'),
    // @ts-expect-error a route in a transaction has no lease
    () => atomicRoute(db, { name: 'x', principal, lease: '30s' }, () => reply(204)),
    // @ts-expect-error a principal is text
    () => atomicRoute(db, { name: 'x', principal: () => 7 }, () => reply(204)),
    // @ts-expect-error the lease of a leased route has no transaction beside it
    () => leasedRoute(db, { name: 'x', principal, recover: hold() }, ({ tx }) => reply(tx ? 204 : 200)),
    () => {
      throw invalid(400, 'fine')
    },
  ]
  expect(wrong.length).toBe(6)
})
