// Statements on records, each on a connection of the pool and in no transaction but its own, no longer than a deadline
// allows.

import type { RecordLimits } from '../../../atomicity/index.js'
import { type Clock, defined, type ErrorCode, isRepriseError, sha256, waitFor } from '../../../kernel/index.js'
import { storeFull, storeUnreachable } from '../../../transaction/index.js'
import {
  leftMs,
  migrationMissing,
  type Procedure,
  performAsync,
  postgresDialect,
  type Query,
  type RecordRunner,
  type RecordStatements,
  type SqlAnswer,
  tooLate,
  type WrittenRecord,
} from '../../sql/index.js'
import { heedNotices, isUnreplicated, untilReplicated } from '../asking/replicated.js'
import { learnBackend } from '../asking/trace.js'
import { classifyPostgres, endsConnection, signsOf } from '../classification.js'
import { type Connections, knownConnection } from '../connection/connections.js'
import type { PostgresAnswer, PostgresPoolClient } from '../options.js'
import { JointReads } from './joint-reads.js'

/** What statements need. */
export interface RunnerParts {
  /** The name of the store. */
  readonly domain: string
  readonly connections: Connections
  readonly statements: RecordStatements
  readonly clock: Clock
  /** The longest wait for a connection, in ms. */
  readonly connectionWaitMs: number
}

/**
 * A statement of which it is proven that it did nothing is sent this often: where the default of the database is
 * SERIALIZABLE, several in a row meet those of others.
 */
const mostRounds = 10
/** So often it is asked whether all is with the standbys. */
const mostLooks = 4
/** As many texts are prepared on a connection; what comes after is parsed each time. */
const mostNames = 64

/** Runs statements that are each a commit of their own. */
export class StatementRunner implements RecordRunner {
  readonly #parts: RunnerParts
  readonly #joint: JointReads
  readonly #names = new Map<string, string>()
  // A pooler that changes the backend between two statements knows nothing of what was prepared.
  #prepares = true
  // How many statements may have committed on the primary alone: they were not answered, or their wait for a standby
  // was cancelled. Until all is known to be with the standbys, no answer is believed: it may rest on one of them.
  #unproven = 0

  constructor(parts: RunnerParts) {
    this.#parts = parts
    this.#joint = new JointReads(parts.statements, parts.clock, (query, limits) => this.#send(query, limits))
  }

  async read(query: Query, limits: RecordLimits): Promise<SqlAnswer['rows']> {
    return (await (query.single === true ? this.#joint.read(query, limits) : this.#send(query, limits))).rows
  }

  // Every procedure of this dialect is one statement, at most followed by another look.
  async write<Result>(
    procedure: () => Procedure<Result>,
    limits: RecordLimits,
    about?: WrittenRecord,
  ): Promise<Result> {
    return performAsync(procedure(), (query) => this.#send(query, limits, about))
  }

  // Sent again where the server proves that it did nothing: another transaction was in its way.
  async #send(query: Query, limits: RecordLimits, about?: WrittenRecord): Promise<SqlAnswer> {
    for (let round = 1; ; round++) {
      try {
        const { rows, rowCount } = await this.#once(query, limits)
        return { rows, rowCount: rowCount ?? rows.length }
      } catch (error) {
        const signs = signsOf(error)
        if (signs.some((sign) => unprepared.has(sign))) this.#prepares = false
        if (round < mostRounds && signs.some((sign) => harmless.has(sign))) continue
        throw this.#shown(error, signs, about)
      }
    }
  }

  #shown(error: unknown, signs: readonly string[], about: WrittenRecord | undefined): unknown {
    if (postgresDialect.isMissing(signs, '')) return migrationMissing(error)
    return signs.includes('53100') ? storeFull(this.#parts.domain, '53100', error, about) : error
  }

  async #once({ text, values, plansAnew = false }: Query, limits: RecordLimits): Promise<PostgresAnswer> {
    const { clock, connections, domain } = this.#parts
    const client = await this.#connection(limits)
    // What runs on cannot be called off; on a connection that is gone, at least nobody waits for it.
    let fate: 'keep' | 'destroy' | 'leave' = 'leave'
    // The first statement on a connection waits until it is known which server that is.
    const state = { sent: knownConnection(client).backend !== undefined }
    const unsent = (cause?: unknown) => storeUnreachable(domain, cause)
    const expired = () => tooLate(state.sent ? undefined : unsent())
    const within = { clock, limitMs: leftMs(limits, clock), expired }
    return waitFor(within, (resolve, reject) => {
      const stopHeeding = heedNotices(client, (notice) => {
        if (isUnreplicated(notice)) this.#unproven += 1
      })
      this.#ask(client, { name: plansAnew ? undefined : this.#nameOf(text), text, values }, state).then(
        (answer) => {
          fate = 'keep'
          resolve(answer)
        },
        (error: unknown) => {
          if (!endsConnection(error)) fate = isRepriseError(error) ? 'destroy' : 'keep'
          reject(fate === 'leave' && !state.sent ? unsent(error) : error)
        },
      )
      return () => {
        stopHeeding()
        if (fate === 'leave') {
          if (state.sent) this.#unproven += 1
          connections.leave(client)
        } else client.release(fate === 'destroy')
      }
    })
  }

  async #ask(client: PostgresPoolClient, config: object, state: { sent: boolean }): Promise<PostgresAnswer> {
    const { connections } = this.#parts
    if (!state.sent) connections.demandNewest(await learnBackend(client))
    state.sent = true
    // pg takes a config too; the type of the port knows texts alone.
    const answer = await client.query(config as unknown as string)
    for (let round = 1; this.#unproven > 0; round++) {
      if (round > mostLooks) throw tooLate()
      const before = this.#unproven
      if ((await untilReplicated(client)) && this.#unproven === before) this.#unproven = 0
    }
    return answer
  }

  async #connection(limits: RecordLimits): Promise<PostgresPoolClient> {
    const { connections, clock, connectionWaitMs } = this.#parts
    const { signal, urgent = false } = limits
    const left = leftMs(limits, clock)
    if (left <= 0) throw tooLate()
    // The pool has its own queue, in which nobody overtakes: what is urgent keeps its place there for as long as it
    // can.
    const waitMs = urgent ? left : Math.min(connectionWaitMs, left)
    try {
      return await connections.take(defined({ waitMs, signal }))
    } catch (error) {
      // Nothing was sent. What is lost later may have happened, and keeps the driver's error.
      const unreached = !isRepriseError(error) && classifyPostgres(error, 'connecting').help === 'transient'
      if (unreached) throw storeUnreachable(this.#parts.domain, error)
      const waited = isRepriseError(error) && waits.has(error.code)
      throw waited && waitMs === left ? tooLate(error) : error
    }
  }

  // By the text, so that nobody can have prepared something else under the name, also behind a pooler.
  #nameOf(text: string): string | undefined {
    if (!this.#prepares) return undefined
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= mostNames) return known
    const name = `reprise_${sha256(text)
      .replace(/[^A-Za-z0-9]/g, '')
      .slice(-32)}`
    this.#names.set(text, name)
    return name
  }
}

// Of a wait that was cut by the deadline of the statement.
const waits: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['COMMITS_UNANSWERED', 'CONNECT_TIMEOUT', 'POOL_EXHAUSTED'])
const unprepared: ReadonlySet<string> = new Set(['26000', '42P05'])
// Each of them is an abort of the statement's own transaction, before it was stored.
const harmless: ReadonlySet<string> = new Set(['40001', '40P01', 'cached-plan-changed', ...unprepared])
