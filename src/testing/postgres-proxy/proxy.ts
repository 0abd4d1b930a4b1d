// The proxy: listens on a loopback port, passes every connection to a PostgreSQL server, and does what its faults say.

import { createServer, type Server } from 'node:net'
import { type Clock, demandKnown, RepriseError, sleep, systemClock } from '../../kernel/index.js'
import { type ConnectionState, ProxiedConnection } from './connection.js'
import { Armed, type ArmedFault, type Fired, type ProxyFault } from './faults.js'

/** Where a proxy stands. */
export interface PostgresProxyOptions {
  /** The server. Its address is asked for at every new connection, so a getter can follow a failover. */
  readonly upstream: { readonly host: string; readonly port: number }
  /** The port to listen on, on 127.0.0.1. Default: a free one. */
  readonly port?: number
  /**
   * What becomes of requests for encryption: `refuse` answers them with no, so that everything can be read; `pass` lets the server decide, and an encrypted
   * connection is passed on unread, out of reach of every fault. Default `refuse`.
   */
  readonly encryption?: 'refuse' | 'pass'
  /** The clock of delays and records. Default the system's. */
  readonly clock?: Clock
}

/** A connection, as a test sees it. */
export interface ProxyConnection {
  /** Its number, the first being 1. */
  readonly id: number
  /** What has become of it. */
  readonly state: ConnectionState
  /** Bytes passed to the server. */
  readonly bytesToServer: number
  /** Bytes passed to the client. */
  readonly bytesToClient: number
}

/** A wire-aware proxy in front of a PostgreSQL server. */
export interface PostgresProxy {
  /** Where it listens: always 127.0.0.1. */
  readonly host: string
  /** The port it listens on. */
  readonly port: number
  /** Every connection that is not closed, in the order of their arrival. */
  readonly connections: readonly ProxyConnection[]
  /** Every fault that happened, in order: the proof that a test met what it says it met. */
  readonly fired: readonly Fired[]
  /** The texts of the last 10,000 statements that clients sent, in order. */
  readonly statements: readonly string[]
  /** Arms a fault. The first armed one wins where two choose the same moment. */
  arm(fault: ProxyFault): ArmedFault
  /**
   * Ends the time of faults: disarms all, waits for late deliveries (at most 30 s), and closes whatever a fault left open. Open connections stay.
   * From here on a test may demand that everything settles.
   */
  heal(): Promise<void>
  /** Ends every connection and stops listening, within 5 s. */
  close(): Promise<void>
}

const maxStatements = 10_000
const closeLimitMs = 5_000
const healLimitMs = 30_000

/**
 * Starts a {@link PostgresProxy}. Whoever starts one closes it.
 *
 * @example
 * ```ts
 * import { commits, postgresProxy } from 'reprise/testing'
 *
 * const proxy = await postgresProxy({ upstream: { host: '127.0.0.1', port: 5432 } })
 * const lost = proxy.arm({ statement: commits, at: 'after-forward', action: 'rst' })
 * // … let a pool on proxy.host and proxy.port commit a transaction …
 * console.log(lost.fired.length, proxy.statements)
 * await proxy.close()
 * ```
 */
export async function postgresProxy(options: PostgresProxyOptions): Promise<PostgresProxy> {
  checkOptions(options)
  const { clock = systemClock, encryption = 'refuse' } = options
  const connections = new Map<number, ProxiedConnection>()
  const armed = new Set<Armed>()
  const fired: Fired[] = []
  const statements: string[] = []
  let accepted = 0

  const faultsOn = (candidates: readonly string[] | 'startup'): readonly Armed[] => {
    if (candidates !== 'startup') statements.push(...candidates)
    if (statements.length > maxStatements) statements.splice(0, statements.length - maxStatements)
    return [...armed].filter((fault) => fault.chooses(candidates))
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    accepted += 1
    const id = accepted
    const { host, port } = options.upstream
    const context = { id, upstream: { host, port }, encryption, clock, faultsOn }
    const connection = new ProxiedConnection(client, context)
    connections.set(id, connection)
    connection.gone.then(() => connections.delete(id))
  })
  const port = await listen(server, options.port ?? 0)

  const within = async (limitMs: number, ends: Promise<unknown>): Promise<void> => {
    const over = new AbortController()
    const limit = sleep(limitMs, { clock, signal: over.signal, keepAlive: false }).catch(() => undefined)
    await Promise.race([ends, limit])
    over.abort()
  }
  return {
    host: '127.0.0.1',
    port,
    fired,
    statements,
    get connections() {
      return [...connections].map(([id, { state, bytesToServer, bytesToClient }]) => ({
        id,
        state,
        bytesToServer,
        bytesToClient,
      }))
    },
    arm(fault) {
      const one = new RecordedFault(fault, fired)
      armed.add(one)
      return one
    },
    async heal() {
      for (const one of armed) one.disarm()
      armed.clear()
      const left = [...connections.values()].filter((connection) => connection.state !== 'open')
      for (const connection of left) connection.heal()
      await within(healLimitMs, Promise.all(left.map((connection) => connection.gone)))
      for (const connection of left) connection.destroy()
    },
    async close() {
      for (const one of armed) one.disarm()
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()))
      const left = [...connections.values()]
      for (const connection of left) connection.destroy()
      await within(closeLimitMs, Promise.all([stopped, ...left.map((connection) => connection.gone)]))
    },
  }
}

function checkOptions(options: PostgresProxyOptions): void {
  demandKnown(options, ['upstream', 'port', 'encryption', 'clock'], 'options')
  const { upstream, port = 0, encryption = 'refuse', clock = systemClock } = options
  // Only that it is there: its members may be getters that follow a failover, and be known later.
  if (typeof upstream !== 'object' || upstream === null || !('host' in upstream) || !('port' in upstream))
    throw invalid('upstream')
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw invalid('port')
  if (encryption !== 'refuse' && encryption !== 'pass') throw invalid('encryption')
  if (typeof clock?.monotonicMs !== 'function') throw invalid('clock')
}

function invalid(option: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option ${option} is not valid.`, { details: { option } })
}

/** A fault that also writes into the proxy's own record. */
class RecordedFault extends Armed {
  readonly #record: Fired[]

  constructor(fault: ProxyFault, record: Fired[]) {
    super(fault)
    this.#record = record
  }

  override happened(fired: Fired): void {
    this.#record.push(fired)
    super.happened(fired)
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}
