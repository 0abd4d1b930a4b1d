// Other libraries that make routes repeatable, each as its own pages say. Not every registry has them: those that are
// missing here are looked for in the folder that REPRISE_BENCH_PEERS names, and what is found nowhere is named in place
// of a figure.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Idempotency } from '@node-idempotency/core'
import { MemoryStorageAdapter } from '@node-idempotency/storage-adapter-memory'

/** @typedef {import('./http-stores.mjs').Kept} Kept */

export const nodeIdempotency = 'node-idempotency'
export const idempotJs = 'idempot-js'
export const honoIdempotency = 'hono-idempotency'

const folder = process.env['REPRISE_BENCH_PEERS']
const places = [
  new URL(import.meta.url),
  ...(folder === undefined ? [] : [pathToFileURL(join(folder, 'package.json'))]),
]

// What a peer consists of, by framework and by store; what is not listed it does not have.
const parts = {
  [nodeIdempotency]: {
    node: ['@node-idempotency/core'],
    express: ['@node-idempotency/express'],
    fastify: ['@node-idempotency/fastify'],
    memory: ['@node-idempotency/storage-adapter-memory'],
    postgres: ['@node-idempotency/storage-adapter-postgres'],
  },
  [idempotJs]: {
    express: ['@idempot/express-middleware'],
    fastify: ['@idempot/fastify-middleware'],
    sqlite: ['@idempot/sqlite-store'],
    postgres: ['@idempot/postgres-store'],
  },
  [honoIdempotency]: { hono: ['hono-idempotency'], memory: ['hono-idempotency'] },
}

/** @typedef {keyof typeof parts} Peer */

/**
 * The peers on a framework and a store: those that can be measured here, and why others cannot.
 * @param {'node' | 'express' | 'fastify' | 'hono'} framework
 * @param {'memory' | 'sqlite' | 'postgres'} store
 */
export function peersFor(framework, store) {
  const here = []
  const missing = []
  for (const [name, has] of Object.entries(parts)) {
    const wanted = [/** @type {any} */ (has)[framework], /** @type {any} */ (has)[store]]
    if (wanted.includes(undefined)) continue
    const absent = wanted.flat().filter((part) => found(part) === undefined)
    if (absent.length === 0) here.push(name)
    else missing.push(`not measured: ${name}, since ${absent.join(' and ')} cannot be installed here`)
  }
  return { here, missing }
}

/** The versions of what is measured. */
export function versionsHere() {
  const names = [...new Set(Object.values(parts).flatMap((has) => Object.values(has).flat()))]
  return Object.fromEntries(
    names.flatMap((name) => {
      const at = found(name)
      return at === undefined ? [] : [[name, at.manifest.version]]
    }),
  )
}

/** @param {string} name */
function found(name) {
  for (const place of places) {
    const manifest = new URL(`./node_modules/${name}/package.json`, place)
    if (existsSync(manifest)) return { at: manifest, manifest: JSON.parse(readFileSync(manifest, 'utf8')) }
  }
  return undefined
}

/**
 * Imports a package from where it was found: its own manifest says which file that is.
 * @param {string} name
 * @param {string} entryPoint
 */
async function load(name, entryPoint = '.') {
  const package_ = found(name)
  if (package_ === undefined) throw new Error(`${name} is not installed.`)
  const { at, manifest } = package_
  const exported = manifest.exports?.[entryPoint]?.import ?? manifest.main
  return import(new URL(exported.default ?? exported, at).href)
}

/**
 * Where the records of node-idempotency are.
 * @param {Kept} kept
 */
async function nodeIdempotencyStorage({ kind, pool }) {
  if (kind === 'memory') return new MemoryStorageAdapter()
  const { PostgresStorageAdapter } = await load('@node-idempotency/storage-adapter-postgres')
  const idempotency = { idempotencySchemaName: 'peer', idempotencyTableName: 'idempotency' }
  const storage = new PostgresStorageAdapter({ pool, idempotency })
  await storage.connect()
  // Its table is not logged by default, and a crash of the server empties it: here all write as durably as one another.
  // Its own option for that makes a statement that PostgreSQL refuses.
  await pool?.query('ALTER TABLE peer.idempotency SET LOGGED')
  return storage
}

/**
 * The middleware of idempot-js, which is called alike on both frameworks.
 * @param {string} middleware
 * @param {Kept} kept
 */
async function idempotOn(middleware, { kind, file, pool, handles }) {
  const { idempotency } = await load(middleware)
  if (kind === 'postgres') {
    const { PostgresIdempotencyStore } = await load('@idempot/postgres-store')
    const store = new PostgresIdempotencyStore({ pool })
    // It makes its table by itself, and nobody is told when that is done; its last index is what to wait for.
    const made = "SELECT 1 FROM pg_indexes WHERE indexname = 'idx_expires_at'"
    while ((await pool?.query(made))?.rowCount === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    return idempotency({ store })
  }
  const { SqliteIdempotencyStore } = await load('@idempot/sqlite-store')
  const store = new SqliteIdempotencyStore({ path: file })
  // As ours; its own default, a journal that is deleted each time, is slower.
  store.db.exec('PRAGMA journal_mode = WAL')
  store.db.exec('PRAGMA synchronous = FULL')
  handles.push(store.db)
  return idempotency({ store })
}

/** Each peer in front of the handler, by framework. */
export const peerOn = {
  /**
   * The core has no plugin for `node:http`: its two calls, around the handler.
   * @param {string} _way
   * @param {Kept} kept
   * @param {(body: any) => Promise<unknown>} work
   */
  node: async (_way, kept, work) => {
    const idempotency = new Idempotency(await nodeIdempotencyStorage(kept))
    return async (/** @type {any} */ request, /** @type {any} */ body) => {
      const message = { headers: request.headers, path: request.url, method: request.method, body }
      const known = await idempotency.onRequest(message)
      if (known !== undefined) return { body: known.body, replayed: true }
      const answer = await work(body)
      await idempotency.onResponse(message, { body: answer, additional: { statusCode: 201 } })
      return { body: answer }
    }
  },
  /**
   * @param {string} way
   * @param {Kept} kept
   * @returns {Promise<import('express').RequestHandler[]>}
   */
  express: async (way, kept) => {
    if (way === idempotJs) return [await idempotOn('@idempot/express-middleware', kept)]
    const { idempotencyAsMiddleware } = await load('@node-idempotency/express')
    return idempotencyAsMiddleware({ storage: { adapter: await nodeIdempotencyStorage(kept) } })
  },
  /**
   * @param {import('fastify').FastifyInstance} app
   * @param {string} way
   * @param {Kept} kept
   * @returns {Promise<object>} Options of the route.
   */
  fastify: async (app, way, kept) => {
    if (way === idempotJs) return { preHandler: await idempotOn('@idempot/fastify-middleware', kept) }
    const { idempotencyAsPlugin } = await load('@node-idempotency/fastify')
    // What fastify-plugin does: its hooks are those of the scope that registers it.
    const plugin = Object.assign(
      (/** @type {any} */ scope, /** @type {any} */ options) => idempotencyAsPlugin(scope, options),
      {
        [Symbol.for('skip-override')]: true,
      },
    )
    await app.register(plugin, { storage: { adapter: await nodeIdempotencyStorage(kept) } })
    return {}
  },
  hono: async () => {
    const { idempotency } = await load('hono-idempotency')
    const { memoryStore } = await load('hono-idempotency', './stores/memory')
    return idempotency({
      store: memoryStore(),
      cacheKeyPrefix: (/** @type {any} */ c) => c.req.header('authorization'),
    })
  },
}
