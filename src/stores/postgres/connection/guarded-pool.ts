// The effect guard on a pool: what the program sends through it while a transaction is open around its code is not part
// of that transaction. Only where the guard is on, for development and tests.

import { AsyncResource } from 'node:async_hooks'
import { detached, type RepriseError } from '../../../kernel/index.js'
import { refuseUnseen } from '../../../transaction/index.js'
import { postgresDialect, writeIn } from '../../sql/index.js'
import type { PostgresPool, PostgresPoolClient } from '../options.js'
import { stateOf } from './pool-state.js'

type Call = (...args: unknown[]) => unknown

interface Guarded {
  query: Call
  connect: Call
}

// Those that the program has in hand. The same connections are Reprise's own when it takes them.
const lent = new WeakSet<object>()
const guardedClients = new WeakSet<object>()

/** Puts the guard around `query` and `connect` of a pool, once. Reprise's own connections are taken past it. */
export function guardPool(pool: PostgresPool): void {
  const state = stateOf(pool)
  if (state.unguarded !== undefined) return
  const guarded = pool as unknown as Guarded
  const { query, connect } = guarded
  state.unguarded = { connect: () => (connect.call(pool) as Promise<PostgresPoolClient>).then(ours) }
  guarded.connect = (callback) => {
    // A pool calls back in the context of whoever gave the connection back.
    if (typeof callback === 'function') return connect.call(pool, AsyncResource.bind(lendingTo(callback as Call)))
    return (connect.call(pool) as Promise<PostgresPoolClient>).then(lend)
  }
  if (typeof query !== 'function') return
  guarded.query = (...args) => {
    const refusal = refusalOf(args)
    if (refusal !== undefined) return refused(refusal, args)
    // The pool sends it by a connection of its own, and it was looked at already.
    const bound = args.map((value) => (typeof value === 'function' ? AsyncResource.bind(value as Call) : value))
    return detached(() => query.apply(pool, bound))
  }
}

// Whoever had it in hand before.
function ours(client: PostgresPoolClient): PostgresPoolClient {
  lent.delete(client)
  return client
}

function lendingTo(callback: Call): Call {
  return (error, client, release) => {
    if (client === undefined) return callback(error, client, release)
    const taken = lend(client as PostgresPoolClient)
    return callback(error, taken, taken.release)
  }
}

function lend(client: PostgresPoolClient): PostgresPoolClient {
  const { release } = client
  lent.add(client)
  client.release = (destroy) => {
    lent.delete(client)
    release.call(client, destroy)
  }
  if (!guardedClients.has(client)) guardClient(client)
  return client
}

function guardClient(client: PostgresPoolClient): void {
  guardedClients.add(client)
  const guarded = client as unknown as Pick<Guarded, 'query'>
  const { query } = guarded
  guarded.query = (...args) => {
    const refusal = lent.has(client) ? refusalOf(args) : undefined
    return refusal === undefined ? query.apply(client, args) : refused(refusal, args)
  }
}

function refusalOf([config]: readonly unknown[]): RepriseError | undefined {
  return refuseUnseen(() => {
    const text = typeof config === 'string' ? config : (config as { readonly text?: unknown } | null | undefined)?.text
    const statement = typeof text === 'string' ? writeIn(text, postgresDialect) : undefined
    return statement === undefined ? undefined : { by: 'query', statement }
  })
}

// As the driver tells of an error: by a callback where one was given, else by the promise. Streams have neither.
function refused(refusal: RepriseError, args: readonly unknown[]): Promise<never> | undefined {
  const [config] = args as readonly [{ readonly callback?: unknown; readonly submit?: unknown } | undefined]
  if (typeof config?.submit === 'function') throw refusal
  const callback = [...args, config?.callback].find((value) => typeof value === 'function') as Call | undefined
  if (callback === undefined) return Promise.reject(refusal)
  queueMicrotask(() => callback(refusal))
  return undefined
}
