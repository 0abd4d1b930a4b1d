// What "once" costs: an operation against the bare work that it protects, a replay against one look into an index, and
// both in memory against other libraries.
//
// On disk everybody waits for the same flushes, which take ten times as long when others use the disk: a raw flush
// takes its turns beside them.

import { withDisk } from './disk.mjs'
import { curveCase, oldRowsCases } from './operation-age.mjs'
import { memoryCases } from './operation-memory.mjs'
import { postgresCases } from './operation-postgres.mjs'
import { scaleCases } from './operation-scale.mjs'
import { sqliteCases } from './operation-sqlite.mjs'
import { startPostgres, withPool } from './postgres-server.mjs'

export const peers = [
  '@node-idempotency/core',
  '@node-idempotency/storage-adapter-memory',
  '@aws-lambda-powertools/idempotency',
  'pg',
  'libsql',
]

/**
 * The cases of this bench, each after a check that all its subjects do what their names say.
 * @param {{ smoke: boolean, curve: boolean }} options
 */
export async function* cases({ smoke, curve }) {
  yield* memoryCases()
  yield* withDisk(async function* (folder, flushes) {
    yield* sqliteCases(flushes, folder)
    const server = await startPostgres()
    try {
      for (const connections of [1, 16]) {
        yield* withPool(server.url, connections, (pool) => postgresCases(pool, server.version, connections, flushes))
      }
      yield* scaleCases(server.url, flushes)
      yield* withPool(server.url, 1, (pool) => oldRowsCases(pool, smoke ? 1_000 : 1_000_000))
      if (curve) yield* withPool(server.url, 1, (pool) => curveCase(pool, smoke ? 2_000 : 10_000_000))
    } finally {
      await server.dispose()
    }
  })
}
