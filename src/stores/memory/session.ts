// A transaction in memory: a view that becomes the committed state at once, or is dropped.

import {
  type BeginSettings,
  changedRecord,
  draftedRecord,
  type Expected,
  handleLife,
  isStill,
  type Outbox,
  type Receipt,
  type RecordDraft,
  type RecordOutcome,
  type Session,
  type Stored,
  type StoredRecord,
  type TransactionControls,
  type Turn,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { MemoryHandle, type MemoryTransaction } from './handle.js'
import { writeEmissions } from './messages/emit.js'
import type { MemoryRecords } from './records/records.js'
import type { Tables, Views } from './tables.js'

/** What all sessions of a store share. */
export interface SessionContext {
  readonly tables: Tables
  readonly records: MemoryRecords
  readonly outbox: Outbox
}

type Versioned = StoredRecord & { version: number }

/** One transaction in memory. */
export class MemorySession implements Session<MemoryTransaction> {
  readonly trace: undefined = undefined
  emitted: (() => void) | undefined
  readonly #tables: Tables
  readonly #records: MemoryRecords
  readonly #outbox: Outbox
  readonly #turn: Turn | undefined
  readonly #life = handleLife()
  #views: Views | undefined
  #readOnly = false
  // Seen by others when it is committed, in the place of the record that it is `over`.
  #pending: { readonly id: StoredKey; readonly over: Expected | undefined; readonly record: StoredRecord } | undefined

  /** @param turn The writer's turn, or undefined for a reader. */
  constructor({ tables, records, outbox }: SessionContext, turn: Turn | undefined) {
    this.#tables = tables
    this.#records = records
    this.#outbox = outbox
    this.#turn = turn
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.#life.poisoned
  }

  begin(settings: BeginSettings, controls: TransactionControls): MemoryTransaction {
    this.#life.check()
    this.#readOnly = settings.readOnly
    this.#views = this.#tables.views(settings.readOnly)
    return new MemoryHandle(this.#views, this.#life, controls, this.#outbox)
  }

  claim(id: StoredKey, draft: RecordDraft): 'claimed' | Stored {
    this.#open()
    const nowMs = this.#records.nowMs()
    const record = this.#records.committed.get(id)
    if (record !== undefined) return { record, nowMs }
    this.#pending = { id, over: undefined, record: draftedRecord(draft, nowMs, this.#records.nextFence) }
    return 'claimed'
  }

  reclaim(id: StoredKey, over: Expected, draft: RecordDraft): boolean {
    this.#open()
    if (!isStill(this.#records.committed.get(id), over)) return false
    const record = draftedRecord(draft, this.#records.nowMs(), this.#records.nextFence)
    this.#pending = { id, over, record: { ...record, version: over.version + 1 } }
    return true
  }

  record(id: StoredKey, outcome: RecordOutcome): void {
    this.#open()
    const pending = this.#pending
    if (pending?.id !== id) throw new RepriseError('MARKER_INVALID', 'The key was not claimed.')
    const { state, codec = null, value = null, rememberedMs } = outcome
    const change = { state, codec, value, remembered: rememberedMs }
    const { nextFence } = this.#records
    const record: Versioned = changedRecord(pending.record, change, this.#records.nowMs(), nextFence)
    // One transaction is one write to whoever comes after it. Nobody has seen the record yet, so it can still be
    // changed.
    record.version = pending.record.version
    this.#pending = { id, over: pending.over, record }
  }

  settle(): Promise<void> | undefined {
    this.#life.checkBeforeCommit()
    const settling = this.#life.settle()
    if (settling !== undefined) return settling.then(() => this.#writeEmissions())
    this.#writeEmissions()
    return undefined
  }

  #writeEmissions(): void {
    const { emissions } = this.#life
    if (emissions === undefined) return
    try {
      writeEmissions(this.#open(), emissions, this.#outbox.source, this.#records)
    } catch (error) {
      this.#life.poison(error)
      throw error
    }
    this.emitted = this.#outbox.wake
  }

  commit(): Receipt {
    if (this.#views === undefined) {
      throw new RepriseError('TRANSACTION_ENDED_ELSEWHERE', 'The transaction is not open.')
    }
    this.#life.checkBeforeCommit()
    const pending = this.#pending
    if (pending !== undefined && !this.#isFree(pending)) {
      throw new RepriseError('TRANSACTION_ABORTED', 'The record was changed past the transaction.')
    }
    if (!this.#readOnly) this.#tables.commit(this.#views)
    if (pending !== undefined) this.#records.put(pending.id, pending.record)
    this.#leave()
    return { durability: 'promised' }
  }

  rollback(): void {
    this.#leave()
  }

  release(): void {
    this.#leave()
    this.#turn?.done()
  }

  poison(error: unknown): void {
    this.#life.poison(error)
  }

  bodyThrew(error: unknown): void {
    this.#life.threw(error)
  }

  #isFree({ id, over }: { readonly id: StoredKey; readonly over: Expected | undefined }): boolean {
    const there = this.#records.committed.get(id)
    return over === undefined ? there === undefined : isStill(there, over)
  }

  #open(): Views {
    this.#life.check()
    if (this.#views !== undefined) return this.#views
    throw new RepriseError('TRANSACTION_OVER', 'The transaction is not open.')
  }

  #leave(): void {
    this.#life.end()
    if (this.#views !== undefined && this.#readOnly) this.#tables.readerDone()
    this.#views = undefined
  }
}
