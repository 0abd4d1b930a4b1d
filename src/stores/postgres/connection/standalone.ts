// Statements that stand for themselves inside a transaction, as each one does on a pool: one that fails is undone
// alone.
//
// A savepoint is set before each of them, in the same write; that of the one before is released with it. So there is at
// most one, and it costs no round trip but where a statement fails.

import { isServerError, signsOf } from '../classification.js'
import type { PostgresAnswer, PostgresPoolClient } from '../options.js'
import { Batch, lastOfBatch, type OwnStatement, type Step, sendBatch } from './batch.js'
import type { KnownConnection } from './connections.js'

/** Statements of Reprise's own that go out before one of the body. */
export interface Before {
  readonly steps: readonly Step[]
  /** Called when they are carried out. */
  done(): void
}

/** A BEGIN that is held back until the first statement. */
export interface Held {
  /**
   * Sends it, and the first statement with it.
   *
   * @param sends Called before the statement is sent, when it is known on which backend.
   * @param before What goes out between the two. Default: nothing.
   */
  sendWith(
    config: string | object,
    values: unknown[] | undefined,
    sends: () => void,
    before?: Before,
  ): Promise<PostgresAnswer>
}

const name = 'reprise_statement'
// Without a name: a body may throw away what is prepared, and an error of ours would end the transaction.
const unnamed = (text: string): OwnStatement => ({ name: '', text })
const set = { statement: unnamed(`SAVEPOINT ${name}`), values: [] }
const release = { statement: unnamed(`RELEASE SAVEPOINT ${name}`), values: [] }

/** One of them. */
interface StandaloneStatement {
  /** Sends it when it is its turn: with BEGIN, where that is held back. */
  send(held: Held | undefined, sends: () => void): Promise<PostgresAnswer>
  /** Undoes it where it failed by an error after which the transaction can go on; else answers false. */
  undo(error: unknown): Promise<boolean>
}

/** The statements of one transaction that stand for themselves, one at a time. */
export class StandaloneStatements {
  readonly #client: PostgresPoolClient
  readonly #connection: KnownConnection
  // Whether the savepoint of the last one is there.
  #isSet = false

  constructor(client: PostgresPoolClient, connection: KnownConnection) {
    this.#client = client
    this.#connection = connection
  }

  /**
   * A savepoint of somebody else is opened or ended now. What to say before one is opened: it must not be inside of
   * ours, since it would go with that. One that is ended takes ours with it.
   */
  close(): string {
    const closing = this.#isSet ? `${release.statement.text}; ` : ''
    this.#isSet = false
    return closing
  }

  /** A statement: a text, or a config of pg. */
  statement(config: string | object, values: unknown[] | undefined): StandaloneStatement {
    let isOurs = false
    const done = (): void => {
      isOurs = true
      this.#isSet = true
    }
    return {
      send: (held, sends) => {
        const before = { steps: this.#isSet ? [release, set] : [set], done }
        return held === undefined ? this.#send(config, values, before) : held.sendWith(config, values, sends, before)
      },
      undo: async (error) => {
        if (!isOurs || !isServerError(error) || signsOf(error).some(endsTransaction)) return false
        // An error here ends the transaction as a whole, and the one before says more.
        return this.#client.query(`ROLLBACK TO SAVEPOINT ${name}`).then(
          () => true,
          () => false,
        )
      },
    }
  }

  async #send(config: string | object, values: unknown[] | undefined, before: Before): Promise<PostgresAnswer> {
    const client = this.#client
    const connection = this.#connection
    // As a text it would carry the statement out, so it is not tried on a client that has taken none before.
    const last = connection.batches && connection.proven ? lastOfBatch(client, config, values) : undefined
    if (last !== undefined) {
      const sent = sendBatch<PostgresAnswer>(client, connection, new Batch(before.steps, last, before.done, false))
      if (sent !== undefined) return sent
    }
    await client.query(before.steps.map(({ statement }) => statement.text).join('; '))
    before.done()
    // pg takes a config too; the type of the port knows texts alone.
    return client.query(config as string, values)
  }
}

// Class 40: a serialization failure or a deadlock is one for the transaction, which has seen what it must not see, or
// holds what others wait for.
const endsTransaction = (sign: string): boolean => /^40...$/.test(sign)
