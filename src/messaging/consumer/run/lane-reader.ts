// Reads the lanes of a consumer: claims them, handles their messages in order, each in a transaction that also says
// that it is done, and ends the claims as the rules say.

import type { Message, MessagePlace, StoredMessage, TransactionControls } from '../../../atomicity/index.js'
import { Claims, isSetUp } from '../../claims.js'
import type { ClaimedLane, LaneEnd } from '../../lanes.js'
import { howToRun, killing } from '../../suspicion.js'
import { deliverAgain } from '../drilled.js'
import { Fenced } from '../failure.js'
import { type KnownFailures, missingBefore, type Next, nothingKnown } from '../machine.js'
import { fitted, isMessage, readStored } from '../readable.js'
import { reach } from './fault-points.js'
import { type Handling, letterOf } from './handling.js'
import { HeldLane } from './held-lane.js'

/** How long a loop with few free slots waits for more, so that a claim is worth its statement. */
const gatherMs = 10

/** What a claim gave. */
interface Claimed {
  readonly found: number
  readonly nextDueMs: number | undefined
  /** The work on each lane that was kept. */
  readonly started: readonly Promise<void>[]
}

/** Reads lanes until its consumer stops. */
export class LaneReader<Handle extends TransactionControls> {
  readonly #work: Handling<Handle>
  readonly #claims: Claims
  readonly #running = new Set<Promise<void>>()
  // How many lanes run alone, or wait for that.
  #alone = 0
  // One lane at a time, since the last claim had one that may have ended a process.
  #oneByOne = false

