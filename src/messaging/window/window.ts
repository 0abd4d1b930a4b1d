// The dedupe window: drops what came before, between any producer and any sink. It is bounded by time and by count,
// and an id is remembered once the sink has accepted it, never before: what the sink refused comes again.

import { InProcessQueue, insideOperation, refuseReentry, type Visitor } from '../../idempotency/index.js'
import type { StoredKey } from '../../identity/index.js'
import {
  type Clock,
  deadlineAfter,
  defined,
  demandKnown,
  demandSignal,
  demandWhole,
  durationMs,
  type ErrorCode,
  encodeTuple,
  faultPoint,
  inTime,
  isRepriseError,
  isStoreName,
  isWellFormed,
  RepriseError,
  remainingMs,
  sha256,
  systemClock,
} from '../../kernel/index.js'
import { windowDropped, windowUnchecked, windowUnremembered } from '../../telemetry/index.js'
import { refuseInside } from '../../transaction/index.js'
import type {
  DedupeWindow,
  DedupeWindowOptions,
  PassCall,
  Passed,
  PassOptions,
  Sink,
  WindowCounts,
  WindowId,
} from './contract.js'
import type { WindowFaultPoint } from './fault-points.js'
import { MarkWriter } from './mark-writer.js'
import { RecentIds } from './recent-ids.js'
import type { SeenStore, WindowBounds, WindowStore } from './seen-store.js'

const duplicate = Object.freeze({ accepted: false, because: 'duplicate' } as const)
const mostCharacters = 4_096
const mostPurged = 500

// Who is with a sink, by store: a digest of an id has the name of its window in it, so that one queue serves all
// windows of a store. A queue measures by one clock.
const queues = new WeakMap<SeenStore, WeakMap<Clock, InProcessQueue<true>>>()

function queueOf(store: SeenStore, clock: Clock): InProcessQueue<true> {
  const byClock = queues.get(store) ?? new WeakMap<Clock, InProcessQueue<true>>()
  queues.set(store, byClock)
  const queue = byClock.get(clock) ?? new InProcessQueue<true>(clock)
  byClock.set(clock, queue)
  return queue
}

/** What is wrong with the set-up: it would be let through under `'pass'` for ever. */
const setUp: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ARGUMENT_INVALID',
  'MIGRATION_MISSING',
  'PEPPER_MISMATCH',
  'STORE_CLOSED',
])

/**
 * A window that drops duplicates. Without a store it forgets with its process.
 *
 * @example
 * ```ts
 * import { dedupeWindow } from 'reprise/messaging'
 *
 * const window = dedupeWindow({ within: '10m', most: 100_000 })
 * const written: string[] = []
 * for (const id of ['a', 'b', 'a']) await window.pass(id, () => written.push(id))
 * console.log(written, window.counts.duplicates)
 * ```
 * ```text
 * [ 'a', 'b' ] 1
 * ```
 */
export function dedupeWindow(options: DedupeWindowOptions): DedupeWindow {
  return new Window(options)
}

const optionNames = ['name', 'within', 'most', 'store', 'storeAway', 'storeLimit', 'mostHeld', 'clock']

interface OpenStore {
  readonly domain: string
  readonly seen: SeenStore
  readonly marks: MarkWriter
}

class Window implements DedupeWindow {
  readonly name: string
  readonly #clock: Clock
  readonly #bounds: WindowBounds
  readonly #store: OpenStore | undefined
  readonly #passes: boolean
  readonly #storeLimitMs: number
  readonly #mostHeld: number
  readonly #recent: RecentIds
  readonly #queue: InProcessQueue<true>
  readonly #counts = { accepted: 0, duplicates: 0, failed: 0, unchecked: 0, unremembered: 0, held: 0 }

