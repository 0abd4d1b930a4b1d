// PostgreSQL, directly or through PgBouncer: every worker's connection goes through a proxy that can cut it, and the
// servers themselves are stopped at once and started again.

import pg from 'pg'
import type { Random } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import {
  commits,
  type FaultMoment,
  type PostgresProxy,
  type ProxyFault,
  postgresProxy,
} from '../../../src/testing/index.js'
import { startPgbouncer } from '../../servers/pgbouncer.js'
import { startPostgres } from '../../servers/postgres.js'
import { draw, drawMs, type EngineFault, type TortureEngine } from './engine.js'

/** How long a cut waits for its statement, in ms. */
const cutWaitMs = 1_500

/** Starts PostgreSQL with these tables; with `pooled`, behind PgBouncer that assigns connections per transaction. */
export async function startPostgresEngine(tables: readonly string[], pooled: boolean): Promise<TortureEngine> {
  const server = await startPostgres({ settings: { max_connections: '120' } })
  const startPooler = () =>
    startPgbouncer({
      mode: 'transaction',
      upstream: server,
      poolSize: 20,
      settings: { server_login_retry: '0', query_wait_timeout: '2', max_client_conn: '500' },
    })
  await prepare(server.url, tables)
  let pooler = pooled ? await startPooler() : undefined
  // Read for every connection: a pooler that was started again has another port.
  const upstream = {
    host: '127.0.0.1',
    get port(): number {
      return pooler?.port ?? server.port
    },
  }
  const proxy = await postgresProxy({ upstream })
  const restart: EngineFault = {
    kind: 'restart',
    alone: true,
    weight: 1,
    async strike() {
      await server.stop('immediate')
      await server.restart()
      return true
    },
  }
  const restartPooler: EngineFault = {
    kind: 'restart-pooler',
    alone: true,
    weight: 2,
    async strike() {
      await pooler?.dispose()
      pooler = await startPooler()
      return true
    },
  }
  return {
    name: pooled ? 'pgbouncer' : 'postgres',
    address: { postgres: `postgres://postgres@127.0.0.1:${proxy.port}/postgres` },
    points: [],
    faults: [cutAt(proxy, 'cut', 5), cutAt(proxy, 'cut-commit', 14), restart, ...(pooled ? [restartPooler] : [])],
    heal: () => proxy.heal(),
    async rows<Row>(text: string) {
      const client = new pg.Client(server.url)
      await client.connect()
      try {
        return (await client.query(text)).rows as Row[]
      } finally {
        await client.end()
      }
    },
    async dispose() {
      await proxy.close()
      await pooler?.dispose()
      await server.dispose()
    },
  }
}

async function prepare(url: string, tables: readonly string[]): Promise<void> {
  const pool = new pg.Pool({ connectionString: url })
  const db = postgres({ pool, name: 'torture' })
  await db.migrate()
  for (const table of tables) await pool.query(table)
  await pool.end()
}

const moments: readonly FaultMoment[] = [
  'before-forward',
  'before-forward',
  'after-forward',
  'before-answer',
  'between-answers',
]

/** Cuts a connection at some statement that comes by, or at a COMMIT. */
function cutAt(proxy: PostgresProxy, kind: 'cut' | 'cut-commit', weight: number): EngineFault {
  return {
    kind,
    weight,
    async strike(random) {
      const armed = proxy.arm(drawnCut(random, kind === 'cut' ? drawMs(random, 1, 30) : commits))
      const timer = new AbortController()
      const late = new Promise<undefined>((resolve) => {
        const timeout = setTimeout(() => resolve(undefined), cutWaitMs)
        timer.signal.addEventListener('abort', () => clearTimeout(timeout))
      })
      const fired = await Promise.race([armed.first, late])
      timer.abort()
      armed.disarm()
      if (fired === undefined) return false
      // What is held open would keep its locks on the server for as long as the run.
      if (fired.action === 'black-hole' || fired.action === 'half-open') {
        setTimeout(() => void proxy.heal(), drawMs(random, 200, 1_500))
      }
      return true
    },
  }
}

function drawnCut(random: Random, statement: ProxyFault['statement']): ProxyFault {
  const action = draw(random, ['fin', 'fin', 'rst', 'rst', 'black-hole', 'half-open', 'late'] as const)
  const at = action === 'late' ? 'before-forward' : draw(random, moments)
  return {
    statement,
    at,
    action,
    ...(action === 'late' ? { delayMs: drawMs(random, 20, 800) } : {}),
    ...(action === 'fin' || action === 'rst' ? { server: draw(random, ['close', 'reset'] as const) } : {}),
  }
}
