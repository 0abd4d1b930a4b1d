// What a part is: a workload that worker processes carry out, and a way to judge what became of it.

import type { Random } from '../../src/kernel/index.js'
import type { EngineFault, TortureEngine } from './engines/engine.js'
import type { Violation } from './report.js'
import type { Workers } from './workers.js'

/** Where a part works. */
export interface World {
  readonly engine: TortureEngine
  readonly workers: Workers
  readonly random: Random
  /** How many keys messages have, where the command was told. */
  readonly keys?: number | undefined
  /** Whether as many intents are wanted as can be had, and not as many faults. */
  readonly isLoad: boolean
}

/** A part at work on an engine. Rounds follow each other: work under faults, then quiet, then judgement. */
export interface PartRun {
  /** How many intents there were, in all rounds; of messages: how many of them were wanted. */
  readonly intents: number
  /** Faults of its own, beside those of workers and engine. */
  readonly faults?: readonly EngineFault[]
  /** What it has counted, to be told among the faults. */
  readonly counted?: Readonly<Record<string, number>>
  /** What every worker is told beside the address of the store. */
  readonly told: Readonly<Record<string, unknown>>
  /** Wants things and repeats them until the signal ends it, while faults strike. */
  work(signal: AbortSignal): Promise<void>
  /** The faults are over: asks until everything of the round is decided, and says what is wrong about it. */
  judge(): Promise<readonly Violation[]>
  close(): Promise<void>
}

/** A part of the command. */
export interface Part {
  readonly name: string
  /** The file of its worker, among the bundled ones. */
  readonly worker: string
  /** How long a claim of a worker lives, in ms; a stop lasts longer. */
  readonly leaseMs: number
  /** The tables that its effects go to. */
  readonly tables: readonly string[]
  /** The fault points that its runners pass on every engine. */
  readonly points: readonly string[]
  /** Bugs that can be planted, by name. */
  readonly bugs: readonly string[]
  open(world: World): Promise<PartRun>
}
