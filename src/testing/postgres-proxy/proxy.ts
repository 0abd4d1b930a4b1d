// The proxy: listens on a loopback port, passes every connection to a PostgreSQL server, and carries out the faults.

import { createServer, type Server } from 'node:net'
import { type Clock, demandKnown, inTime, RepriseError, systemClock } from '../../kernel/index.js'
import { type ConnectionState, ProxiedConnection } from './connection.js'
import { Armed, type ArmedFault, type Fired, type ProxyFault } from './faults.js'

/** Where a proxy listens, and which server it passes connections to. */
export interface PostgresProxyOptions {
  /** The server. The address is read for every new connection, so a getter can follow a failover. */
  readonly upstream: { readonly host: string; readonly port: number }
  /** The port to listen on, on 127.0.0.1. Default: a free one. */
  readonly port?: number
  /**
   * How requests for encryption are handled. `refuse`: they are refused, so that all messages can be read. `pass`: the
   * server decides, and an encrypted connection is passed on unread, so no fault can hit it. Default `refuse`.
   */
  readonly encryption?: 'refuse' | 'pass'
  /** The clock for delays and recorded times. Default: the system's. */
  readonly clock?: Clock
}

/** A connection, as a test sees it. */
export interface ProxyConnection {
  /** The number of the connection, the first being 1. */
  readonly id: number
  readonly state: ConnectionState
  readonly bytesToServer: number
  readonly bytesToClient: number
}

/** A proxy in front of a PostgreSQL server that understands its protocol. */
export interface PostgresProxy {
  /** Always 127.0.0.1. */
  readonly host: string
  readonly port: number
  /** Every connection that is not closed, in the order of arrival. */
  readonly connections: readonly ProxyConnection[]
  /** Every fault that happened, in order: the proof that a test met what it claims to have met. */
  readonly fired: readonly Fired[]
  /** The texts of the last 10,000 statements that clients sent, in order. */
  readonly statements: readonly string[]
  /** Arms a fault. If two faults choose the same moment, the one armed first happens. */
  arm(fault: ProxyFault): ArmedFault
  /**
   * Ends all faults: disarms them, waits for late deliveries (at most 30 s) and closes whatever a fault left open. Open
   * connections stay open. After this a test may expect that everything settles.
   */
  heal(): Promise<void>
  /** Closes every connection and stops listening, within 5 s. */
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

  const within = (limitMs: number, ends: Promise<unknown>): Promise<unknown> =>
    inTime({ clock, limitMs }, ends).catch(() => undefined)
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
      const one = new Armed(fault, (event) => fired.push(event))
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
  // Only checks that they exist: host and port may be getters that follow a failover and are known later.
  if (typeof upstream !== 'object' || upstream === null || !('host' in upstream) || !('port' in upstream))
    throw invalidOption('upstream')
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw invalidOption('port')
  if (encryption !== 'refuse' && encryption !== 'pass') throw invalidOption('encryption')
  if (typeof clock?.monotonicMs !== 'function') throw invalidOption('clock')
}

function invalidOption(option: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option ${option} is not valid.`, { details: { option } })
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
