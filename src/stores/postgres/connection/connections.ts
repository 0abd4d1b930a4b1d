// Connections out of the user's pool: waited for no longer than asked, given back when they come too late, and never
// able to end the process.

import type { AcquireLimits } from '../../../atomicity/index.js'
import { type Clock, RepriseError, waitFor } from '../../../kernel/index.js'
import { effectGuard } from '../../../transaction/index.js'
import type { PostgresPool, PostgresPoolClient } from '../options.js'
import { takesBatches } from './batch.js'
import { guardPool } from './guarded-pool.js'
import {
  demandNewest,
  isCrowded,
  isPassed,
  leaveBehind,
  lookAfter,
  mostOf,
  pauseForPlace,
  stateOf,
  type Timeline,
  takenOf,
} from './pool-state.js'

/** The connections of a store. */
export interface Connections {
  /**
   * Waits for a connection on which no transaction is open, of a server that was not replaced by another one. Refuses
   * with COMMITS_UNANSWERED where connections that were left behind take all places.
   */
  take(limits: Omit<AcquireLimits, 'readOnly'>): Promise<PostgresPoolClient>
  /** A connection that can be had without making anybody wait, or undefined. */
  spare(limits: Omit<AcquireLimits, 'readOnly'>): Promise<PostgresPoolClient | undefined>
  /** The most connections that the pool makes. */
  readonly most: number
  /** Destroys a connection that has not answered. Its place counts as taken until its process on the server is gone. */
  leave(client: PostgresPoolClient): void
  /** Refuses with TIMELINE_PASSED a server that was replaced by another one, and remembers the newest timeline. */
  demandNewest(server: Timeline): void
  /** Refuses from now on, and leaves the pool to its owner. */
  close(): void
}

/** What is known of the server process behind a connection. */
export interface Backend {
  readonly pid: string
  /** When the process was started, in µs since 1970. */
  readonly start: string
  readonly system: string
  /** The server's life between two crashes. */
  readonly life: string
  readonly timeline: string
  /** Whether it was seen to be another process than before: there is a pooler in between. */
  readonly changes: boolean
}

/** What is known of a connection for as long as it lives. */
export interface KnownConnection {
  /** Undefined: the server was not asked yet. */
  backend: Backend | undefined
  /** Whether several statements can be sent to it in one write. */
  batches: boolean
  /** Whether it has taken such a write as it was: nothing around the client makes a text of it. */
  proven: boolean
  /** How often its backend turned out not to have what was prepared. */
  lost: number
  /** Whether the server reads values as UTF-8, as they are sent: a body may have set another client_encoding. */
  isUtf8: boolean
}

/** The connection of a client of pg, as far as it tells of settings. */
interface StatusSource {
  on(
    event: 'parameterStatus',
    listener: (status: { readonly parameterName: string; readonly parameterValue: string }) => void,
  ): unknown
}

const ignore = (): void => undefined

// Shared by all stores of the process.
const connections = new WeakMap<object, KnownConnection>()

/** What is known of a connection. From the first time on, nothing that happens to it can end the process. */
export function knownConnection(client: PostgresPoolClient): KnownConnection {
  let known = connections.get(client)
  if (known === undefined) {
    const made: KnownConnection = {
      backend: undefined,
      batches: takesBatches(client),
      proven: false,
      lost: 0,
      isUtf8: true,
    }
    known = made
    connections.set(client, made)
    client.on('error', ignore)
    // pg asks for UTF-8 when it connects; the server tells of each change. A client without such a connection tells
    // nothing, so that the encoding is set each time.
    const { connection } = client as { readonly connection?: StatusSource }
    if (connection === undefined) made.isUtf8 = false
    connection?.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'client_encoding') made.isUtf8 = parameterValue === 'UTF8'
    })
  }
  return known
}

/** A pool that tells of a connection before it hands it out for the first time, as pg's does. */
interface NewConnections {
  on(event: 'connect', listener: (client: PostgresPoolClient) => void): unknown
  removeListener(event: 'connect', listener: (client: PostgresPoolClient) => void): unknown
}

// Several domains on one pool need one listener, and Node warns of more than ten.
//
// A connection is known before the pool hands it out: a server that is ready and ends it at once is told of by one
// read, and whoever waits for the connection would listen too late.
function listenToPool(pool: PostgresPool): () => void {
  const state = stateOf(pool)
  const source = pool as unknown as NewConnections
  if (state.stores === 0) {
    pool.on('error', ignore)
    source.on('connect', knownConnection)
  }
  state.stores += 1
  return () => {
    state.stores -= 1
    if (state.stores > 0) return
    pool.removeListener('error', ignore)
    source.removeListener('connect', knownConnection)
  }
}

