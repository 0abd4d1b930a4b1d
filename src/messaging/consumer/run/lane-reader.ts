// Reads the lanes of a consumer: claims them, handles their messages in order, each in a transaction that also says
// that it is done, and ends the claims as the rules say.

import type { Message, MessagePlace, StoredMessage, TransactionControls } from '../../../atomicity/index.js'
import { type ErrorCode, isRepriseError, uuidv4 } from '../../../kernel/index.js'
import type { ClaimedLane, LaneEnd } from '../../lanes.js'
import { Fenced } from '../failure.js'
import { howToRun, type KnownFailures, missingBefore, type Next, nothingKnown, suspected } from '../machine.js'
import { fitted, isMessage, readStored } from '../readable.js'
import { reach } from './fault-points.js'
import { type Handling, letterOf } from './handling.js'
import { HeldLane } from './held-lane.js'

/** What a claim of ours is to end with, once the store answers. */
interface Debt {
  readonly end: LaneEnd
  readonly written: () => void
}

const registerEveryMs = 60_000
/** How long a loop with few free slots waits for more, so that a claim is worth its statement. */
const gatherMs = 10

/** What is wrong with the set-up: no pause mends it. */
const setUp: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ARGUMENT_INVALID',
  'CAPABILITY_UNSUPPORTED',
  'MIGRATION_MISSING',
  'MIGRATION_NEWER',
  'PEPPER_MISMATCH',
  'STORE_CLOSED',
])

/** Reads lanes until its consumer stops. */
export class LaneReader<Handle extends TransactionControls> {
  readonly #work: Handling<Handle>
  readonly #owner: string
  readonly #running = new Set<Promise<void>>()
  #debts: Debt[] = []
  #registerAtMs = Number.NEGATIVE_INFINITY
  // One lane at a time, since the last claim had one that may have ended a process.
  #oneByOne = false

  constructor(work: Handling<Handle>) {
    this.#work = work
    this.#owner = uuidv4(work.settings.random)
  }

  /** Whether nothing is under way. */
  get isIdle(): boolean {
    return this.#running.size === 0
  }

