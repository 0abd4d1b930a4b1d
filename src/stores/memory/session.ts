// A transaction in memory: a view that becomes the committed state at once, or is dropped.

import {
  type BeginSettings,
  handleLife,
  type Receipt,
  type Session,
  type Stored,
  type TransactionControls,
  type Turn,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, RepriseError } from '../../kernel/index.js'
import { type MemoryTransaction, memoryHandle } from './handle.js'
import type { Tables, Views } from './tables.js'

/** The name of the table of markers. A user's table cannot have it: theirs are checked to be free. */
export const markerTable = 'reprise_marker'

/** One transaction in memory. */
export class MemorySession implements Session<MemoryTransaction> {
  readonly trace: undefined = undefined
  readonly #tables: Tables
  readonly #clock: Clock
  readonly #turn: Turn | undefined
  readonly #life = handleLife()
  #views: Views | undefined
  #readOnly = false

  /** @param turn The writer's turn, or undefined for a reader. */
  constructor(tables: Tables, clock: Clock, turn: Turn | undefined) {
    this.#tables = tables
    this.#clock = clock
    this.#turn = turn
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.#life.poisoned
  }

  async begin(settings: BeginSettings, controls: TransactionControls): Promise<MemoryTransaction> {
    this.#life.check()
    this.#readOnly = settings.readOnly
    this.#views = this.#tables.views(settings.readOnly)
    return memoryHandle(this.#views, this.#life, controls)
  }

  async claim(id: StoredKey): Promise<'claimed' | Stored> {
    const view = this.#open().view(markerTable)
    const [there] = view.find({ id })
    if (there === undefined) {
      view.insert({ id, format: 1, value: null, claimed_at_ms: this.#clock.wallMs() })
      return 'claimed'
    }
    const value = view.row(there)?.['value']
    if (typeof value === 'string') return { value }
    throw new RepriseError('MARKER_INVALID', 'The marker of the key has no outcome.')
  }

  async record(id: StoredKey, value: string): Promise<void> {
    const view = this.#open().view(markerTable)
    const [claimed] = view.find({ id })
    if (claimed === undefined) throw new RepriseError('MARKER_INVALID', 'The key was not claimed.')
    view.update(claimed, { value })
  }

  async commit(): Promise<Receipt> {
    if (this.#views === undefined) {
      throw new RepriseError('TRANSACTION_ENDED_ELSEWHERE', 'The transaction is not open.')
    }
    this.#life.checkBeforeCommit()
    if (!this.#readOnly) this.#tables.commit(this.#views)
    this.#leave()
    return { durability: 'promised' }
  }

  async rollback(): Promise<void> {
    this.#leave()
  }

  release(): void {
    this.#leave()
    this.#turn?.done()
  }

  poison(error: unknown): void {
    this.#life.poison(error)
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
