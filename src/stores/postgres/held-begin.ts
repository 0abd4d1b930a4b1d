// BEGIN: as a text by itself, or held back, and sent in one write with the first statement of the body.

import type { BeginSettings, Isolation } from '../../atomicity/index.js'
import type { Clock } from '../../kernel/index.js'
import { beginUnanswered } from '../../transaction/index.js'
import { rowOfTrace } from './asking/trace.js'
import { Batch, lastOfBatch, type OwnStatement, ownStatement, type Step, sendBatch } from './connection/batch.js'
import type { KnownConnection } from './connection/connections.js'
import type { Before, Held } from './connection/standalone.js'
import { isUnprepared, mostLost, sendEach } from './connection/steps.js'
import type { PostgresAnswer, PostgresPoolClient } from './options.js'
import { isStatementPooling, levels, poolingUnsupported, timeoutMs, type Wire } from './wire.js'

/** BEGIN with its limits, and a question behind it where there is one. */
export function beginText(settings: BeginSettings, question: string | undefined): string {
  const [begin, limits] = beginSteps(settings, undefined)
  const [idleMs, lockWaitMs, statementMs] = limits?.values ?? []
  const text = `${begin?.statement.text}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}; SET LOCAL lock_timeout = ${lockWaitMs}; SET LOCAL statement_timeout = ${statementMs}`
  return question === undefined ? text : `${text}; ${question}`
}

/**
 * The same for a batch: BEGIN, then the limits and the question in one statement.
 *
 * @param firstWaitMs The longest wait for a lock until it is set anew. Default: that of the settings.
 */
export function beginSteps(
  settings: BeginSettings,
  question: string | undefined,
  firstWaitMs?: number,
): readonly Step[] {
  const { isolation, readOnly, idleMs, lockWaitMs } = settings
  // A statement that outlives the body would go on with its locks until it is through; the server ends it. A wait for a
  // lock must end as one, so its limit stays below. COMMIT is not bounded by it.
  const statementMs = Math.max(idleMs, lockWaitMs + 1_000)
  const values = [idleMs, firstWaitMs ?? lockWaitMs, statementMs].map(timeoutMs).map(String)
  return [
    { statement: (readOnly ? readingBegins : begins)[isolation], values: [] },
    {
      statement: question === undefined ? limits : limitsWith(question),
      values,
    },
  ]
}

const begins = beginsWith('')
const readingBegins = beginsWith(' READ ONLY')

function beginsWith(mode: string): Readonly<Record<Isolation, OwnStatement>> {
  const begin = (isolation: Isolation): OwnStatement =>
    ownStatement(`BEGIN ISOLATION LEVEL ${levels[isolation]}${mode}`)
  return {
    'read-committed': begin('read-committed'),
    'repeatable-read': begin('repeatable-read'),
    serializable: begin('serializable'),
  }
}

const limitNames = ['idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout']
const sets = limitNames.map((name, place) => `set_config('${name}', $${place + 1}, true)`)
// Nothing that is set becomes NULL, so all of it is set and no row is sent.
const limits = ownStatement(`SELECT 1 WHERE ${sets.map((set) => `${set} IS NULL`).join(' OR ')}`)

function limitsWith(question: string): OwnStatement {
  return ownStatement(question.replace(/^SELECT/, `SELECT ${sets.join(', ')},`))
}

/** Sets the longest wait for a lock from here on, in ms. */
export const lockLimit: OwnStatement = ownStatement("SELECT 1 WHERE set_config('lock_timeout', $1, true) IS NULL")

/** Opens the transaction of a session. */
export interface Opener {
  /** Takes the trace out of the answer to the question. */
  takeTrace(row: Readonly<Record<string, unknown>>): Promise<void>
  /** Sends BEGIN by itself. */
  open(settings: BeginSettings, question: string | undefined, opened: undefined): Promise<undefined>
  /** Makes the handle refuse every further statement. */
  poison(error: unknown): void
  /** Whether the transaction failed before it was begun. */
  neverBegun: boolean
  /** Whether what is prepared on the connection was seen to be there since the transaction was begun. */
  named: boolean
}

/** What a BEGIN that is held back needs. */
export interface HeldParts {
  readonly client: PostgresPoolClient
  readonly connection: KnownConnection
  readonly wire: Wire
  readonly clock: Clock
  readonly opener: Opener
}

