// The engine of a callback domain: turns for as many transactions as the ORM has connections, and what errors mean.

import {
  type AcquireLimits,
  type Engine,
  type Finding,
  type Manifest,
  Outbox,
  type Turns,
  turnsOf,
} from '../../atomicity/index.js'
import { pepperOf } from '../../identity/index.js'
import { type Clock, deadlineAfter, defined, RepriseError } from '../../kernel/index.js'
import type { SequenceStore } from '../../sequence/index.js'
import { EmitStatements, postgresPatience, type QueryHandle, SqlRecords, SqlSeen } from '../sql/index.js'
import { type Classify, classifierOf, signsOf } from './classification.js'
import { CommitCheck } from './commit-check.js'
import { callbackDatabase } from './database.js'
import type { CallbackTransaction } from './handle.js'
import type { CallbackOptions } from './options.js'
import { CallbackRecordRunner } from './records/record-runner.js'
import { CallbackSession, type SessionContext } from './session.js'

/** What the engine is made of. */
export interface EngineParts {
  readonly clock: Clock
  /** The longest that a call to the records waits for a connection, in ms. */
  readonly connectionWaitMs: number
}

/** A store behind a transaction function. */
export class CallbackEngine<Tx> implements Engine<CallbackTransaction<Tx>> {
  readonly name: string
  readonly manifest: Manifest
  readonly records: SqlRecords
  readonly seen: SqlSeen
  readonly outbox: Outbox
  readonly sequences: SequenceStore<QueryHandle>
  readonly classify: Classify
  /** What could go wrong with the database. */
  readonly doctor: () => Promise<readonly Finding[]>
  readonly #turns: Turns
  readonly #readers: Turns
  readonly #context: SessionContext<Tx>

  constructor(options: CallbackOptions<Tx>, { clock, connectionWaitMs }: EngineParts) {
    const { name, dialect, transaction, query, prefix, schema, connections, queue, classify } = options
    if (typeof name !== 'string' || name === '') throw new RepriseError('ARGUMENT_INVALID', 'A domain needs a name.')
    if (typeof transaction !== 'function' || typeof query !== 'function') {
      throw new RepriseError('ARGUMENT_INVALID', 'A callback domain needs the functions transaction and query.')
    }
    const pepper = options.pepper === undefined ? undefined : pepperOf(options.pepper)
    const database = callbackDatabase(dialect, prefix, schema, pepper)
    const { manifest } = database
    const places = connections ?? database.connections
    const unsure = new WeakSet<object>()
    this.name = name
    this.manifest = manifest
    this.sequences = database.sequences
    const turns = (count: number): Turns => turnsOf({ places: count, clock, ...defined({ queue }) })
    // Where there is one writer, what is left over of the connections reads beside it.
    const aside = manifest.writers === 'one' && places > 1
    this.#turns = turns(aside ? 1 : places)
    this.#readers = aside ? turns(places - 1) : this.#turns
    this.classify = classifierOf(classify, unsure)
    const parts = { database, transaction, query, clock }
    this.outbox = new Outbox(name, options.messages)
    const emits = new EmitStatements(database.dialect, database.named, this.outbox.source)
    this.#context = {
      ...parts,
      outbox: this.outbox,
      emits,
      classify,
      unsure,
      check: new CommitCheck(parts),
      wired: false,
    }
    const runner = new CallbackRecordRunner<Tx>({
      ...parts,
      turns: this.#turns,
      readers: this.#readers,
      connectionWaitMs,
    })
    this.records = new SqlRecords(database.statements, runner, pepper)
    this.seen = new SqlSeen(database.statements, runner, pepper)
    this.doctor = () => {
      const deadline = deadlineAfter(postgresPatience.wholeMs, clock)
      return database.examine({
        dialect: database.dialect,
        clock,
        signsOf,
        ask: (text, values = []) => runner.read({ text, values }, { deadline }),
        // That somebody else has the lock of the whole store is seen at once, and not waited for.
        tryOut: (text) =>
          runner.tryOut({ text, values: [] }, { deadline, lockDeadline: { expiresAtMs: clock.monotonicMs() } }),
      })
    }
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
