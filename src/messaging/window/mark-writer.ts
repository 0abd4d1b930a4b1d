// Writes the marks of a window to its store, one commit after the other: what is accepted while one is on its way
// leaves with the next. What could not be written is kept, and leaves first.

import type { StoredKey } from '../../identity/index.js'
import { type Clock, deadlineAfter, inTime } from '../../kernel/index.js'
import type { Mark, SeenStore, WindowBounds } from './seen-store.js'

/** What became of a mark: it is in the store, or why it is not. */
export type Marked = { readonly stored: true } | { readonly stored: false; readonly error: unknown }

interface Pending {
  /** When it was accepted, in ms of monotonic time. */
  readonly atMs: number
  /** Undefined: it was told already that the mark could not be written. */
  tell: ((marked: Marked) => void) | undefined
}

/** What a writer works with. */
export interface MarkWriterParts {
  readonly bounds: WindowBounds
  readonly store: SeenStore
  /** The longest that the store may take for one write, in ms. */
  readonly limitMs: number
  readonly clock: Clock
}

/** As many marks leave in one commit at most. */
const mostAtOnce = 500

/** Marks on their way to a store. */
export class MarkWriter {
  readonly #parts: MarkWriterParts
  // In the order of acceptance.
  readonly #pending = new Map<StoredKey, Pending>()
  #isWriting = false
  // Whether a write failed that may have happened: its marks must not be counted twice.
  #isUnsure = false

  constructor(parts: MarkWriterParts) {
    this.#parts = parts
  }

  /** Writes a mark, with all that wait. Never rejected. */
  mark(id: StoredKey): Promise<Marked> {
    return new Promise((resolve) => {
      const before = this.#pending.get(id)?.tell
      this.#pending.delete(id)
      const tell = (marked: Marked): void => {
        before?.(marked)
        resolve(marked)
      }
      this.#pending.set(id, { atMs: this.#parts.clock.monotonicMs(), tell })
      this.catchUp()
    })
  }

  /** Writes what waits, unless that is being done. */
  catchUp(): void {
    if (this.#isWriting || this.#pending.size === 0) return
    this.#isWriting = true
    void this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#pending.size > 0) {
        this.#forgetOld()
        const batch = this.#oldest()
        // A store that heeds no limits is not waited for either: its answer is lost, as any other may be.
        const { clock, limitMs } = this.#parts
        await inTime({ clock, limitMs }, this.#write(batch))
        if (batch.length === this.#pending.size) this.#isUnsure = false
        for (const [id, pending] of batch) {
          // It may have been accepted once more meanwhile: that is another mark.
          if (this.#pending.get(id) === pending) this.#pending.delete(id)
          pending.tell?.({ stored: true })
        }
      }
    } catch (error) {
      this.#isUnsure = true
      for (const pending of this.#pending.values()) {
        const { tell } = pending
        pending.tell = undefined
        tell?.({ stored: false, error })
      }
    } finally {
      this.#isWriting = false
    }
  }

  #oldest(): readonly (readonly [StoredKey, Pending])[] {
    const batch: [StoredKey, Pending][] = []
    for (const entry of this.#pending) {
      batch.push(entry)
      if (batch.length === mostAtOnce) break
    }
    return batch
  }

  async #write(batch: readonly (readonly [StoredKey, Pending])[]): Promise<void> {
    const { store, bounds, clock, limitMs } = this.#parts
    const limits = { deadline: deadlineAfter(limitMs, clock), urgent: true }
    const ids = batch.map(([id]) => id)
    const there = new Set(this.#isUnsure && ids.length > 0 ? await store.seen(bounds, ids, limits) : [])
    const nowMs = clock.monotonicMs()
    const marks: Mark[] = batch
      .filter(([id]) => !there.has(id))
      .map(([id, { atMs }]) => ({ id, agoMs: Math.round(nowMs - atMs) }))
    if (marks.length > 0) await store.mark(bounds, marks, limits)
  }

  // What the window has forgotten need not be written: so the store can be away for as long as it wants.
  #forgetOld(): void {
    const { bounds, clock } = this.#parts
    const untilMs = clock.monotonicMs() - bounds.withinMs
    for (const [id, { atMs, tell }] of this.#pending) {
      if (tell !== undefined || (atMs > untilMs && this.#pending.size <= bounds.most)) break
      this.#pending.delete(id)
    }
  }
}
