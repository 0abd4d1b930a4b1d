// One statement on a connection of the pool, in no transaction but its own, no longer than a deadline allows.

import type { RecordLimits } from '../../../atomicity/index.js'
import { type Clock, isRepriseError, RepriseError, sha256 } from '../../../kernel/index.js'
import { migrationMissing } from '../../sql/index.js'
import { endsConnection, signsOf } from '../classification.js'
import type { Connections } from '../connections.js'
import type { PostgresAnswer, PostgresPoolClient } from '../options.js'

/** What statements need. */
export interface RunnerParts {
  /** Where connections come from. */
  readonly connections: Connections
  /** Time. */
  readonly clock: Clock
  /** The longest wait for a connection, in ms. */
  readonly connectionWaitMs: number
}

type Rows = PostgresAnswer['rows']

/** A statement of which it is proven that it did nothing is sent this often. */
const mostRounds = 4
/** As many texts are prepared on a connection; what comes after is parsed each time. */
const mostNames = 64

/** Runs statements that are each a commit of their own. */
export class StatementRunner {
  readonly #parts: RunnerParts
  readonly #names = new Map<string, string>()
  // A pooler that changes the backend between two statements knows nothing of what was prepared.
  #prepares = true

  constructor(parts: RunnerParts) {
    this.#parts = parts
  }

  /** The rows of one statement. Sent again where the server proves that it did nothing: another transaction was in its way. */
  async rows(text: string, values: readonly unknown[], limits: RecordLimits): Promise<Rows> {
    for (let round = 1; ; round++) {
      try {
        return await this.#once(text, values, limits)
      } catch (error) {
        if (round >= mostRounds || !this.#mayRepeat(error)) throw explained(error)
      }
    }
  }

  #mayRepeat(error: unknown): boolean {
    const signs = signsOf(error)
    if (signs.some((sign) => unprepared.has(sign))) this.#prepares = false
    return signs.some((sign) => harmless.has(sign))
  }

  async #once(text: string, values: readonly unknown[], limits: RecordLimits): Promise<Rows> {
    const { clock } = this.#parts
    const client = await this.#connection(limits)
    return new Promise((resolve, reject) => {
      let waiting = true
      const end = (destroy: boolean): boolean => {
        if (!waiting) return false
        waiting = false
        cancel()
        client.release(destroy)
        return true
      }
      const leftMs = Math.max(0, limits.deadline.expiresAtMs - clock.monotonicMs())
      const cancel = clock.setTimer(leftMs, () => {
        // What runs on cannot be called off; on a connection that is gone, at least nobody waits for it.
        if (end(true)) reject(tooLate())
      })
      const config = { name: this.#nameOf(text), text, values }
      // pg takes a config too; the type of the port knows texts alone.
      client.query(config as unknown as string).then(
        (answer) => end(false) && resolve(answer.rows),
        (error: unknown) => end(endsConnection(error)) && reject(error),
      )
    })
  }

  async #connection({ deadline, signal, urgent = false }: RecordLimits): Promise<PostgresPoolClient> {
    const { connections, clock, connectionWaitMs } = this.#parts
    const leftMs = deadline.expiresAtMs - clock.monotonicMs()
    if (leftMs <= 0) throw tooLate()
    // The pool has its own queue, in which nobody overtakes: what is urgent keeps its place there for as long as it can.
    const waitMs = urgent ? leftMs : Math.min(connectionWaitMs, leftMs)
    try {
      return await connections.take(signal === undefined ? { waitMs } : { waitMs, signal })
    } catch (error) {
      const waited = isRepriseError(error, 'POOL_EXHAUSTED') || isRepriseError(error, 'CONNECT_TIMEOUT')
      throw waited && waitMs === leftMs ? tooLate(error) : error
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

const unprepared: ReadonlySet<string> = new Set(['26000', '42P05'])
// Each of them is an abort of the statement's own transaction, before it was stored.
const harmless: ReadonlySet<string> = new Set(['40001', '40P01', 'cached-plan-changed', ...unprepared])

function explained(error: unknown): unknown {
  const signs = signsOf(error)
  return signs.includes('42P01') || signs.includes('42703') ? migrationMissing(error) : error
}

function tooLate(cause?: unknown): RepriseError {
  const message = 'The deadline passed before the store answered.'
  return new RepriseError('DEADLINE_EXCEEDED', message, cause === undefined ? {} : { cause })
}
