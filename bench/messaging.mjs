// What happens after COMMIT: what an emit costs its transaction, how fast a relay publishes, how fast a consumer takes,
// and what a backlog and parked keys do to both.

import { withDisk } from './disk.mjs'
import { backlogCases, parkedCase } from './messaging-backlog.mjs'
import { consumerCases } from './messaging-consumer.mjs'
import { emitCases } from './messaging-emit.mjs'
import { versions } from './messaging-queues.mjs'
import { relayCases } from './messaging-relay.mjs'
import { startPostgres, withPool } from './postgres-server.mjs'

export const peers = ['pg']
export { versions }

const concurrency = 16

/**
 * The cases of this bench, each after a check that all its subjects do what their names say.
 * @param {{ smoke: boolean, curve: boolean }} options
 */
export async function* cases({ smoke, curve }) {
  yield* withDisk(async function* (_folder, flushes) {
    const server = await startPostgres()
    const place = `PostgreSQL ${server.version}, fsync on`
    const on = (/** @type {number} */ connections) =>
      `${place}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`
    try {
      for (const connections of [1, concurrency]) {
        yield* withPool(server.url, connections, (pool) =>
          emitCases(pool, server.url, on(connections), connections, flushes),
        )
      }
      yield* withPool(server.url, 4, (pool) => relayCases(pool, server.url, place))
      yield* withPool(server.url, concurrency, (pool) => consumerCases(pool, place, concurrency))
      const most = curve ? 1_000_000 : 100_000
      const backlog = smoke ? { rows: 2_000, keys: 200 } : { rows: most, keys: 100_000 }
      yield* withPool(server.url, 4, (pool) => backlogCases(pool, place, backlog))
      yield* withPool(server.url, 4, (pool) => parkedCase(pool, place, smoke ? 1_000 : 50_000))
    } finally {
      await server.dispose()
    }
  })
}
