// The slots of a target, and the queue for them: first come, first served. Without time, so that the runner of calls
// and the simulator count with the same code.

import { demandWhole, RepriseError } from '../../kernel/index.js'
import { demandOnly } from '../demand.js'

/** A concurrency limit as plain data. */
export interface ConcurrencyData {
  /** A fixed number of slots. */
  readonly kind: 'concurrency'
  /** Attempts that may be out at a time. */
  readonly most: number
  /** Attempts that may wait for a slot. */
  readonly queue: number
}

/** Limits how many attempts are out at a time: made by `concurrency`, and shared by all policies that are given it. */
export interface ConcurrencyLimit {
  /** The limit as plain data, without its state. */
  readonly data: ConcurrencyData
  /** How many attempts are out. */
  readonly out: number
  /** How many attempts wait for a slot. */
  readonly waiting: number
}

const most = 100_000

function invalid(path: string, why: string): RepriseError {
  return new RepriseError('POLICY_INVALID', `Not valid: ${path}. ${why}`, { details: { path } })
}

/** Slots that are taken and given back. While somebody waits, every slot is taken: one that is given back goes on. */
export class Slots implements ConcurrencyLimit {
  readonly data: ConcurrencyData
  readonly #queue = new Set<() => void>()
  #out = 0

  /** Refuses data that cannot be with `POLICY_INVALID`. */
  constructor(data: ConcurrencyData) {
    demandOnly(data, 'limit', 'kind', 'most', 'queue')
    demandWhole(data.most, 1, most, (why) => invalid('limit.most', why))
    demandWhole(data.queue, 0, most, (why) => invalid('limit.queue', why))
    this.data = Object.freeze({ kind: 'concurrency', most: data.most, queue: data.queue })
  }

  get out(): number {
    return this.#out
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** Takes a slot, if one is free. */
  tryEnter(): boolean {
    if (this.#out >= this.data.most) return false
    this.#out += 1
    return true
  }

  /**
   * Waits for a slot, behind all who wait already. `entered` is called once, by whoever gives the slot back.
   *
   * @returns How to leave the queue; undefined: it is full.
   */
  wait(entered: () => void): (() => void) | undefined {
    if (this.#queue.size >= this.data.queue) return undefined
    // Each wait is a place of its own, also where two share a function.
    const place = (): void => entered()
    this.#queue.add(place)
    return () => void this.#queue.delete(place)
  }

  /** Gives a slot back: to the one who has waited longest, if somebody waits. */
  leave(): void {
    for (const next of this.#queue) {
      this.#queue.delete(next)
      next()
      return
    }
    this.#out -= 1
  }
}
