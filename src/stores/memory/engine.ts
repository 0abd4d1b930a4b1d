// The engine of a store in memory: turns for writers, a view for everybody.

import {
  type AcquireLimits,
  type Engine,
  type Phase,
  type Ruling,
  ruleBy,
  type Turns,
  turnsOf,
} from '../../atomicity/index.js'
import { type Clock, isRepriseError } from '../../kernel/index.js'
import { memoryClassification } from './classification.js'
import type { MemoryTransaction } from './handle.js'
import { memoryManifest } from './manifest.js'
import { MemorySession, markerTable } from './session.js'
import { Tables } from './tables.js'

/** The engine. */
export class MemoryEngine implements Engine<MemoryTransaction> {
  readonly manifest: typeof memoryManifest = memoryManifest
  readonly name: string
  /** The tables. */
  readonly tables: Tables = new Tables()
  readonly #turns: Turns
  readonly #clock: Clock

  constructor(name: string, queue: number | undefined, clock: Clock) {
    this.name = name
    this.#clock = clock
    this.#turns = turnsOf(queue === undefined ? { clock } : { queue, clock })
    this.tables.define(markerTable, { unique: [['id']] })
  }

  async acquire(limits: AcquireLimits): Promise<MemorySession> {
    if (limits.readOnly) return new MemorySession(this.tables, this.#clock, undefined)
    const turn = await this.#turns.take(limits)
    return new MemorySession(this.tables, this.#clock, turn)
  }

  classify(error: unknown, phase: Phase): Ruling {
    return ruleBy(memoryClassification, isRepriseError(error) ? [error.code] : [], phase)
  }

  /** Refuses who comes and who waits, and waits for those at work. */
  close(): Promise<void> {
    return this.#turns.close()
  }
}