/** The connections of a pool. */
export function connectionsOf(pool: PostgresPool, clock: Clock): Connections {
  refuseOther(pool)
  // A pool takes its listener off a connection while it is in use, and an error event that nobody listens to ends the
  // process, just when a commit is lost. The operations themselves fail too, so nothing is hidden here.
  const leavePool = listenToPool(pool)
  const state = stateOf(pool)
  const leave = (client: PostgresPoolClient): void => {
    leaveBehind(state, client)
    client.release(true)
  }
  let closed = false
  const take: Connections['take'] = async ({ waitMs, signal, resolving }) => {
    const untilMs = clock.monotonicMs() + waitMs
    if (effectGuard.isOn) guardPool(pool)
    for (;;) {
      if (closed) throw new RepriseError('STORE_CLOSED', 'The store was closed.')
      if (state.leftBehind.size > 0 && isCrowded(pool, state, takenOf(pool), resolving)) {
        await pauseForPlace(pool, state, { clock, untilMs, signal, resolving })
        continue
      }
      const limitMs = Math.max(0, untilMs - clock.monotonicMs())
      const limits = { clock, limitMs, signal, expired: () => tooLong(pool, limitMs) }
      const client = await waitFor<PostgresPoolClient>(limits, (resolve, reject) => {
        const source = state.unguarded ?? pool
        source.connect().then((connected) => {
          // Connecting cannot be called off; what comes too late goes straight back.
          if (!resolve(connected)) connected.release(state.leftBehind.size > 0)
        }, reject)
      })
      const { backend } = knownConnection(client)
      if (typeof client.getTransactionStatus !== 'function') throw driverTooOld(client)
      const status = client.getTransactionStatus()
      if (backend !== undefined && backend.timeline !== state.newest?.timeline && isPassed(state, backend)) {
        client.release(true)
        continue
      }
      if (state.leftBehind.size > 0) {
        // It was waiting in the pool's own queue when others were left behind, and the pool made this one instead.
        if (isCrowded(pool, state, pool.totalCount - pool.idleCount - 1, resolving)) {
          client.release(true)
          continue
        }
        try {
          await lookAfter(client, state, { ...limits, limitMs: Math.max(0, untilMs - clock.monotonicMs()) })
        } catch (error) {
          client.release(true)
          throw error
        }
      }
      if (!closed && (status === 'I' || status === null)) return client
      // Somebody gave it back with a transaction open, and BEGIN would join that one; or the store was closed
      // meanwhile.
      client.release(!closed)
    }
  }
  return {
    take,
    async spare(limits) {
      const free = pool.idleCount > 0 || pool.totalCount < mostOf(pool)
      return free && !isCrowded(pool, state, takenOf(pool)) && pool.waitingCount === 0 ? take(limits) : undefined
    },
    most: mostOf(pool),
    leave,
    demandNewest: (server) => demandNewest(state, server),
    close() {
      if (!closed) leavePool()
      closed = true
    },
  }
}

// A client has `connect` too, and would be found out only when the first transaction begins.
function refuseOther(pool: Partial<PostgresPool> | null | undefined): void {
  if (typeof pool?.connect === 'function' && typeof pool.on === 'function' && typeof pool.totalCount === 'number')
    return
  throw new RepriseError('ARGUMENT_INVALID', 'The option pool is no pool of pg: give it new pg.Pool(…).', {
    details: { option: 'pool' },
  })
}

function driverTooOld(client: PostgresPoolClient): RepriseError {
  client.release()
  const message = 'The driver cannot tell the state of a transaction: pg 8.23 or newer is needed.'
  return new RepriseError('RUNTIME_UNSUPPORTED', message)
}

function tooLong(pool: PostgresPool, waitMs: number): RepriseError {
  const details = {
    waitMs: Math.ceil(waitMs),
    connections: pool.totalCount,
    idle: pool.idleCount,
    waiting: pool.waitingCount,
  }
  const most = (pool as { readonly options?: { readonly max?: number } }).options?.max
  const full = most === undefined || pool.totalCount >= most
  return full
    ? new RepriseError('POOL_EXHAUSTED', `No connection became free within ${Math.ceil(waitMs)} ms.`, { details })
    : new RepriseError('CONNECT_TIMEOUT', `No connection could be made within ${Math.ceil(waitMs)} ms.`, { details })
}