  constructor(work: Handling<Handle>) {
    this.#work = work
    this.#claims = new Claims(work.db.messages, work.settings)
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
      await this.#claims.pay().catch(() => undefined)
    }
  }

  /** Makes the reader known, and finds what was emitted before. */
  register(): Promise<void> {
    return this.#claims.register(this.#work.stop)
  }

  /**
   * Handles what waits in one lane, and is fulfilled when that has ended; at once where somebody else has the lane, or
   * one runs alone. Never rejected: what is in the store is found again.
   */
  async handleNow(key: string): Promise<void> {
    if (this.#alone > 0) return
    try {
      await Promise.all((await this.#claim(1, key)).started)
    } catch (error) {
      this.#work.pause.begin('store', 0, error)
    }
  }

  // How long to sleep after it, in ms; undefined: there is nothing more to do.
  async #step(drains: boolean): Promise<number | undefined> {
    const { settings, slots, pause, stop } = this.#work
    if (stop.aborted) return 0
    const few = slots.free < Math.ceil(settings.concurrency / 4)
    // Whoever has a slot wakes us when it is free.
    if (slots.free === 0 || (few && this.#running.size > 0)) {
      await this.#work.slotsWake.sleep(slots.free === 0 ? settings.pollMs : gatherMs, settings.clock, stop)
    }
    // Where deliveries have all slots, one lane stands in line with them: else its messages would never have a turn.
    // Beside a lane that runs alone, or waits for that, nothing is claimed: it has all slots, or is the next to have.
    const free = Math.max(slots.free, this.#running.size === 0 ? 1 : 0)
    const most = this.#oneByOne ? Math.min(1, free) : free
    if (most === 0 || stop.aborted) return 0
    let found: number
    let nextDueMs: number | undefined
    try {
      await this.#claims.pay()
      await this.register()
      ;({ found, nextDueMs } = await this.#claim(most))
    } catch (error) {
      if (drains || isSetUp(error)) throw error
      pause.begin('store', 0, error)
      return 0
    }
    // There may be more.
    if (found === most) return 0
    if (drains && found === 0 && this.#running.size === 0) return undefined
    return Math.max(1, Math.min(settings.pollMs, nextDueMs ?? settings.pollMs))
  }

  async #claim(most: number, key?: string): Promise<Claimed> {
    const { clock, batch } = this.#work.settings
    const sinceMs = clock.monotonicMs()
    const { lanes, nextDueMs } = await this.#claims.claim(most, batch, key)
    const fault = reach('consumer.claimed')
    if (fault !== undefined) await fault
    const { kept, alone } = await this.#claims.sorted(lanes)
    if (key === undefined) this.#oneByOne = alone !== undefined
    const started = kept.map((lane) => this.#start(lane, sinceMs, lane === alone))
    return { found: lanes.length, nextDueMs, started }
  }

  #start(lane: ClaimedLane, sinceMs: number, isAlone: boolean): Promise<void> {
    const { db, settings } = this.#work
    const { leaseMs, clock } = settings
    const held = new HeldLane(this.#claims.of(lane), sinceMs, leaseMs, clock, (extended) =>
      db.messages.extend(extended, leaseMs, this.#claims.limits()),
    )
    if (isAlone) this.#alone += 1
    const working = this.#lane(lane, held).finally(() => {
      held.over()
      if (isAlone) this.#alone -= 1
      this.#running.delete(working)
      this.#work.slotsWake.wake()
      this.#work.lanesWake.wake()
    })
    this.#running.add(working)
    return working
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
    const { settings, pause, slots, stop } = this.#work
    const how = index === 0 ? howToRun(lane, settings) : 'beside'
    if (how === 'kills') return this.#work.next(stored, known, killing(lane), undefined)
    const missing = this.#missing(done, stored)
    if (missing !== undefined && (index > 0 || lane.decision === undefined)) {
      // What comes first in a claim has been waited for.
      if (index > 0) return { is: 'rest', forMs: settings.gapWaitMs, failures: 0, history: '', pause: undefined }
      const reason = `The number before it that is missing, ${missing}, did not come in time.`
      return this.#work.next(stored, known, { is: 'dead', code: 'MESSAGE_GAP', reason }, undefined)
    }
    for (;;) {
      await pause.over(stop)
      // Asked again in the slot: much may have happened while it was waited for.
      const next = await slots.within(how === 'alone', async () => {
        if (stop.aborted) return this.#work.next(stored, known, { is: 'stopped' }, undefined)
        if (pause.isOn) return undefined
        return (how === 'alone' ? await this.#begun(lane, held) : undefined) ?? this.#read(lane, held, index, known)
      })
      if (next !== undefined) return next
    }
  }

  // Notes that the first message of a lane begins, with nothing beside it; given: why it does not.
  async #begun(lane: ClaimedLane, held: HeldLane): Promise<Next | undefined> {
    const [stored] = lane.messages as [StoredMessage]
    const sinceMs = this.#work.settings.clock.monotonicMs()
    try {
      if (!(await this.#claims.beginAlone(lane))) return this.#work.next(stored, lane, { is: 'fenced' }, undefined)
      held.renewed(sinceMs)
      return undefined
    } catch (error) {
      return this.#work.next(stored, lane, { is: 'away' }, error)
    }
  }

  // Codecs and schemas are the user's, and run where the handler does.
  async #read(lane: ClaimedLane, held: HeldLane, index: number, known: KnownFailures): Promise<Next> {
    const stored = lane.messages[index] as StoredMessage
    const decision = index === 0 ? lane.decision : undefined
    const { data, codec, id } = decision?.is === 'edit' ? decision : stored
    const read = readStored(this.#work.db.messages, { ...stored, id, codec, data })
    const message = isMessage(read) ? await fitted(read, this.#work.settings.schemas) : read
    if (!isMessage(message)) return this.#work.next(stored, known, message, undefined)
    return this.#handle(held, message, stored.place, known, index === lane.messages.length - 1)
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
    const { leaseMs: forMs } = settings
    const then: LaneEnd['then'] = isLast ? { is: 'free' } : { is: 'hold', forMs, ...nothingKnown }
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
    const failed = await settings.effect?.(message, held.signal)
    const ended = failed ?? (await this.#work.transact(message, handling, held.signal))
    if ('result' in ended) {
      const fault = reach('consumer.committed')
      if (fault !== undefined) await fault
      held.renewed(sinceMs)
      this.#work.countDone(message)
      this.#drill(held, message, place)
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

  // The repeat is that of a reader which had the lane before us, was taken for dead, and comes late with the same
  // message: it must not be able to say that it is done.
  #drill({ claim }: HeldLane, message: Message, place: MessagePlace): void {
    const { db, settings } = this.#work
    const { drill, reader, clock, deadlineMs } = settings
    if (!drill?.draws()) return
    const then: LaneEnd['then'] = { is: 'free' }
    const late = { ...claim, attempt: claim.attempt - 1, done: place, then }
    const arrive = async (tx: Handle): Promise<string> => ((await db.messages.endIn(tx, late)) ? 'new' : 'duplicate')
    deliverAgain(drill, db, { consumer: reader.name, message, clock, deadlineMs, arrive })
  }

  async #end(lane: ClaimedLane, stored: StoredMessage, known: KnownFailures, next: Next): Promise<void> {
    if (next.is === 'done' || next.is === 'skip') return
    if (next.is === 'park') {
      this.#claims.owe(lane, undefined, { is: 'park', letter: letterOf(stored, next) }, (isWritten) => {
        if (isWritten) this.#work.countLetter(stored, next.code, true)
      })
    } else {
      const { failures, history } = next.is === 'rest' ? next : known
      // Where we took a lane for lost that nobody else has, this says that no process died with it; else it says
      // nothing.
      this.#claims.owe(lane, undefined, { is: 'rest', forMs: next.forMs, failures, history })
    }
    try {
      await this.#claims.pay()
      const fault = reach('consumer.kept')
      if (fault !== undefined) await fault
    } catch (error) {
      this.#work.pause.begin('store', 0, error)
    }
  }
}
