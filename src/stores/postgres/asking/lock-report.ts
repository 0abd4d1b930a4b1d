// Who stands before a session that waits for a lock, and, where such waits end in vain again and again, what speaks for
// each of the usual causes. It has to be asked while the session waits, from another connection: afterwards nobody
// blocks it.

import type { Blocker, LockEvidence } from '../../../atomicity/index.js'
import { type Clock, inTime } from '../../../kernel/index.js'
import type { Connections } from '../connection/connections.js'
import type { PostgresPoolClient } from '../options.js'
import { evidenceIn, type LockFacts, lockFactsText } from './lock-evidence.js'

/** How long the report itself may take, in ms; it is worth less than the answer it delays. */
const reportLimitMs = 500
/** Time-outs that are further apart than this, in ms, have little to do with each other. */
const repeatedWithinMs = 60_000
/** How often the server is looked at for causes, in ms, by all transactions of a domain together. */
const lookEveryMs = 10_000
/** A shorter wait, in ms, is a question whether somebody is there, and its end is no sign of trouble. */
const shortestCountedMs = 100

/** What one look at the server found. */
interface Look {
  readonly atMs: number
  /** The session that waited, and all that stood before it. */
  readonly sessions: ReadonlySet<string>
  readonly evidence: readonly LockEvidence[]
}

/** The reports of a domain: each look at the server serves all of its transactions. */
export class LockReports {
  readonly #connections: Connections
  readonly #clock: Clock
  #timedOutAtMs = Number.NEGATIVE_INFINITY
  #deadlocks = { count: 0, lastAtMs: Number.NEGATIVE_INFINITY }
  #look: Look = { atMs: Number.NEGATIVE_INFINITY, sessions: new Set(), evidence: [] }

  constructor(connections: Connections, clock: Clock) {
    this.#connections = connections
    this.#clock = clock
  }

  /**
   * Asks who blocks a backend, and looks for causes where a time-out came before. Best effort: an empty list where no
   * connection is to spare, rights are missing, or the answer takes too long. Never throws.
   *
   * @param waitMs How long the backend waits for its lock in all.
   */
  async blockersOf(pid: string, waitMs: number): Promise<readonly Blocker[]> {
    const untilMs = this.#clock.monotonicMs() + reportLimitMs
    let client: PostgresPoolClient | undefined
    let blockers: readonly Blocker[] = []
    try {
      client = await this.#connections.spare({ waitMs: reportLimitMs })
      if (client === undefined) return blockers
      const { rows } = await this.#inTime(untilMs, client.query(blockersText, [pid]))
      blockers = rows.map(blockerOf)
      if (waitMs >= shortestCountedMs && this.#isLookDue()) await this.#lookAt(client, pid, waitMs, untilMs)
      client.release()
    } catch {
      // It may still be at work on the answer, or never answer at all.
      if (client !== undefined) this.#connections.leave(client)
    }
    return blockers
  }

  /** Counts a wait that ended in vain. */
  timedOut(waitMs: number): void {
    if (waitMs >= shortestCountedMs) this.#timedOutAtMs = this.#clock.monotonicMs()
  }

  /** Counts a deadlock that the server cut. */
  deadlocked(): void {
    const nowMs = this.#clock.monotonicMs()
    const { count, lastAtMs } = this.#deadlocks
    this.#deadlocks = { count: nowMs - lastAtMs > repeatedWithinMs ? 1 : count + 1, lastAtMs: nowMs }
  }

  /**
   * What the last look found, where one of these sessions was part of it. Else it is about other locks.
   *
   * @param waitMs How long the wait was: the look may have been made in its middle.
   */
  evidenceFor(blockers: readonly Blocker[], waitMs: number): readonly LockEvidence[] {
    const { atMs, sessions, evidence } = this.#look
    if (this.#clock.monotonicMs() - atMs > Math.max(lookEveryMs, waitMs)) return []
    return blockers.some(({ session }) => sessions.has(session)) ? evidence : []
  }

  #isLookDue(): boolean {
    const nowMs = this.#clock.monotonicMs()
    return nowMs - this.#timedOutAtMs <= repeatedWithinMs && nowMs - this.#look.atMs >= lookEveryMs
  }

  async #lookAt(client: PostgresPoolClient, pid: string, waitMs: number, untilMs: number): Promise<void> {
    const atMs = this.#clock.monotonicMs()
    // Before the answer, so that nobody else looks meanwhile, and a look that fails is not made again at once.
    this.#look = { atMs, sessions: new Set(), evidence: [] }
    // One message, with a limit that the server keeps too. The answer of the SELECT is the third of four.
    const text = `BEGIN READ ONLY; SET LOCAL statement_timeout = ${reportLimitMs}; ${lockFactsText(pid)}; COMMIT`
    const answers: unknown = await this.#inTime(untilMs, client.query(text))
    const facts = (answers as readonly { readonly rows: readonly { readonly facts: LockFacts }[] }[])[2]?.rows[0]?.facts
    if (facts === undefined) return
    const { count, lastAtMs } = this.#deadlocks
    const deadlocks = atMs - lastAtMs <= repeatedWithinMs ? count : 0
    const evidence = evidenceIn(facts, { pid, waitMs, deadlocks, poolMax: this.#connections.most })
    this.#look = { atMs, sessions: new Set([pid, ...facts.sessions.map(({ session }) => session)]), evidence }
  }

  #inTime<Value>(untilMs: number, work: Promise<Value>): Promise<Value> {
    return inTime({ clock: this.#clock, limitMs: untilMs - this.#clock.monotonicMs() }, work)
  }
}

const blockersText = `SELECT a.pid::text AS session, coalesce(a.state, '') AS state, coalesce(a.application_name, '') AS application,
  greatest(0, extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.backend_start)) * 1000)::bigint::text AS open_ms,
  (extract(epoch FROM coalesce(a.xact_start, a.backend_start)) * 1000)::bigint::text AS since_ms
  FROM unnest(pg_blocking_pids($1::integer)) AS b(pid) JOIN pg_stat_activity a ON a.pid = b.pid ORDER BY a.xact_start NULLS LAST LIMIT 20`

function blockerOf(row: Readonly<Record<string, unknown>>): Blocker {
  return {
    session: String(row['session']),
    openMs: Number(row['open_ms']),
    ...(row['since_ms'] === null ? {} : { openSinceMs: Number(row['since_ms']) }),
    state: String(row['state']),
    application: String(row['application']),
  }
}
