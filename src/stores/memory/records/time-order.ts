// Names in the order of a time, as a binary heap: the earliest is found without looking at the others.

import type { StoredKey } from '../../../identity/index.js'

/** A name, and the time it is sorted by. */
interface Timed {
  readonly id: StoredKey
  readonly atMs: number
}

/** Names in the order of their times. A name may be in it more than once. */
export class TimeOrder {
  readonly #heap: Timed[] = []

  /** How many there are. */
  get size(): number {
    return this.#heap.length
  }

  /** The earliest; undefined: there is none. */
  first(): Timed | undefined {
    return this.#heap[0]
  }

  /** Puts a name in its place. */
  add(timed: Timed): void {
    const heap = this.#heap
    let place = heap.push(timed) - 1
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = heap[above] as Timed
      if (parent.atMs <= timed.atMs) break
      heap[place] = parent
      place = above
    }
    heap[place] = timed
  }

  /** Takes the earliest out. */
  removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let place = 0
    for (let below = 1; below < heap.length; below = 2 * place + 1) {
      const [left, right] = [heap[below] as Timed, heap[below + 1]]
      const isRight = right !== undefined && right.atMs < left.atMs
      const child = isRight ? right : left
      if (child.atMs >= last.atMs) break
      heap[place] = child
      place = isRight ? below + 1 : below
    }
    heap[place] = last
  }
}
