// What one process remembers of a window: the ids it accepted last, the oldest first.

import type { StoredKey } from '../../identity/index.js'
import type { Clock } from '../../kernel/index.js'
import type { WindowBounds } from './seen-store.js'

interface Accepted {
  readonly id: StoredKey
  /** In ms of monotonic time: setting the clock forgets nothing, and remembers nothing for longer. */
  readonly atMs: number
}

// The front of the list is given up when it is this long, and half of it.
const spareEntries = 1_024

/** At most so many ids, each for so long. */
export class RecentIds {
  readonly #bounds: Pick<WindowBounds, 'withinMs' | 'most'>
  readonly #clock: Clock
  readonly #ids = new Set<StoredKey>()
  // In the order of acceptance, which is that of age. A Set knows that order too, but finds its first member by passing
  // over all that were deleted before it.
  readonly #order: Accepted[] = []
  #first = 0
  #byAge = 0
  #byCount = 0

  constructor(bounds: Pick<WindowBounds, 'withinMs' | 'most'>, clock: Clock) {
    this.#bounds = bounds
    this.#clock = clock
  }

  /** How many were forgotten so far: because they were too old, and because there were too many. */
  get evicted(): { readonly byAge: number; readonly byCount: number } {
    this.#forget()
    return { byAge: this.#byAge, byCount: this.#byCount }
  }

  has(id: StoredKey): boolean {
    this.#forget()
    return this.#ids.has(id)
  }

  /** Remembers an id that is not remembered. */
  add(id: StoredKey): void {
    this.#ids.add(id)
    this.#order.push({ id, atMs: this.#clock.monotonicMs() })
    this.#forget()
  }

  #forget(): void {
    const { withinMs, most } = this.#bounds
    const untilMs = this.#clock.monotonicMs() - withinMs
    for (;;) {
      const oldest = this.#order[this.#first]
      if (oldest === undefined) break
      if (oldest.atMs <= untilMs) this.#byAge += 1
      else if (this.#ids.size > most) this.#byCount += 1
      else break
      this.#ids.delete(oldest.id)
      this.#first += 1
    }
    if (this.#first < spareEntries || this.#first * 2 < this.#order.length) return
    this.#order.splice(0, this.#first)
    this.#first = 0
  }
}