  /**
   * Claims and handles until the consumer is to stop.
   *
   * @param drains Whether it ends when no lane is due, when a pause begins, and with the error of a store that is away.
   */
  async run(drains: boolean): Promise<void> {
    const { stop } = this.#work
    try {
      while (!stop.aborted) {
        if (drains && this.#work.pause.isOn) break
        await this.#work.pause.over(stop)
        const sleepMs = await this.#step(drains)
        if (sleepMs === undefined) break
        if (sleepMs > 0) await this.#work.lanesWake.sleep(sleepMs, this.#work.settings.clock, stop)
      }
    } finally {
      await Promise.all(this.#running)
      await this.#payDebts().catch(() => undefined)
    }
  }

  /** Makes the reader known, and finds what was emitted before. */
  async register(): Promise<void> {
    const { db, settings, stop } = this.#work
    const nowMs = settings.clock.monotonicMs()
    if (nowMs < this.#registerAtMs) return
    while (!(await db.messages.register(settings.reader, this.#work.limits())) && !stop.aborted) {}
    this.#registerAtMs = nowMs + registerEveryMs
  }

  // How long to sleep after it, in ms; undefined: there is nothing more to do.
  async #step(drains: boolean): Promise<number | undefined> {
    const { settings, slots, pause, stop } = this.#work
    if (stop.aborted) return 0
    const few = slots.free < Math.ceil(settings.concurrency / 4)
    // Deliveries may have all slots while no lane is under way: without a sleep they would never get to an end.
    if (slots.free === 0 || (few && this.#running.size > 0)) {
      await this.#work.lanesWake.sleep(slots.free === 0 ? settings.pollMs : gatherMs, settings.clock, stop)
    }
    // Where deliveries have all slots, one lane stands in line with them: else its messages would never have a turn.
    const most = this.#oneByOne ? 1 : Math.max(slots.free, this.#running.size === 0 ? 1 : 0)
    if (most === 0 || stop.aborted) return 0
    let found: number
    let nextDueMs: number | undefined
    try {
      await this.#payDebts()
      await this.register()
      ;({ found, nextDueMs } = await this.#claim(most))
    } catch (error) {
      if (drains || (isRepriseError(error) && setUp.has(error.code))) throw error
      pause.begin('store', 0, error)
      return 0
    }
    // There may be more.
    if (found === most) return 0
    if (drains && found === 0 && this.#running.size === 0) return undefined
    return Math.max(1, Math.min(settings.pollMs, nextDueMs ?? settings.pollMs))
  }

  async #claim(most: number): Promise<{ readonly found: number; readonly nextDueMs: number | undefined }> {
    const { db, settings } = this.#work
    const { reader, leaseMs, batch, clock } = settings
    const sinceMs = clock.monotonicMs()
    const query = { reader, owner: this.#owner, leaseMs, lanes: most, perLane: batch }
    const { lanes, nextDueMs } = await db.messages.claim(query, this.#work.limits())
    const fault = reach('consumer.claimed')
    if (fault !== undefined) await fault
    const [first, ...others] = lanes.filter((lane) => howToRun(lane, settings) === 'alone')
    this.#oneByOne = first !== undefined
    // Only the one that runs next is kept: a process that ends with it must not count against the others.
    const released = new Set(others)
    for (const lane of lanes) {
      if (!released.has(lane)) this.#start(lane, sinceMs)
    }
    if (others.length > 0) {
      const ends = others.map((lane) => {
        const history = suspected(lane.history, clock.wallMs())
        return this.#endOf(lane, { is: 'rest', forMs: 0, failures: lane.failures, history })
      })
      await db.messages.end(ends, this.#work.limits())
    }
    return { found: lanes.length, nextDueMs }
  }

  #start(lane: ClaimedLane, sinceMs: number): void {
    const { db, settings } = this.#work
    const { reader, leaseMs, clock } = settings
    const claim = { reader, key: lane.key, owner: this.#owner, attempt: lane.attempt }
    const held = new HeldLane(claim, sinceMs, leaseMs, clock, (extended) =>
      db.messages.extend(extended, leaseMs, this.#work.limits()),
    )
    const working = this.#lane(lane, held).finally(() => {
      held.over()
      this.#running.delete(working)
      this.#work.lanesWake.wake()
    })
    this.#running.add(working)
  }

  async #lane(lane: ClaimedLane, held: HeldLane): Promise<void> {
    let known: KnownFailures = { failures: lane.failures, history: lane.history }
    let done = lane.done
    for (const [index, stored] of lane.messages.entries()) {
      const next = await this.#message(lane, held, index, stored, known, done)
      if (next.is !== 'done') {
        const fault = reach('consumer.failed')
        if (fault !== undefined) await fault
        await this.#end(lane, stored, known, next)
        return
      }
      known = nothingKnown
      done = stored.place
    }
  }

  async #message(
    lane: ClaimedLane,
    held: HeldLane,
    index: number,
    stored: StoredMessage,
    known: KnownFailures,
    done: MessagePlace | undefined,
  ): Promise<Next> {
    const { settings, pause, stop } = this.#work
    const how = index === 0 ? howToRun(lane, settings) : 'beside'
    if (how === 'kills') {
      const reason = `${lane.claims - 1} processes in a row ended while they had the message.`
      return this.#work.next(stored, known, { is: 'dead', code: 'MESSAGE_KILLS', reason }, undefined)
    }
    const decision = index === 0 ? lane.decision : undefined
    const missing = this.#missing(done, stored)
    if (missing !== undefined && decision === undefined) {
      // What comes first in a claim has been waited for.
      if (index > 0) return { is: 'rest', forMs: settings.gapWaitMs, failures: 0, history: '', pause: undefined }
      const reason = `The number before it that is missing, ${missing}, did not come in time.`
      return this.#work.next(stored, known, { is: 'dead', code: 'MESSAGE_GAP', reason }, undefined)
    }
    const { data, codec, id } = decision?.is === 'edit' ? decision : stored
    const read = readStored(this.#work.db.messages, { ...stored, id, codec, data })
    const message = isMessage(read) ? await fitted(read, settings.schemas) : read
    if (!isMessage(message)) return this.#work.next(stored, known, message, undefined)
    const isLast = index === lane.messages.length - 1
    for (;;) {
      await pause.over(stop)
      // Asked again in the slot: much may have happened while it was waited for.
      const next = await this.#work.slots.within(how === 'alone', async () => {
        if (stop.aborted) return this.#work.next(stored, known, { is: 'stopped' }, undefined)
        return pause.isOn ? undefined : this.#handle(held, message, stored.place, known, isLast)
      })
      if (next !== undefined) return next
    }
  }

  // Whether a number before it is missing, where numbers are checked. By arrival, places are of epoch 0.
  #missing(done: MessagePlace | undefined, { place }: StoredMessage): number | undefined {
    const { order, source } = this.#work.settings
    if (order !== 'gapless' || source === undefined || place.epoch === 0) return undefined
    return missingBefore(done, place)
  }

  async #handle(
    held: HeldLane,
    message: Message,
    place: MessagePlace,
    known: KnownFailures,
    isLast: boolean,
  ): Promise<Next> {
    const { db, settings } = this.#work
    const sinceMs = settings.clock.monotonicMs()
    const then: LaneEnd['then'] = isLast ? { is: 'free' } : { is: 'hold', forMs: settings.leaseMs }
    const finish = async (tx: Handle): Promise<void> => {
      if (!(await db.messages.endIn(tx, { ...held.claim, done: place, then }))) throw new Fenced()
    }
    const handling = async (tx: Handle, called: () => void): Promise<void> => {
      called()
      await this.#work.handle(tx, message)
      const fault = reach('consumer.handled')
      if (fault !== undefined) await fault
      await finish(tx)
    }
    const ended = await this.#work.transact(message, handling, held.signal)
    if ('result' in ended) {
      const fault = reach('consumer.committed')
      if (fault !== undefined) await fault
      held.renewed(sinceMs)
      this.#work.countDone(message)
      return { is: 'done' }
    }
    const next = this.#work.next(message, known, ended.ending, ended.error)
    if (next.is !== 'skip') return next
    const skipped = await this.#work.transact(message, finish, held.signal)
    if ('ending' in skipped) return this.#work.next(message, known, skipped.ending, skipped.error)
    held.renewed(sinceMs)
    this.#work.count('discarded', message)
    return { is: 'done' }
  }

  async #end(lane: ClaimedLane, stored: StoredMessage, known: KnownFailures, next: Next): Promise<void> {
    if (next.is === 'done' || next.is === 'skip') return
    if (next.is === 'park') {
      const end = this.#endOf(lane, { is: 'park', letter: letterOf(stored, next) })
      await this.#write({ end, written: () => this.#work.countLetter(stored, next.code, true) })
      return
    }
    const { failures, history } = next.is === 'rest' ? next : known
    // Where we took a lane for lost that nobody else has, this says that no process died with it; else it says nothing.
    const end = this.#endOf(lane, { is: 'rest', forMs: next.forMs, failures, history })
    await this.#write({ end, written: () => undefined })
  }

  #endOf(lane: ClaimedLane, then: LaneEnd['then']): LaneEnd {
    const { reader } = this.#work.settings
    return { reader, key: lane.key, owner: this.#owner, attempt: lane.attempt, done: undefined, then }
  }

  async #write(debt: Debt): Promise<void> {
    this.#debts.push(debt)
    try {
      await this.#payDebts()
    } catch (error) {
      // Paid before the next claim: until then the lease keeps others away, and after it they find what we left.
      this.#work.pause.begin('store', 0, error)
    }
  }

  async #payDebts(): Promise<void> {
    const debts = this.#debts
    if (debts.length === 0) return
    this.#debts = []
    try {
      const ends = debts.map(({ end }) => end)
      const written = await this.#work.db.messages.end(ends, this.#work.limits())
      for (const [index, { written: tell }] of debts.entries()) {
        if (written[index] === true) tell()
      }
      const fault = reach('consumer.kept')
      if (fault !== undefined) await fault
    } catch (error) {
      this.#debts.unshift(...debts)
      throw error
    }
  }
}
