// The world of the model: real time, a store with one key whose answers get lost, owners' clocks, and the observer.

import type { Expected, RecordChange, RecordDraft, RecordMode, StoredRecord } from '../../../src/atomicity/index.js'
import type { Recovery } from '../../../src/idempotency/machine.js'
import { type Claimant, Oracle, type Purpose } from './oracle.js'
import { receiverWindowMs, type Subject, skewMs, windowMs } from './subject.js'

/** A write on its way to the store. */
export interface Write {
  readonly by: Claimant
  readonly purpose: Purpose
  /** Inserts, or changes what was read; `null` removes. */
  readonly insert?: RecordDraft
  readonly over?: Expected | undefined
  readonly change?: RecordChange | null
  /** Atomic mode: the effect and the outcome are in the same commit. */
  readonly commits?: true
}

/** What becomes of a write: `late` is delivered some time, or never. */
export type Fate = 'ok' | 'written, answer lost' | 'not written, answer lost' | 'late'

/** What happened in all sequences together. */
export type Tally = Map<string, number>

/** How a sequence is set up. */
export interface Setting {
  readonly recovery: Recovery
  readonly modes: readonly [RecordMode, RecordMode]
  /** By how much the store's clock is ahead at the start. */
  readonly startsAheadMs: number
  /** Whether the store's clock only goes forward, at most {@link skewMs} ahead of real time. */
  readonly clockIsSound: boolean
}

/** All there is in one sequence. */
export class World {
  readonly subject: Subject
  readonly setting: Setting
  readonly oracle: Oracle
  readonly tally: Tally
  readonly trace: string[] | undefined
  record: StoredRecord | undefined
  realMs = 1_000
  readonly ownerOffsetsMs: [number, number] = [0, 0]
  readonly late: Write[] = []
  /** The tokens of atomic claims that have committed. */
  readonly committed = new Set<string>()
  #storeOffsetMs = 0
  #storeMs = 0
  #lastFence = 0
  #tokens = 0

  constructor(subject: Subject, setting: Setting, tally: Tally, trace?: string[]) {
    this.subject = subject
    this.setting = setting
    this.tally = tally
    this.trace = trace
    this.oracle = new Oracle(setting.clockIsSound, subject.fencesAreWatched)
    this.#storeOffsetMs = setting.startsAheadMs
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1)
  }

  say(line: () => string): void {
    this.trace?.push(`${this.realMs}: ${line()}`)
  }

  newToken(): string {
    this.#tokens += 1
    return `token-${this.#tokens}`
  }

  /** The store's clock. */
  storeNow(): number {
    const nowMs = this.realMs + this.#storeOffsetMs
    this.#storeMs = this.setting.clockIsSound ? Math.max(this.#storeMs, nowMs) : nowMs
    this.oracle.saw(this.#storeMs)
    return this.#storeMs
  }

  /** Moves the store's clock against real time: within the skew, or to wherever. */
  jump(argument: number): void {
    this.#storeOffsetMs = this.setting.clockIsSound ? argument % (skewMs + 1) : (argument % 201) - 100
    this.say(() => `the store’s clock is ${this.#storeOffsetMs} ahead`)
    this.count(this.setting.clockIsSound ? 'skew of the store’s clock' : 'jump of the store’s clock')
  }

  /** The clock that decides for somebody. */
  decidesAt(storeMs: number, owner: number): number {
    return this.subject.decidesBy === 'store' ? storeMs : this.realMs + (this.ownerOffsetsMs[owner % 2] ?? 0)
  }

  /**
   * Sends a write; true: it was written, and the answer says so; false: it was not, and the answer says so; undefined:
   * no answer.
   */
  send(write: Write, fate: Fate): boolean | undefined {
    if (fate !== 'ok') this.count(`${write.purpose} ${fate}`)
    this.say(() => `${write.by.token} writes ${write.purpose} (${fate})`)
    if (fate === 'ok') return this.#apply(write)
    if (fate === 'written, answer lost') this.#apply(write)
    if (fate === 'late') this.late.push(write)
    return undefined
  }

  /** A delayed write arrives. */
  deliver(index: number): void {
    const [write] = this.late.splice(index % this.late.length, 1)
    if (write === undefined) return
    const written = this.#apply(write)
    this.count(written ? 'late write accepted' : `late ${write.purpose} refused`)
    this.say(() => `the late ${write.purpose} of ${write.by.token} is ${written ? 'accepted' : 'refused'}`)
  }

  /** Takes the record if it is due, as a sweep does. */
  due(sweep: Claimant): boolean {
    const { record } = this
    const nowMs = this.storeNow()
    if (record === undefined || record.mode !== 'leased' || record.dueAtMs === undefined) return false
    if (record.state !== 'claimed' && record.state !== 'unknown') return false
    if (record.dueAtMs + (record.state === 'claimed' ? this.subject.marginMs : 0) > nowMs) return false
    const dueInMs = Math.min(20, 5 * 2 ** record.looks)
    const expired = record.state === 'claimed' ? { token: null, because: 'lease-expired' } : {}
    const change = { state: 'unknown', dueInMs, ...expired } as const
    if (this.#apply({ by: sweep, purpose: 'due', over: record, change })) {
      this.record = { ...(this.record as StoredRecord), looks: record.looks + 1 }
    }
    return true
  }

  /** Forgets what is past its window. */
  purge(): void {
    const { record } = this
    if (record === undefined || !this.subject.purges(record, this.storeNow())) return
    this.count('record purged')
    this.say(() => `purge removes what is ${record.state}`)
    this.#apply({ by: { token: 'purge' }, purpose: 'purge', over: record, change: null })
  }

  #apply(write: Write): boolean {
    const before = this.record
    const storeMs = this.storeNow()
    const nextFence = (): number => {
      this.#lastFence = this.subject.nextFence(this.#lastFence, before)
      return this.#lastFence
    }
    let after: StoredRecord | undefined
    if (write.insert !== undefined) {
      if (before !== undefined && !this.subject.insertOver) return false
      after = this.subject.draft(write.insert, storeMs, nextFence)
    } else {
      if (before === undefined || write.over === undefined || !this.subject.isStill(before, write.over)) return false
      after =
        write.change === null
          ? undefined
          : this.subject.change(before, write.change as RecordChange, storeMs, nextFence)
    }
    const time = { realMs: this.realMs, storeMs }
    this.oracle.wrote(write.by, write.purpose, before, after, time)
    this.record = after
    if (write.commits && after !== undefined) {
      this.committed.add(write.by.token)
      const outcome = { state: 'succeeded', value: this.oracle.effect(), codec: null, remembered: windowMs } as const
      this.record = { ...this.subject.change(after, outcome, storeMs, nextFence), version: after.version }
      this.oracle.wrote(write.by, 'complete', after, this.record, time)
    }
    return true
  }
}

/** The recoveries that are tried. */
export const recoveries: readonly Recovery[] = [
  { kind: 'rerun', windowMs: receiverWindowMs },
  { kind: 'resolve' },
  { kind: 'hold' },
]
