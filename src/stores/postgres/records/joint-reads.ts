// Reads of single records that go together. Whoever comes while others are out is gathered, and read by one statement
// with everybody else who came meanwhile: a round trip costs more than a record.
//
// A statement sees what was committed when it began. So nobody is answered by one that was out when he came: he may
// know of a commit that it has missed.

import type { RecordLimits } from '../../../atomicity/index.js'
import { type CancelTimer, type Clock, detached, waitFor } from '../../../kernel/index.js'
import { leftMs, type Query, type RecordStatements, type SqlAnswer, tooLate } from '../../sql/index.js'

/** So many are out before anybody is gathered: while the answer of one is worked on, the server has the other. */
const mostOut = 2
/** So many go together. */
const mostTogether = 64
/** The longest that somebody waits for others to return, in ms: they may be on a connection that has fallen silent. */
const patienceMs = 20

/** One who waits to be read. */
interface Gathered {
  readonly query: Query
  readonly limits: RecordLimits
  readonly resolve: (answer: SqlAnswer) => void
  readonly reject: (error: unknown) => void
}

/** The reads of single records of one store. */
export class JointReads {
  readonly #text: string
  readonly #clock: Clock
  readonly #send: (query: Query, limits: RecordLimits) => Promise<SqlAnswer>
  // In the order of their coming. Who does not wait any more is not in it.
  readonly #gathered = new Set<Gathered>()
  #out = 0
  // Grows when those that are out are not waited for any longer; they are not counted from then on.
  #round = 0
  #cancelTimer: CancelTimer | undefined

  constructor(
    statements: RecordStatements,
    clock: Clock,
    send: (query: Query, limits: RecordLimits) => Promise<SqlAnswer>,
  ) {
    this.#text = statements.readText('ANY ($1::text[])', 'm.id, ')
    this.#clock = clock
    this.#send = send
  }

  /** Reads the record that a statement names: at once, or with others as soon as one of those out has returned. */
  read(query: Query, limits: RecordLimits): Promise<SqlAnswer> {
    // What is urgent waits longer for a connection than others do.
    if (this.#out < mostOut || limits.urgent === true) return this.#counted(this.#send(query, limits))
    const clock = this.#clock
    const within = { clock, limitMs: leftMs(limits, clock), signal: limits.signal, expired: () => tooLate() }
    return waitFor<SqlAnswer>(within, (resolve, reject) => {
      const one: Gathered = { query, limits, resolve, reject }
      this.#gathered.add(one)
      if (this.#gathered.size >= mostTogether) this.#sendGathered()
      else this.#cancelTimer ??= clock.setTimer(patienceMs, () => this.#stopWaiting(), { keepAlive: false })
      return () => void this.#gathered.delete(one)
    })
  }

  async #counted<Result>(sent: Promise<Result>): Promise<Result> {
    const round = this.#round
    this.#out += 1
    try {
      return await sent
    } finally {
      if (round === this.#round) this.#out -= 1
      if (this.#gathered.size > 0) this.#sendGathered()
    }
  }

  #stopWaiting(): void {
    this.#out = 0
    this.#round += 1
    this.#sendGathered()
  }

  #sendGathered(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const group = [...this.#gathered]
    this.#gathered.clear()
    // They have nothing to do with the work of whoever happens to have returned.
    if (group.length > 0) void detached(() => this.#counted(this.#readTogether(group)))
  }

  // Never rejects: each of the group is told by itself.
  async #readTogether(group: readonly Gathered[]): Promise<void> {
    // Who may not wait for so long has an end of his own.
    const expiresAtMs = Math.max(...group.map(({ limits }) => limits.deadline.expiresAtMs))
    const limits: RecordLimits = { deadline: { expiresAtMs } }
    const [first, ...others] = group as [Gathered, ...Gathered[]]
    try {
      if (others.length === 0) {
        first.resolve(await this.#send(first.query, limits))
        return
      }
      const ids = group.map(({ query }) => query.values[0])
      const { rows } = await this.#send({ text: this.#text, values: [ids] }, limits)
      const found = new Map(rows.map((row) => [row['id'], [row]]))
      // Where none is found there is one row all the same, for the time.
      const absent = [{ now_ms: rows[0]?.['now_ms'] }]
      for (const { query, resolve } of group) resolve({ rows: found.get(query.values[0]) ?? absent, rowCount: 1 })
    } catch (error) {
      first.reject(error)
      for (const { reject } of others) reject(ownCopy(error))
    }
  }
}

// An error is told apart by itself, such as for the history of a call, so nobody gets that of somebody else.
function ownCopy(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return Object.create(Object.getPrototypeOf(error) as object, Object.getOwnPropertyDescriptors(error))
}
