// A PostgreSQL for a bench: that of the tests, of its own, with fsync on, gone with the bench.

import { readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
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
 * The time that processes have spent on a processor, in us; 0 where the system does not tell.
 * @param {readonly number[]} pids
 */
export function processorUs(pids) {
  let nanoseconds = 0
  for (const pid of pids) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      // Not Linux, or the process has ended.
    }
  }
  return nanoseconds / 1e3
}
