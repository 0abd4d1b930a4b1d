// What must hold, told by somebody who does not know the machine: who holds the key in truth, what was effected, and
// until when an outcome is promised.

import type { StoredRecord } from '../../../src/atomicity/index.js'
import { leaseMs, receiverWindowMs, windowMs } from './subject.js'

/** Something that must never happen has happened. */
export class Violation extends Error {
  override readonly name: string = 'Violation'
}

/** What a write is for. */
export type Purpose =
  | 'claim'
  | 'renew'
  | 'complete'
  | 'release'
  | 'lose'
  | 'hold'
  | 'due'
  | 'settle'
  | 'purge'
  | 'replay'

/** One claim that is tried: the writer of writes, by identity and not by token. */
export interface Claimant {
  readonly token: string
}

/**
 * From a claim to the end of the outcome's memory: within it there is one effect, however often the key is released and
 * claimed again.
 */
interface Epoch {
  effects: number
  /** The value of the effect. */
  value: string | undefined
  completed: { readonly state: string; readonly value: string | undefined; readonly endMs: number } | undefined
}

/** The observer of one key. */
export class Oracle {
  epoch: Epoch = { effects: 0, value: undefined, completed: undefined }
  /** Who holds the key: written by a claim, gone with its outcome. */
  holder: Claimant | undefined
  #leaseEndMs = 0
  #lastFence = 0
  // The latest that the store's clock has been since the outcome was stored.
  #latestMs = 0
  #effects = 0
  readonly #received = new Map<string, { readonly atMs: number; readonly value: string }>()
  /** False: the store's clock jumps, so nothing is said about how long a lease lives. */
  readonly #clockIsSound: boolean
  readonly #fencesAreWatched: boolean

  constructor(clockIsSound: boolean, fencesAreWatched: boolean) {
    this.#fencesAreWatched = fencesAreWatched
    this.#clockIsSound = clockIsSound
  }

  /** The store's clock was read. */
  saw(storeMs: number): void {
    if (storeMs > this.#latestMs) this.#latestMs = storeMs
  }

  /** A write was stored. */
  wrote(
    by: Claimant,
    purpose: Purpose,
    before: StoredRecord | undefined,
    after: StoredRecord | undefined,
    time: { readonly realMs: number; readonly storeMs: number },
  ): void {
    if (this.epoch.completed !== undefined) this.#afterOutcome(purpose)
    switch (purpose) {
      case 'claim':
        if (before?.state === 'claimed') this.#leaseIsOver('a claim', time.realMs)
        this.#grows(after)
        this.holder = by
        this.#leaseEndMs = time.realMs + leaseMs
        break
      case 'renew':
        this.#holds(by, purpose)
        this.#leaseEndMs = time.realMs + leaseMs
        break
      case 'complete':
        this.#holds(by, purpose)
        this.#ends(after, time.storeMs)
        break
      case 'release':
      case 'lose':
        this.#holds(by, purpose)
        this.holder = undefined
        break
      case 'settle':
        if (before?.state === 'claimed') this.#leaseIsOver('a person', time.realMs)
        if (after !== undefined) this.#ends(after, time.storeMs)
        this.holder = undefined
        break
      case 'purge':
        if (before?.state === 'unknown') throw new Violation('an unknown outcome was dropped')
        if (before?.state === 'claimed') throw new Violation('a claim was dropped')
        break
      default:
        if (before?.state === 'claimed' && this.holder !== by) this.#leaseIsOver(`a ${purpose}`, time.realMs)
        this.holder = undefined
    }
  }

  /**
   * An effect is sent. The receiver that honours keys knows them for its window; the other one carries out whatever
   * arrives.
   */
  sent(by: Claimant, key: string, honoursKeys: boolean, realMs: number): string {
    if (this.#clockIsSound && this.holder !== by)
      throw new Violation('an owner sends, fresh as it thinks, while another holds the key')
    const known = honoursKeys ? this.#received.get(key) : undefined
    if (known !== undefined && realMs < known.atMs + receiverWindowMs) return known.value
    const value = this.effect()
    this.#received.set(key, { atMs: realMs, value })
    return value
  }

  /** An effect happens. */
  effect(): string {
    this.#effects += 1
    this.epoch.effects += 1
    this.epoch.value = `effect ${this.#effects}`
    if (this.#clockIsSound && this.epoch.effects > 1) throw new Violation('the effect happened twice')
    return this.epoch.value
  }

  /** A stored outcome is handed out. */
  replayed(record: StoredRecord | undefined): void {
    const { completed } = this.epoch
    if (completed === undefined) throw new Violation('an outcome is replayed that nobody stored')
    if (record?.state !== completed.state || record.value !== completed.value) {
      throw new Violation('a replay differs from what was stored')
    }
  }

  #afterOutcome(purpose: Purpose): void {
    const { completed } = this.epoch
    if (purpose === 'complete') throw new Violation('two completions')
    if (purpose !== 'claim' && purpose !== 'purge') throw new Violation(`an outcome was changed by a ${purpose}`)
    if (this.#latestMs < (completed?.endMs ?? 0))
      throw new Violation(`an outcome was lost to a ${purpose} within its window`)
    this.epoch = { effects: 0, value: undefined, completed: undefined }
  }

  #holds(by: Claimant, purpose: Purpose): void {
    if (this.holder !== by) throw new Violation(`a stale ${purpose} was accepted`)
  }

  #ends(after: StoredRecord | undefined, storeMs: number): void {
    const endMs = storeMs + windowMs
    this.#latestMs = storeMs
    this.epoch.completed = { state: after?.state ?? '', value: after?.value, endMs }
    this.holder = undefined
  }

  #leaseIsOver(who: string, realMs: number): void {
    if (this.#clockIsSound && this.holder !== undefined && realMs < this.#leaseEndMs) {
      throw new Violation(`${who} took a key whose lease lived`)
    }
  }

  #grows(after: StoredRecord | undefined): void {
    if (after?.mode !== 'leased' || !this.#fencesAreWatched) return
    if ((after.fence ?? 0) <= this.#lastFence) throw new Violation('a fence did not grow')
    this.#lastFence = after.fence ?? 0
  }
}
