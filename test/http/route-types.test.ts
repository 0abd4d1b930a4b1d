// What a route infers from its domain, its principal and its parse, without a cast; the compiler is what tests it.

import { fileURLToPath } from 'node:url'
import type { Pool } from 'pg'
import ts from 'typescript'
import { expect, expectTypeOf, it } from 'vitest'
import { atomicRoute, invalid, leasedRoute, type Route, reply } from '../../src/http/core/index.js'
import { idempotent, idempotentLeased as onExpress } from '../../src/http/express/index.js'
import { idempotentLeased as onFastify } from '../../src/http/fastify/index.js'
import { idempotentLeased as onFetch } from '../../src/http/fetch/index.js'
import { idempotentLeased as onHono } from '../../src/http/hono/index.js'
import { idempotentLeased as onKoa } from '../../src/http/koa/index.js'
import { IdempotentLeased as onNest } from '../../src/http/nest/index.js'
import { idempotentLeased as onNode } from '../../src/http/node/index.js'
import { hold, type Lease } from '../../src/idempotency/index.js'
import type { Key } from '../../src/identity/index.js'
import { type MemoryTransaction, memory } from '../../src/stores/memory/index.js'
import type { PostgresDomain, PostgresTransaction } from '../../src/stores/postgres/index.js'
import type { SqliteDomain, SqliteTransaction } from '../../src/stores/sqlite/index.js'
import { PlainMap, plainMapStore } from '../stores/records/plain-map-store.js'

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

it('knows how many names a principal has, and gives them to the handler', () => {
  const db = memory({ name: 'shop' })
  const who = ({ user = '' }: Native): [string, string] => ['tenant', user]
  atomicRoute(db, { name: 'a', principal: ({ user }: Native) => ['tenant', user ?? ''] }, ({ principal: names }) => {
    const [tenant, user] = names
    expectTypeOf(names).toEqualTypeOf<readonly [string, string]>()
    return reply(200, { tenant: tenant.length, user: user.length })
  })
  atomicRoute(db, { name: 'b', principal }, ({ principal: names }) => {
    expectTypeOf(names).toEqualTypeOf<readonly [string]>()
    return reply(200, names[0].length)
  })
  const isKnown = async ({ user }: Native) => (user === undefined ? undefined : (['tenant', user] as const))
  leasedRoute(db, { name: 'c', principal: isKnown, recover: hold() }, ({ principal: names }) => {
    expectTypeOf(names).toEqualTypeOf<readonly ['tenant', string]>()
    return reply(200, names[1])
  })
  // Options that stand alone: a list of names is one whose length is not known.
  const options = { name: 'd', principal: (native: Native) => who(native).map((name) => name) }
  atomicRoute(db, options, ({ principal: names }) => {
    expectTypeOf(names).toEqualTypeOf<readonly [string, ...string[]]>()
    return reply(200, names)
  })
  expect(db.operations().length).toBe(4)
})

it('says in a readable line that a handler returns no answer', () => {
  const text = `import { atomicRoute } from '../../src/http/core/index.js'
import { memory } from '../../src/stores/memory/index.js'
atomicRoute(memory({ name: 'shop' }), { name: 'a', principal: () => 'ada' }, async () => ({ paid: true }))
`
  const [first, ...more] = complaintsAbout(text)
  expect(more).toEqual([])
  const lines = first?.split('\n') ?? []
  expect(lines[0]).toBe("Type 'Promise<{ paid: boolean; }>' is not assignable to type 'Answered | Promise<Answered>'.")
  // The rest says why, and nothing of how promises are made.
  expect(lines.join(' ')).not.toMatch(/onfulfilled|TResult|PromiseLike/)
  expect(lines.length).toBeLessThan(7)
})

// What the compiler says of a file beside this one.
function complaintsAbout(text: string): readonly string[] {
  const name = fileURLToPath(new URL('complaint.ts', import.meta.url))
  const { config } = ts.readConfigFile(fileURLToPath(new URL('../../tsconfig.json', import.meta.url)), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, '.')
  const settings = { ...options, incremental: false, noEmit: true, skipLibCheck: true }
  const host = ts.createCompilerHost(settings)
  const { getSourceFile, fileExists } = host
  host.fileExists = (file) => file === name || fileExists(file)
  host.getSourceFile = (file, language) =>
    file === name ? ts.createSourceFile(file, text, language) : getSourceFile(file, language)
  const program = ts.createProgram([name], settings, host)
  return program
    .getSemanticDiagnostics(program.getSourceFile(name))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

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
  const leasesOnly = plainMapStore(new PlainMap())
  const wrong = [
    // @ts-expect-error a store of records alone has no transaction to commit the marker with
    () => atomicRoute(leasesOnly, { name: 'x', principal }, () => reply(204)),
    // @ts-expect-error nor has it through an adapter
    () => idempotent(leasesOnly, { name: 'x', principal: () => 'ada' }, () => reply(204)),
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
  expect(wrong.length).toBe(8)
})

it('demands a recovery of a leased route in every adapter, unless its effect is repeatable', () => {
  const db = memory({ name: 'shop' })
  const usual = { name: 'x', principal: () => 'ada' } as const
  const repeatable = { ...usual, reversibility: 'repeatable' } as const
  const compensable = { ...usual, reversibility: 'compensable' } as const
  const handler = () => reply(204)
  // Never called: what is of interest is that these compile, and those do not.
  const right = [
    () => leasedRoute(db, repeatable, handler),
    () => onExpress(db, repeatable, handler),
    () => onFastify(db, repeatable, handler),
    () => onFetch(db, repeatable, handler),
    () => onHono(db, repeatable, handler),
    () => onKoa(db, repeatable, handler),
    () => onNest(repeatable),
    () => onNode(db, repeatable, handler),
    () => leasedRoute(db, { ...repeatable, recover: hold() }, handler),
    () => onNest({ ...compensable, recover: hold() }),
  ]
  const wrong = [
    // @ts-expect-error nothing says what is done where the effect may have happened
    () => leasedRoute(db, usual, handler),
    // @ts-expect-error an effect that can be undone is not one that can be repeated
    () => leasedRoute(db, compensable, handler),
    // @ts-expect-error undefined is no recovery
    () => leasedRoute(db, { ...usual, recover: undefined }, handler),
    // @ts-expect-error nor through an adapter
    () => onExpress(db, usual, handler),
    // @ts-expect-error nor through an adapter
    () => onFastify(db, usual, handler),
    // @ts-expect-error nor through an adapter
    () => onFetch(db, usual, handler),
    // @ts-expect-error nor through an adapter
    () => onHono(db, usual, handler),
    // @ts-expect-error nor through an adapter
    () => onKoa(db, usual, handler),
    // @ts-expect-error nor through an adapter
    () => onNest(usual),
    // @ts-expect-error nor through an adapter
    () => onNode(db, usual, handler),
  ]
  expect([right.length, wrong.length]).toEqual([10, 10])
})
