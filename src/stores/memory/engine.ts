// The engine of a store in memory: turns for writers, a view for everybody.

import {
  type AcquireLimits,
  type Engine,
  type MessageOptions,
  Outbox,
  type Phase,
  type RecordLimits,
  type Ruling,
  ruleBy,
  type Turns,
  turnsOf,
} from '../../atomicity/index.js'
import type { Pepper } from '../../identity/index.js'
import { type Clock, defined, isRepriseError, remainingMs } from '../../kernel/index.js'
import { memoryClassification } from './classification.js'
import type { MemoryTransaction } from './handle.js'
import { memoryManifest } from './manifest.js'
import { defineMessageTables } from './messages/tables.js'
import { MemoryRecords } from './records/records.js'
import { MemorySeen } from './seen.js'
import { MemorySession } from './session.js'
import { Tables, type Views } from './tables.js'

/** Transactions on tables and records in memory, one writer at a time. */
export class MemoryEngine implements Engine<MemoryTransaction> {
  readonly manifest: typeof memoryManifest = memoryManifest
  readonly name: string
  readonly tables: Tables = new Tables()
  readonly records: MemoryRecords
  readonly seen: MemorySeen
  readonly outbox: Outbox
  readonly #turns: Turns
  readonly #clock: Clock

  constructor(name: string, queue: number | undefined, clock: Clock, pepper?: Pepper, messages?: MessageOptions) {
    this.name = name
    this.#clock = clock
    this.records = new MemoryRecords(clock, pepper)
    this.seen = new MemorySeen(clock, pepper)
    this.outbox = new Outbox(name, messages)
    this.#turns = turnsOf(defined({ queue, clock }))
    defineMessageTables(this.tables)
  }

  async acquire(limits: AcquireLimits): Promise<MemorySession> {
    return this.acquireAtOnce(limits) ?? new MemorySession(this, await this.#turns.take(limits))
  }

  acquireAtOnce({ readOnly, signal }: AcquireLimits): MemorySession | undefined {
    if (readOnly) return new MemorySession(this, undefined)
    signal?.throwIfAborted()
    const turn = this.#turns.tryTake()
    return turn === undefined ? undefined : new MemorySession(this, turn)
  }

  /** Lets the store itself write, alone and in one commit. What throws writes nothing. */
  async alone<Result>({ deadline, signal }: RecordLimits, work: (views: Views) => Result): Promise<Result> {
    signal?.throwIfAborted()
    const waitMs = remainingMs(deadline, this.#clock)
    const turn = this.#turns.tryTake() ?? (await this.#turns.take({ waitMs, signal }))
    try {
      const views = this.tables.views(false)
      const result = work(views)
      this.tables.commit(views)
      return result
    } finally {
      turn.done()
    }
  }

  classify(error: unknown, phase: Phase): Ruling {
    return ruleBy(memoryClassification, isRepriseError(error) ? [error.code] : [], phase)
  }

  /** Refuses who comes and who waits, and waits for those at work. */
  close(): Promise<void> {
    this.records.close()
    this.seen.close()
    return this.#turns.close()
  }
}