interface FirstStatement {
  readonly config: string | object
  readonly values: unknown[] | undefined
  /** Our own, between BEGIN and it. */
  readonly before: readonly Step[]
  /** Called before it is sent. */
  readonly sends: () => void
  /** Called when BEGIN, and what is before it, is answered. */
  readonly opened: () => void
}

/** A BEGIN that is held back until the first statement. */
export class HeldBegin implements Held {
  readonly #parts: HeldParts
  readonly #settings: BeginSettings
  readonly #question: string | undefined
  readonly #answerMs: number
  readonly #sinceMs: number

  /**
   * @param question What is asked of the server with it; undefined: nothing.
   * @param answerMs The longest wait for its answer.
   */
  constructor(parts: HeldParts, settings: BeginSettings, question: string | undefined, answerMs: number) {
    this.#parts = parts
    this.#settings = settings
    this.#question = question
    this.#answerMs = answerMs
    this.#sinceMs = parts.clock.monotonicMs()
  }

  sendWith(
    config: string | object,
    values: unknown[] | undefined,
    sends: () => void,
    before?: Before,
  ): Promise<PostgresAnswer> {
    const { wire, clock, opener } = this.#parts
    // The server waits for us no longer than if BEGIN had gone out at the beginning.
    const idleMs = Math.max(1, this.#settings.idleMs - (clock.monotonicMs() - this.#sinceMs))
    const lockWaitMs = Math.min(this.#settings.lockWaitMs, idleMs)
    wire.lockWaitMs = lockWaitMs
    return new Promise((resolve, reject) => {
      // Somebody may stand in a queue for a server of a pooler: that is no time of the body's.
      this.#settings.mayHold?.stand()
      const cancel = clock.setTimer(this.#answerMs, () => {
        const error = beginUnanswered(this.#answerMs)
        opener.poison(error)
        this.#settings.mayHold?.goOn()
        reject(error)
      })
      // What was given up is still under way.
      wire.pending += 1
      const over = (): void => {
        cancel()
        this.#settings.mayHold?.goOn()
        wire.pending -= 1
      }
      opener.neverBegun = true
      const opened = (): void => {
        cancel()
        this.#settings.mayHold?.goOn()
        opener.neverBegun = false
        before?.done()
      }
      const statement = { config, values, before: before?.steps ?? [], sends, opened }
      this.#send({ ...this.#settings, idleMs, lockWaitMs }, statement).then(
        (answer) => {
          over()
          resolve(answer)
        },
        (error: unknown) => {
          over()
          reject(error)
        },
      )
    })
  }

  async #send(settings: BeginSettings, statement: FirstStatement): Promise<PostgresAnswer> {
    const { config, values, before, sends, opened } = statement
    const { client, connection, opener } = this.#parts
    const question = this.#question
    // A connection whose backend is not known yet is asked first: it may be one that must not be written to.
    while (connection.backend !== undefined && connection.batches) {
      const last = lastOfBatch(client, config, values)
      if (last === undefined) break
      sends()
      const named = connection.lost < mostLost
      const batch = new Batch([...beginSteps(settings, question), ...before], last, opened, named)
      const takeTrace = async (): Promise<void> => {
        // Behind the three limits.
        if (question !== undefined) await opener.takeTrace(rowOfTrace(batch.answers[1]?.rows[0]?.slice(3) ?? []))
      }
      const sent = sendBatch<PostgresAnswer>(client, connection, batch)
      if (sent !== undefined)
        try {
          const answer = await sent
          opener.named = named
          // What is refused now, by its timeline, was begun in vain.
          opener.neverBegun = true
          await takeTrace()
          opener.neverBegun = false
          return answer
        } catch (error) {
          if (isStatementPooling(error)) throw poolingUnsupported(error)
          if (batch.answers.length >= 2) {
            // It was begun, and may have to be asked for.
            await takeTrace().catch(ignore)
            throw error
          }
          // Nothing is begun then.
          if (!named || !isUnprepared(client, connection, error)) throw error
        }
      await client.query('ROLLBACK')
    }
    await opener.open(settings, question, undefined)
    await sendEach(client, before)
    opened()
    sends()
    // pg takes a config too; the type of the port knows texts alone.
    return client.query(config as string, values)
  }
}

const ignore = (): void => undefined
