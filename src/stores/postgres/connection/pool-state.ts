// What is known of a pool, and shared by all stores on it: who listens, the newest timeline that was seen through it,
// and the server processes that were left behind with something unanswered.

import { type Clock, defined, inTime, RepriseError, sleep } from '../../../kernel/index.js'
import type { PostgresPool, PostgresPoolClient } from '../options.js'

/** What is known of a pool. */
export interface PoolState {
  /** How many stores listen to its errors. */
  stores: number
  /** The newest timeline seen through it, and of which system; undefined: none yet. */
  newest: Timeline | undefined
  /**
   * The processes of connections that were destroyed before they had answered. A COMMIT that waits for a standby goes
   * on without its client, so their places on the server are still taken, though the pool counts them as free.
   */
  readonly leftBehind: Set<number>
  /** When they were last looked at, in ms of monotonic time. */
  lookedAtMs: number
  /** Where Reprise takes its own connections from, where the pool is guarded; undefined: from the pool. */
  unguarded: Pick<PostgresPool, 'connect'> | undefined
}

/** Where a server's history stands: a number that grows with each failover, as text of eight hexadecimal digits. */
export interface Timeline {
  readonly system: string
  readonly timeline: string
}

const states = new WeakMap<object, PoolState>()

/** More are not remembered: a pool that leaves so many behind has stopped working long before. */
const mostLeftBehind = 10_000
/** How long one look at them is believed, in ms; also how often somebody who waits for a place looks again. */
const lookEveryMs = 25

/** What is known of a pool. */
export function stateOf(pool: PostgresPool): PoolState {
  let state = states.get(pool)
  if (state === undefined) {
    state = {
      stores: 0,
      newest: undefined,
      leftBehind: new Set(),
      lookedAtMs: Number.NEGATIVE_INFINITY,
      unguarded: undefined,
    }
    states.set(pool, state)
  }
  return state
}

/** The most connections that the pool makes; `pg` takes 10 where it is not told. */
export function mostOf(pool: PostgresPool): number {
  return (pool as { readonly options?: { readonly max?: number } }).options?.max ?? 10
}

/** Counts the process behind a connection until it is gone. */
export function leaveBehind({ leftBehind }: PoolState, client: PostgresPoolClient): void {
  const pid = (client as { readonly processID?: unknown }).processID
  if (typeof pid === 'number' && leftBehind.size < mostLeftBehind) leftBehind.add(pid)
}

/** Who waits for a connection, and for how long. */
export interface PlaceLimits {
  readonly clock: Clock
  /** When the wait is over, in ms of monotonic time. */
  readonly untilMs: number
  readonly signal: AbortSignal | undefined
  /** Whether it is to find out what became of one that was left behind. */
  readonly resolving: boolean | undefined
}

/**
 * Whether those that were left behind leave no room for another connection in use. They take places like those in use,
 * so that the server never has more of them than the pool may make. One more is for finding out what became of them.
 *
 * @param taken How many connections are in use.
 */
export function isCrowded(
  pool: PostgresPool,
  { leftBehind }: PoolState,
  taken: number,
  resolving: boolean = false,
): boolean {
  return leftBehind.size > 0 && taken >= Math.max(resolving ? 1 : 0, mostOf(pool) - leftBehind.size)
}

/** How many connections are in use, or about to be. */
export function takenOf(pool: PostgresPool): number {
  return pool.totalCount - pool.idleCount + pool.waitingCount
}

/**
 * Waits a moment for a place beside those that were left behind, and looks whether they are gone. Refuses with
 * COMMITS_UNANSWERED when there is no time left.
 */
export async function pauseForPlace(pool: PostgresPool, state: PoolState, limits: PlaceLimits): Promise<void> {
  const { clock, untilMs, signal } = limits
  const leftMs = untilMs - clock.monotonicMs()
  if (leftMs <= 0) throw unanswered(pool, state)
  if (isDue(state, clock) && !isCrowded(pool, state, takenOf(pool), true)) {
    const look = async (): Promise<void> => {
      const client = await (state.unguarded ?? pool).connect()
      await lookAfter(client, state, { clock, limitMs: leftMs }).then(
        () => client.release(true),
        () => client.release(true),
      )
    }
    // Where nobody can be asked, all that can be done is to wait.
    await inTime(defined({ clock, limitMs: leftMs, signal }), look()).catch(() => undefined)
  }
  await sleep(Math.min(lookEveryMs, Math.ceil(leftMs)), defined({ clock, signal }))
}

function isDue({ lookedAtMs }: PoolState, clock: Clock): boolean {
  return clock.monotonicMs() - lookedAtMs >= lookEveryMs
}

/** Looks which of those that were left behind are gone. Throws `expired` where the connection cannot tell in time. */
export async function lookAfter(
  client: PostgresPoolClient,
  state: PoolState,
  limits: { readonly clock: Clock; readonly limitMs: number; readonly expired?: () => unknown },
): Promise<void> {
  const { leftBehind } = state
  if (!isDue(state, limits.clock)) return
  state.lookedAtMs = limits.clock.monotonicMs()
  const asked = [...leftBehind]
  const { rows } = await inTime(limits, client.query(stillThere, [asked]))
  const there = new Set(rows.map((row) => Number(row['pid'])))
  for (const pid of asked) if (!there.has(pid)) leftBehind.delete(pid)
}

// A process that has nothing to do is about to see that its client is gone; or it is another one that got the number.
const stillThere = `SELECT pid FROM pg_stat_activity
  WHERE pid = ANY($1::integer[]) AND state <> 'idle' AND pid <> pg_backend_pid()`

function unanswered(pool: PostgresPool, { leftBehind }: PoolState): RepriseError {
  const [unanswered, most] = [leftBehind.size, mostOf(pool)]
  const message =
    `${unanswered} connections of a pool of ${most} were given up while the server was still at work for them, and keep their places there: ` +
    'a COMMIT may be waiting for a synchronous standby that is away.'
  return new RepriseError('COMMITS_UNANSWERED', message, { details: { unanswered, most } })
}

/** Whether a server is behind what was seen through the pool: an old primary that came back after a failover. */
export function isPassed({ newest }: PoolState, { system, timeline }: Timeline): boolean {
  return newest !== undefined && newest.system === system && timeline !== '' && timeline < newest.timeline
}

/** Remembers the timeline of a server that was reached through the pool. One that is behind is TIMELINE_PASSED. */
export function demandNewest(state: PoolState, { system, timeline }: Timeline): void {
  if (timeline === '') return
  if (isPassed(state, { system, timeline })) {
    const message =
      'The server is an old primary: through the same pool a newer timeline was seen, so another server was promoted. Nothing was begun on it.'
    const newest = state.newest?.timeline ?? ''
    throw new RepriseError('TIMELINE_PASSED', message, { details: { timeline, newest } })
  }
  state.newest = { system, timeline }
}
