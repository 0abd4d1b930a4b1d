// The service of the storm model: one queue, first in, first out, and workers that do not know who has stopped waiting.
//
// That last part is what sustains a storm: capacity goes to requests whose clients timed out long ago.

import type { Random } from '../kernel/index.js'
import { exponential } from './sampling.js'
import { capacityShareAt, type StormSettings } from './storm-settings.js'

/** What became of a request on arrival. */
export type Admission = 'working' | 'waiting' | 'refused'

/** A service with a fixed number of workers. Requests are whole numbers. */
export class StormService {
  readonly #settings: StormSettings
  readonly #random: Random
  readonly #meanMs: number
  #idle: number
  #waiting: number[] = []
  #first = 0

  constructor(settings: StormSettings, random: Random) {
    this.#settings = settings
    this.#random = random
    this.#idle = Math.max(1, Math.round((settings.capacity * settings.serviceMs) / 1000))
    // Exact for the capacity, also where the number of workers had to be rounded.
    this.#meanMs = (this.#idle * 1000) / settings.capacity
  }

  /** Requests that wait for a worker. */
  get queue(): number {
    return this.#waiting.length - this.#first
  }

  /** Takes a request in, or refuses it. */
  admit(request: number): Admission {
    if (this.#idle > 0) {
      this.#idle -= 1
      return 'working'
    }
    if (this.queue >= this.#settings.queueLimit) return 'refused'
    this.#waiting.push(request)
    return 'waiting'
  }

  /** How long a request takes that enters a worker now, in ms. */
  workMs(nowMs: number): number {
    return exponential(this.#random, this.#meanMs) / capacityShareAt(this.#settings, nowMs)
  }

  /** A worker is free: the request it takes up next, or -1 if none waits. */
  next(): number {
    if (this.queue === 0) {
      this.#idle += 1
      return -1
    }
    const request = this.#waiting[this.#first] as number
    this.#first += 1
    // What was taken is let go of now and then: each time costs as much as the takes before it.
    if (this.#first > 4096 && this.#first * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#first)
      this.#first = 0
    }
    return request
  }
}
