// The rows of producers in memory: a table like those of the user, written through the same handle.

import type { AcceptedMark, ProducerName, ProducerRow, SequencePlace, SequenceStore } from '../../sequence/index.js'
import type { MemoryEngine } from './engine.js'
import type { MemoryHandle, MemoryTransaction } from './handle.js'

const table = 'reprise_sequence'
const key = ['sequence', 'producer']

/** The rows of producers of a store in memory. */
export class MemorySequences implements SequenceStore<MemoryTransaction> {
  readonly #engine: MemoryEngine

  constructor(engine: MemoryEngine) {
    this.#engine = engine
    engine.tables.define(table, { unique: [key] })
  }

  async open(tx: MemoryTransaction, { sequence, producer }: ProducerName): Promise<number> {
    const { records } = this.#engine
    const epoch = records.nextFence()
    const row = { sequence, producer, epoch, number: 0, fingerprint: null, value: null, used_at_ms: records.nowMs() }
    await tx.upsert(table, row, key)
    return epoch
  }

  async advance(tx: MemoryTransaction, at: SequencePlace, { fingerprint, value }: AcceptedMark): Promise<boolean> {
    const { sequence, producer, epoch, number } = at
    const mark = { fingerprint: fingerprint ?? null, value: value ?? null, used_at_ms: this.#engine.records.nowMs() }
    const before = { sequence, producer, epoch, number: number - 1 }
    return (await tx.updateRows(table, before, { number, ...mark })) === 1
  }

  async read(tx: MemoryTransaction, { sequence, producer }: ProducerName): Promise<ProducerRow | undefined> {
    const row = await tx.readRow(table, { sequence, producer })
    if (row === undefined) return undefined
    const { epoch, number, fingerprint, value } = row
    const text = (cell: unknown): string | undefined => (typeof cell === 'string' ? cell : undefined)
    return { epoch: Number(epoch), number: Number(number), fingerprint: text(fingerprint), value: text(value) }
  }

  async keep(tx: MemoryTransaction, at: SequencePlace, value: string): Promise<void> {
    const { sequence, producer, epoch, number } = at
    await tx.updateRows(table, { sequence, producer, epoch, number }, { value })
  }

  // Whoever writes is alone, so what is committed is what this transaction sees.
  async forget(tx: MemoryTransaction, sequence: string, idleMs: number, most: number): Promise<number> {
    const lastUseMs = this.#engine.records.nowMs() - idleMs
    const idle = this.#engine.tables
      .committed(table)
      .filter((row) => row['sequence'] === sequence && Number(row['used_at_ms']) < lastUseMs)
      .slice(0, most)
    for (const { producer } of idle)
      await (tx as MemoryHandle).removeRows(table, { sequence, producer: String(producer) })
    return idle.length
  }
}
