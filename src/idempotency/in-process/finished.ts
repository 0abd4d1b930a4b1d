// Which keys are known to be finished: a hint that a repeat may look before it opens a transaction. Nothing depends on it.

import type { StoredKey } from '../../identity/index.js'

/** The last names that were seen to be finished, at most a fixed number of them. */
export class FinishedNames {
  readonly #names = new Set<StoredKey>()
  readonly #ring: (StoredKey | undefined)[]
  #next = 0

  /** @param most How many are remembered; the oldest is forgotten for one more. */
  constructor(most = 10_000) {
    this.#ring = new Array<StoredKey | undefined>(most)
  }

  /** Whether the name was seen to be finished lately. */
  has(id: StoredKey): boolean {
    return this.#names.has(id)
  }

  /** Remembers a name. */
  add(id: StoredKey): void {
    if (this.#names.has(id)) return
    const oldest = this.#ring[this.#next]
    if (oldest !== undefined) this.#names.delete(oldest)
    this.#ring[this.#next] = id
    this.#next = (this.#next + 1) % this.#ring.length
    this.#names.add(id)
  }

  /** Forgets a name that was not finished after all. */
  delete(id: StoredKey): void {
    // Its place in the ring stays taken: giving it up there would take a search.
    this.#names.delete(id)
  }

  /** How many are remembered. */
  get size(): number {
    return this.#names.size
  }
}
