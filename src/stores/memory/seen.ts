// What a store in memory remembers for dedupe windows.

import type { Pepper, StoredKey } from '../../identity/index.js'
import { type Clock, RepriseError } from '../../kernel/index.js'
import type { Mark, SeenStore, WindowBounds } from '../../messaging/index.js'

interface Row {
  readonly number: number
  /** In ms since 1970. */
  readonly atMs: number
}

interface SeenWindow {
  last: number
  /** In the order of their numbers. */
  readonly rows: Map<StoredKey, Row>
}

/** The windows of a store. */
export class MemorySeen implements SeenStore {
  readonly pepper: Pepper | undefined
  readonly #windows = new Map<string, SeenWindow>()
  readonly #clock: Clock
  #closed = false

  constructor(clock: Clock, pepper?: Pepper) {
    this.#clock = clock
    this.pepper = pepper
  }

  /** Refuses whoever comes from now on with STORE_CLOSED. */
  close(): void {
    this.#closed = true
  }

  async seen(bounds: WindowBounds, ids: readonly StoredKey[]): Promise<readonly StoredKey[]> {
    const window = this.#windowOf(bounds)
    return ids.filter((id) => {
      const row = window.rows.get(id)
      return row !== undefined && this.#remembers(bounds, window, row)
    })
  }

  async mark(bounds: WindowBounds, marks: readonly Mark[]): Promise<void> {
    const window = this.#windowOf(bounds)
    for (const { id, agoMs } of marks) {
      window.last += 1
      window.rows.delete(id)
      window.rows.set(id, { number: window.last, atMs: this.#clock.wallMs() - agoMs })
    }
    for (const [id, row] of window.rows) {
      if (this.#remembers(bounds, window, row)) break
      window.rows.delete(id)
    }
  }

  async forget(bounds: WindowBounds, mostRows: number): Promise<number> {
    const window = this.#windowOf(bounds)
    const forgotten = [...window.rows].filter(([, row]) => !this.#remembers(bounds, window, row)).slice(0, mostRows)
    for (const [id] of forgotten) window.rows.delete(id)
    if (window.rows.size === 0) this.#windows.delete(bounds.name)
    return forgotten.length
  }

  #remembers({ most, withinMs }: WindowBounds, { last }: SeenWindow, { number, atMs }: Row): boolean {
    return number > last - most && atMs > this.#clock.wallMs() - withinMs
  }

  #windowOf({ name }: WindowBounds): SeenWindow {
    if (this.#closed) throw new RepriseError('STORE_CLOSED', 'The store was closed.')
    const window = this.#windows.get(name) ?? { last: 0, rows: new Map<StoredKey, Row>() }
    this.#windows.set(name, window)
    return window
  }
}
