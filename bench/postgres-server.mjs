// A PostgreSQL for a bench: that of the tests, of its own, with fsync on, gone with the bench.

import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import pg from 'pg'
import { ensureServers, findPostgres } from '../tools/servers.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))

/**
 * Starts a server. Whoever starts one disposes of it.
 * @returns {Promise<import('../test/servers/postgres.js').Postgres>}
 */
export async function startPostgres() {
  await ensureServers(root.replace(/[/\\]$/, ''), [{ what: 'PostgreSQL', package: 'postgresql', find: findPostgres }])
  const built = new URL(`./.cache/postgres-server-${process.pid}.mjs`, import.meta.url)
  await build({
    entryPoints: ['test/servers/postgres.ts'],
    absWorkingDir: root,
    bundle: true,
    packages: 'external',
    // The tools find their own folder by their own address, so they stay where they are.
    external: ['./tools/*'],
    platform: 'node',
    format: 'esm',
    outfile: fileURLToPath(built),
    logLevel: 'silent',
  })
  try {
    const servers = await import(built.href)
    return await servers.startPostgres({ settings: { max_connections: '100', fsync: 'on', synchronous_commit: 'on' } })
  } finally {
    rmSync(built)
  }
}

/**
 * Lends a pool whose connections stay open.
 * @template Case
 * @param {string} url
 * @param {number} connections
 * @param {(pool: pg.Pool) => AsyncIterable<Case>} make
 */
export async function* withPool(url, connections, make) {
  const pool = new pg.Pool({ connectionString: url, max: connections, min: connections, idleTimeoutMillis: 0 })
  try {
    yield* make(pool)
  } finally {
    await pool.end()
  }
}

/**
 * The server's processes behind the connections of a pool, all of them open from here on.
 * @param {pg.Pool} pool
 * @param {number} connections
 */
export async function backendsOf(pool, connections) {
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()))
  const pids = await Promise.all(
    clients.map(async (client) => (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid),
  )
  for (const client of clients) client.release()
  return pids
}
