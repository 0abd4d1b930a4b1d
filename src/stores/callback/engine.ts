// The engine of a callback domain: turns for as many transactions as the ORM has connections, and what errors mean.

import { type AcquireLimits, type Engine, type Manifest, type Turns, turnsOf } from '../../atomicity/index.js'
import { type Clock, RepriseError } from '../../kernel/index.js'
import { type Classify, classifierOf } from './classification.js'
import { CommitCheck } from './commit-check.js'
import type { CallbackTransaction } from './handle.js'
import { callbackManifests } from './manifest.js'
import type { CallbackOptions } from './options.js'
import { CallbackRecords } from './records/records.js'
import { ShortTransactions } from './records/short-transactions.js'
import { callbackTables, RecordStatements } from './records/statements.js'
import { CallbackSession, type SessionContext } from './session.js'

/** What the engine is made of. */
export interface EngineParts {
  /** Time. */
  readonly clock: Clock
  /** The longest that a call to the records waits for a connection, in ms. */
  readonly connectionWaitMs: number
}

/** A store behind a transaction function. */
export class CallbackEngine<Tx> implements Engine<CallbackTransaction<Tx>> {
  readonly name: string
  readonly manifest: Manifest
  readonly records: CallbackRecords<Tx>
  readonly classify: Classify
  readonly #turns: Turns
  readonly #readers: Turns
  readonly #context: SessionContext<Tx>

  constructor(options: CallbackOptions<Tx>, { clock, connectionWaitMs }: EngineParts) {
    const { name, dialect, transaction, query, prefix, schema, connections, queue, classify } = options
    if (typeof name !== 'string' || name === '') throw new RepriseError('ARGUMENT_INVALID', 'A domain needs a name.')
    if (typeof transaction !== 'function' || typeof query !== 'function') {
      throw new RepriseError('ARGUMENT_INVALID', 'A callback domain needs the functions transaction and query.')
    }
    const statements = new RecordStatements(callbackTables(dialect, prefix, schema))
    const places = connections ?? (dialect === 'postgres' ? 10 : 1)
    const unsure = new WeakSet<object>()
    this.name = name
    this.manifest = callbackManifests[dialect]
    const turns = (count: number): Turns => turnsOf({ places: count, clock, ...(queue === undefined ? {} : { queue }) })
    // SQLite has one writer; what is left over of the connections reads beside it.
    const aside = dialect === 'sqlite' && places > 1
    this.#turns = turns(aside ? 1 : places)
    this.#readers = aside ? turns(places - 1) : this.#turns
    this.classify = classifierOf(classify, unsure)
    const check = new CommitCheck({ dialect, transaction, query, statements })
    this.#context = { classify, dialect, transaction, query, statements, clock, unsure, check, wired: false }
    const parts = {
      statements,
      dialect,
      transaction,
      query,
      turns: this.#turns,
      readers: this.#readers,
      clock,
      connectionWaitMs,
    }
    this.records = new CallbackRecords(statements, new ShortTransactions(parts))
  }

  async acquire(limits: AcquireLimits): Promise<CallbackSession<Tx>> {
    const turn = await this.#turns.take(limits)
    return new CallbackSession(this.#context, turn, limits.waitMs)
  }

  /** Refuses who comes and who waits, and waits for those at work. */
  async close(): Promise<void> {
    await Promise.all([this.#turns.close(), this.#readers.close()])
  }
}