  constructor(options: DedupeWindowOptions) {
    demandKnown(options, optionNames, 'options')
    const { within, most, store, storeAway = 'stop', storeLimit = '2s', mostHeld = 1_000 } = options
    const { name = 'window', clock = systemClock } = options
    if (store !== undefined && options.name === undefined) {
      throw invalid('name', 'A window with a store needs a name, by which the store finds it.')
    }
    if (!isStoreName(name, 200)) {
      throw invalid('name', 'The name of a window is text of 1 to 200 characters, none of them a control character.')
    }
    if (storeAway !== 'stop' && storeAway !== 'pass') throw invalid('storeAway', "storeAway is 'stop' or 'pass'.")
    demandWhole(most, 1, 10_000_000, (why) => invalid('most', `The option most is not valid. ${why}`))
    demandWhole(mostHeld, 0, 1_000_000, (why) => invalid('mostHeld', `The option mostHeld is not valid. ${why}`))
    this.name = name
    this.#clock = clock
    this.#bounds = Object.freeze({
      name,
      withinMs: Math.ceil(durationMs(within, { minMs: 1, option: 'within' })),
      most,
    })
    this.#passes = storeAway === 'pass'
    this.#storeLimitMs = durationMs(storeLimit, { minMs: 1, option: 'storeLimit' })
    this.#mostHeld = mostHeld
    this.#recent = new RecentIds(this.#bounds, clock)
    this.#store = store === undefined ? undefined : this.#opened(store)
    this.#queue = this.#store === undefined ? new InProcessQueue(clock) : queueOf(this.#store.seen, clock)
  }

  get counts(): WindowCounts {
    const { byAge, byCount } = this.#recent.evicted
    return { ...this.#counts, evictedByAge: byAge, evictedByCount: byCount }
  }

  async pass<Value>(given: WindowId, sink: Sink<Value>, options: PassOptions = {}): Promise<Passed<Value>> {
    demandKnown(options, ['signal', 'deadline'], 'options')
    if (typeof sink !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'pass needs a sink: a function.')
    if (this.#store !== undefined) refuseInside()
    const id = this.#idOf(given)
    const { signal, deadline: limit = '10s' } = options
    if (signal !== undefined) demandSignal(signal)
    const deadline = typeof limit === 'object' && limit !== null ? limit : deadlineAfter(limit, this.#clock)
    const call: PassCall = { deadline, signal }
    this.#demandTime(call)
    if (this.#recent.has(id)) return this.#drop(id, 'process')
    refuseReentry(this.#queue, id, reentered)
    const visitor: Visitor = {
      fingerprint: undefined,
      refusesDuplicates: false,
      mostWaiting: Number.POSITIVE_INFINITY,
      waitUntilMs: Number.POSITIVE_INFINITY,
      deadline,
      signal,
    }
    if (!(await this.#isLeader(id, visitor))) return this.#drop(id, 'leader')
    // What is told to those who wait: that it is a duplicate, or nothing, and one of them is next.
    let told: true | undefined
    const accept = (): void => {
      told = true
      this.#queue.done(id, visitor, told)
      // Other windows of the store do not know of it before the mark is there: who comes to them waits for that.
      this.#queue.enter(id, visitor)
    }
    try {
      const sinceMs = this.#clock.monotonicMs()
      if (await this.#isSeen(id, call)) {
        told = true
        return this.#drop(id, 'store')
      }
      const markMs = this.#storeLimitMs - (this.#clock.monotonicMs() - sinceMs)
      return await this.#hand(id, sink, call, markMs, accept)
    } finally {
      this.#queue.done(id, visitor, told)
    }
  }

  async purge(): Promise<number> {
    if (this.#store === undefined) return 0
    refuseInside()
    const { seen } = this.#store
    let purged = 0
    for (;;) {
      const limits = { deadline: deadlineAfter(this.#storeLimitMs, this.#clock) }
      const forgotten = await this.#inTime(seen.forget(this.#bounds, mostPurged, limits), this.#storeLimitMs)
      purged += forgotten
      if (forgotten < mostPurged) return purged
    }
  }

  // Whether it goes to the sink: at once, or in the place of one that was refused. Otherwise that one was accepted.
  async #isLeader(id: StoredKey, visitor: Visitor): Promise<boolean> {
    if (this.#counts.held >= this.#mostHeld && this.#queue.isLed(id)) {
      const message = `${this.#mostHeld} duplicates wait in this window already.`
      throw new RepriseError('QUEUE_FULL', message, { details: { waiters: this.#mostHeld } })
    }
    const told = this.#queue.enter(id, visitor)
    if (told === undefined) return true
    this.#counts.held += 1
    try {
      return (await told) === undefined
    } finally {
      this.#counts.held -= 1
    }
  }

  // `markMs`: how long it waits for the mark.
  async #hand<Value>(
    id: StoredKey,
    sink: Sink<Value>,
    call: PassCall,
    markMs: number,
    accept: () => void,
  ): Promise<Passed<Value>> {
    const checked = reach('window.checked')
    if (checked !== undefined) await checked
    this.#demandTime(call)
    let value: Value
    try {
      value = await insideOperation(this.#queue, id, () => sink(call))
    } catch (error) {
      this.#counts.failed += 1
      throw error
    }
    this.#counts.accepted += 1
    this.#recent.add(id)
    const accepted = reach('window.accepted')
    if (accepted !== undefined) await accepted
    const marking = this.#store?.marks.mark(id)
    accept()
    if (this.#store === undefined || marking === undefined) return { accepted: true, value, remembered: 'process' }
    const mark = await this.#inTime(marking, markMs).catch((error: unknown) => ({ stored: false as const, error }))
    if (mark.stored) {
      const reached = reach('window.marked')
      if (reached !== undefined) await reached
      return { accepted: true, value, remembered: 'store' }
    }
    this.#counts.unremembered += 1
    if (windowUnremembered.hasSubscribers) {
      windowUnremembered.publish({ window: this.name, domain: this.#store.domain, id, error: mark.error })
    }
    return { accepted: true, value, remembered: 'process' }
  }

  async #isSeen(id: StoredKey, { deadline, signal }: PassCall): Promise<boolean> {
    const store = this.#store
    if (store === undefined) return false
    const leftMs = remainingMs(deadline, this.#clock)
    // A call that is to pass keeps some of its time for the sink.
    const limitMs = Math.min(this.#storeLimitMs, this.#passes ? leftMs / 2 : leftMs)
    const limits = { deadline: deadlineAfter(limitMs, this.#clock), ...defined({ signal }) }
    try {
      const seen = await this.#inTime(store.seen.seen(this.#bounds, [id], limits), limitMs, signal)
      // It answers again: what it does not know yet goes there now.
      store.marks.catchUp()
      return seen.length > 0
    } catch (error) {
      signal?.throwIfAborted()
      if (isRepriseError(error) && setUp.has(error.code)) throw error
      if (remainingMs(deadline, this.#clock) === 0) throw tooLate(error)
      this.#counts.unchecked += 1
      if (windowUnchecked.hasSubscribers) {
        windowUnchecked.publish({ window: this.name, domain: store.domain, id, passed: this.#passes, error })
      }
      if (this.#passes) return false
      const message = 'The store did not say whether the message came before. The sink was not called: repeat it later.'
      throw new RepriseError('WINDOW_STORE_AWAY', message, { cause: error })
    }
  }

  // No longer than it may: a store of somebody's own may heed neither deadline nor signal.
  #inTime<Value>(answer: Promise<Value>, limitMs: number, signal?: AbortSignal): Promise<Value> {
    const expired = (): RepriseError => new RepriseError('DEADLINE_EXCEEDED', 'The store did not answer in time.')
    return inTime({ clock: this.#clock, limitMs, signal, expired }, answer)
  }

  #demandTime({ signal, deadline }: PassCall): void {
    signal?.throwIfAborted()
    if (remainingMs(deadline, this.#clock) === 0) throw tooLate()
  }

  #drop(id: StoredKey, knownBy: 'process' | 'leader' | 'store'): typeof duplicate {
    this.#counts.duplicates += 1
    if (windowDropped.hasSubscribers) windowDropped.publish({ window: this.name, id, knownBy })
    return duplicate
  }

  #opened({ name: domain, seen }: WindowStore): OpenStore {
    if (!(['seen', 'mark', 'forget'] as const).every((method) => typeof Object(seen)[method] === 'function')) {
      throw invalid('store', 'The store of a window is a domain.')
    }
    const parts = { bounds: this.#bounds, store: seen, limitMs: this.#storeLimitMs, clock: this.#clock }
    return { domain, seen, marks: new MarkWriter(parts) }
  }

  // A digest, so that every id takes the same room, in memory and in the store, and nobody reads it there.
  #idOf(given: WindowId): StoredKey {
    const parts = typeof given === 'string' ? [given] : given
    const sound =
      Array.isArray(parts) &&
      parts.length >= 1 &&
      parts.length <= 16 &&
      // Without its id every message would be a duplicate of the first.
      parts.every((part) => typeof part === 'string' && part !== '' && isWellFormed(part)) &&
      parts.reduce((sum: number, part: string) => sum + part.length, 0) <= mostCharacters
    if (!sound) {
      const message = `An id is a text, or a tuple of 1 to 16 texts, none of them empty, of ${mostCharacters} characters at most in all.`
      throw new RepriseError('ARGUMENT_INVALID', message)
    }
    const id = sha256(encodeTuple(['window1', this.name, ...parts])) as string as StoredKey
    return this.#store?.seen.pepper?.hide(id) ?? id
  }
}

function reach(point: WindowFaultPoint): PromiseLike<void> | undefined {
  return faultPoint(point)
}

function tooLate(cause?: unknown): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the sink was called.', defined({ cause }))
}

function reentered(): RepriseError {
  return new RepriseError('WINDOW_REENTERED', 'The id was passed from inside the sink that has it.')
}

function invalid(option: string, message: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', message, { details: { option } })
}
