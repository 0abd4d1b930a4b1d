// What an engine is here: a real store that can be struck, healed and read past the library.

import type { Random } from '../../../src/kernel/index.js'

/** What a worker is told of the store. */
export type Address = { readonly postgres: string } | { readonly sqlite: string; readonly lostCommits: number }

/** A fault that the engine offers. */
export interface EngineFault {
  readonly kind: string
  /** How often it is drawn, against the others. */
  readonly weight: number
  /** Whether the next fault waits until it is over. Default: others may strike meanwhile. */
  readonly alone?: true
  /** Lets it happen; false: it did not come to it. */
  strike(random: Random): Promise<boolean>
}

/** A store under torture. */
export interface TortureEngine {
  readonly name: string
  readonly address: Address
  readonly faults: readonly EngineFault[]
  /** The fault points that only this engine has. */
  readonly points: readonly string[]
  /** Ends what its faults left behind. */
  heal(): Promise<void>
  /** Reads by the back door. */
  rows<Row>(text: string): Promise<Row[]>
  dispose(): Promise<void>
}

/** One of several values, drawn. */
export function draw<Value>(random: Random, values: readonly Value[]): Value {
  return values[Math.floor(random.next() * values.length)] as Value
}

/** A number of ms, drawn. */
export function drawMs(random: Random, least: number, most: number): number {
  return least + Math.floor(random.next() * (most - least))
}
