// The runner of a relay: claims lanes, publishes their messages, and writes how each lane ended. The publisher and the
// user's filter are called outside of any transaction.

import type { Message } from '../../atomicity/index.js'
import { deadlineAfter, inTime, RepriseError } from '../../kernel/index.js'
import { equalJitter } from '../../retry/index.js'
import {
  relayFenced,
  relayMisanswered,
  relayParked,
  relayPaused,
  relayPublished,
  relayRefused,
} from '../../telemetry/index.js'
import type { Published } from '../broker.js'
import { Claims, isSetUp } from '../claims.js'
import { reasonOf } from '../consumer/failure.js'
import { isMessage, readStored } from '../consumer/readable.js'
import type { ClaimedLane } from '../lanes.js'
import { killing } from '../suspicion.js'
import { Wake } from '../wake.js'
import { ClaimAhead, type ClaimedBatch, isMoreDue } from './ahead.js'
import { reach } from './fault-points.js'
import {
  afterPublish,
  type ClaimShape,
  callSays,
  companyOf,
  firstShape,
  type Item,
  isToBlame,
  type LaneStep,
  type LaneWork,
  nextCall,
  nextShape,
} from './machine.js'
import type { RelayDomain, RelaySettings } from './options.js'

/** What a relay did so far, in this process. */
export interface RelayCounts {
  /** Messages that the broker has confirmed, each as often as it was. */
  readonly published: number
  /** Messages that `where` or `types` left out. */
  readonly skipped: number
  /** Answers by which a message was refused, or stayed unconfirmed while others were not. */
  readonly refused: number
  /** Calls of `publish` in which no message was answered for: the broker is away. */
  readonly away: number
  /** Messages that became dead letters. */
  readonly parked: number
  /** Lanes that somebody else had when their end was to be written. */
  readonly fenced: number
  /** Pauses that began. */
  readonly pauses: number
}

type Counts = { -readonly [Name in keyof RelayCounts]: number }

/** A lane with what was said of its messages so far. */
interface Work extends LaneWork {
  answers: readonly Published[]
  /** The number of its last call. */
  call: number
}

const leastSleepMs = 5
const mostDoubts = 1_000
const growth = equalJitter({ baseMs: 250, capMs: 30_000 })
const single: ClaimShape = { lanes: 1, perLane: 1, keepsFor: 0 }

/** One relay at work. */
export class RelayRunner {
  readonly counts: Counts = { published: 0, skipped: 0, refused: 0, away: 0, parked: 0, fenced: 0, pauses: 0 }
  readonly #db: RelayDomain
  readonly #settings: RelaySettings
  readonly #claims: Claims
  readonly #ahead: ClaimAhead
  // The ends of the last claim, while they are written beside the work on the next one. Never rejected: what could not
  // be written is still owed.
  #marking: Promise<void> = Promise.resolve()
  readonly #wake = new Wake()
  #stop: AbortSignal = new AbortController().signal
  #shape: ClaimShape
  // One lane at a time, since the last claim had one that may have ended a process.
  #oneByOne = false
  #pausesInRow = 0
  // The number of the last call, and of the last one in which something was confirmed.
  #call = 0
  #lastConfirmed = 0
  // Lanes whose first message went singly and was not confirmed, with the number of that call.
  readonly #doubts = new Map<string, number>()

  constructor(db: RelayDomain, settings: RelaySettings) {
    this.#db = db
    this.#settings = settings
    this.#claims = new Claims(db.messages, settings)
    this.#ahead = new ClaimAhead(this.#claims)
    this.#shape = firstShape(settings.batch)
  }

  /** There may be something to publish. */
  get wake(): () => void {
    return this.#wake.wake
  }

  /**
   * Publishes until the signal is aborted.
   *
   * @param drains Whether it ends when no lane is due, when the broker is away, and with the error of a store that is.
   */
  async run(signal: AbortSignal, drains: boolean): Promise<void> {
    this.#stop = signal
    const { pollMs, random } = this.#settings
    while (!signal.aborted) {
      const { found, restMs, isPause } = await this.#step(drains)
      if (drains && (isPause || found === 0)) break
      if (found > 0 && !isPause) continue
      // The poll is jittered, so that relays which started together do not ask together.
      const ms = restMs ?? pollMs * (0.5 + random.next() / 2)
      await this.#sleep(Math.max(leastSleepMs, ms), isPause)
    }
    await this.#marking
    await this.#ahead.giveBack()
    const paying = this.#claims.pay()
    await (drains ? paying : paying.catch(() => undefined))
  }

  // An emit ends a sleep, and no pause.
  async #sleep(ms: number, isPause: boolean): Promise<void> {
    const { clock } = this.#settings
    await (isPause ? new Wake() : this.#wake).sleep(ms, clock, this.#stop)
  }

  async #step(
    drains: boolean,
  ): Promise<{ readonly found: number; readonly restMs: number | undefined; readonly isPause: boolean }> {
    const { breaker, clock, pollMs } = this.#settings
    const nowMs = clock.monotonicMs()
    const pass = breaker.tryEnter(nowMs)
    if (pass === 0) {
      const restMs = Math.max(leastSleepMs, breaker.snapshot(nowMs).remainingMs)
      return { found: 0, restMs: Math.min(restMs, 60_000), isPause: true }
    }
    const isProbe = breaker.state(nowMs) === 'half-open'
    try {
      const batch = await this.#claimed(isProbe || this.#oneByOne)
      const { lanes, nextDueMs, shape } = batch
      if (lanes.length === 0) {
        breaker.ignored(pass)
        this.#pausesInRow = 0
        this.#oneByOne = false
        return { found: 0, restMs: nextDueMs === undefined ? undefined : Math.min(pollMs, nextDueMs), isPause: false }
      }
      const fault = reach('relay.claimed')
      if (fault !== undefined) await fault
      if (shape === this.#shape) {
        this.#shape = nextShape(
          this.#settings.batch,
          shape,
          lanes.map(({ messages }) => messages.length),
        )
      }
      const awayBecause = await this.#publishLanes(batch, pass)
      if (awayBecause === undefined) {
        this.#pausesInRow = 0
        return { found: lanes.length, restMs: undefined, isPause: false }
      }
      await this.#ahead.giveBack()
      return { found: lanes.length, restMs: this.#pause('broker', awayBecause.error), isPause: true }
    } catch (error) {
      breaker.ignored(pass)
      await this.#ahead.giveBack()
      if (drains || isSetUp(error)) throw error
      return { found: 0, restMs: this.#pause('store', error), isPause: true }
    }
  }

  // The lanes that come next: those that were claimed ahead, or else what is due when all that was done is written.
  async #claimed(isSingle: boolean): Promise<ClaimedBatch> {
    if (isSingle) await this.#ahead.giveBack()
    const ahead = await this.#ahead.take()
    const isEmpty = ahead === undefined || ahead.lanes.length === 0
    if (isEmpty) {
      await this.#marking
      await this.#claims.pay()
    }
    await this.#claims.register(this.#stop)
    return isEmpty ? this.#claim(isSingle ? single : this.#shape) : ahead
  }

  async #claim(shape: ClaimShape): Promise<ClaimedBatch> {
    const sinceMs = this.#settings.clock.monotonicMs()
    return { ...(await this.#claims.claim(shape.lanes, shape.perLane)), sinceMs, shape }
  }

  async #mark(): Promise<void> {
    await this.#claims.pay()
    const marked = reach('relay.marked')
    if (marked !== undefined) await marked
  }

  #pause(because: 'broker' | 'store', error: unknown): number {
    this.#pausesInRow += 1
    this.counts.pauses += 1
    const forMs = Math.ceil(growth.delayMs(this.#pausesInRow, 0, this.#settings.random))
    if (relayPaused.hasSubscribers) relayPaused.publish({ ...this.#named(), because, forMs, error })
    return forMs
  }

  // Publishes what was claimed, and writes how each lane ended. Gives why the broker counts as away, if it does.
  async #publishLanes(batch: ClaimedBatch, pass: number): Promise<{ readonly error: unknown } | undefined> {
    const { kept, alone } = await this.#claims.sorted(batch.lanes)
    this.#oneByOne = alone !== undefined
    if (alone !== undefined) {
      // A process that ends by it must leave nothing else unsaid.
      await this.#marking
      if (!(await this.#claims.beginAlone(alone))) return undefined
    } else if (batch.shape !== single && isMoreDue(batch)) this.#ahead.begin(() => this.#claim(this.#shape))
    const works: Work[] = kept.map((lane) => {
      const company = companyOf(lane, this.#settings)
      const items = company === 'kills' ? [killing(lane)] : this.#itemsOf(lane)
      return { lane, items, single: company === 'single' || company === 'alone', answers: [], call: 0 }
    })
    const calls = await this.#calls(works, batch.sinceMs, pass)
    const fault = reach('relay.published')
    if (fault !== undefined) await fault
    await this.#marking
    for (const work of works) this.#end(work)
    // What was claimed ahead is of other lanes, and need not wait for these.
    if (this.#ahead.isThere) this.#marking = this.#mark().catch(() => undefined)
    else await this.#mark()
    // One call with an answer is enough: the broker is there.
    if (calls.length === 0 || calls.some((answers) => callSays(answers) === 'there')) return undefined
    const [failed] = calls.at(-1) ?? []
    return { error: failed !== undefined && 'error' in failed ? failed.error : undefined }
  }

  // Calls the publisher until nothing is left, time is short, or the broker is away.
  async #calls(works: readonly Work[], sinceMs: number, pass: number): Promise<readonly (readonly Published[])[]> {
    const { breaker, budget, clock, deadlineMs, leaseMs, to } = this.#settings
    const calls: (readonly Published[])[] = []
    let ticket = pass
    let awayInRow = 0
    for (;;) {
      const chosen = nextCall(works, to.manifest.order, awayInRow)
      const leftMs = sinceMs + leaseMs - clock.monotonicMs()
      const isOver = chosen.length === 0 || leftMs < deadlineMs || (calls.length > 0 && this.#stop.aborted)
      if (!isOver && ticket === 0) ticket = breaker.tryEnter(clock.monotonicMs())
      if (isOver || ticket === 0) break
      const answers = await this.#publish(chosen.map(({ message }) => message))
      const nowMs = clock.monotonicMs()
      this.#call += 1
      if (answers.some(({ is }) => is === 'confirmed')) this.#lastConfirmed = this.#call
      for (const [index, { lane }] of chosen.entries()) {
        const work = works[lane] as Work
        work.answers = [...work.answers, answers[index] as Published]
        work.call = this.#call
      }
      calls.push(answers)
      const isAway = callSays(answers) === 'away'
      awayInRow = isAway ? awayInRow + 1 : 0
      if (isAway) {
        this.counts.away += 1
        breaker.failed(ticket, nowMs)
        budget?.failed(nowMs)
      } else {
        breaker.succeeded(ticket, nowMs)
        budget?.succeeded(nowMs)
      }
      ticket = 0
    }
    if (ticket !== 0) breaker.ignored(ticket)
    return calls
  }

  // The answers, one for each message. A publisher that throws, is late or miscounts says nothing.
  async #publish(messages: readonly Message[]): Promise<readonly Published[]> {
    const { to, clock, deadlineMs, storeLimitMs } = this.#settings
    const unknown = (error: unknown): readonly Published[] => {
      if (relayMisanswered.hasSubscribers) {
        relayMisanswered.publish({ ...this.#named(), messages: messages.length, error })
      }
      return messages.map(() => ({ is: 'unknown', error }))
    }
    try {
      const publishing = to.publish(messages, { deadline: deadlineAfter(deadlineMs, clock) })
      // The publisher keeps to its deadline by itself; one that does not is not waited for.
      const answers = await inTime({ clock, limitMs: deadlineMs + storeLimitMs / 2 }, Promise.resolve(publishing))
      if (Array.isArray(answers) && answers.length === messages.length && answers.every(isAnswer)) return answers
      const message = 'The publisher did not answer once for each message.'
      return unknown(new RepriseError('ARGUMENT_INVALID', message, { details: { messages: messages.length } }))
    } catch (error) {
      return unknown(error)
    }
  }

  // What is to be done with each message of a lane, up to the first that cannot be published.
  #itemsOf(lane: ClaimedLane): readonly Item[] {
    const items: Item[] = []
    for (const [index, stored] of lane.messages.entries()) {
      const item = this.#itemOf(index === 0 ? lane.decision : undefined, stored)
      items.push(item)
      if (item.is === 'dead' || item.is === 'failed') break
    }
    return items
  }

  #itemOf(decision: ClaimedLane['decision'], stored: ClaimedLane['messages'][number]): Item {
    const { codec, data, id } = decision?.is === 'edit' ? decision : stored
    const discarded = decision?.is === 'discard' ? { discarded: decision.reason } : {}
    const message = readStored(this.#db.messages as never, { ...stored, id, codec, data, ...discarded })
    if (!isMessage(message)) return { is: 'dead', code: message.code, reason: message.reason }
    // It has no data that could be asked about, and its id and place are to arrive.
    if (message.discarded !== undefined) return { is: 'send', message }
    try {
      const wanted: unknown = this.#settings.where(message)
      if (typeof wanted === 'boolean') return wanted ? { is: 'send', message } : { is: 'skip' }
      return { is: 'failed', code: 'WHERE_FAILED', reason: 'where gave something other than true or false.' }
    } catch (error) {
      return { is: 'failed', code: 'WHERE_FAILED', reason: reasonOf(error) }
    }
  }

  #end(work: Work): void {
    const { budget, clock, random } = this.#settings
    const { lane, single, call, answers } = work
    const othersConfirmed = single && isToBlame(call, this.#lastConfirmed, this.#doubts.get(lane.key))
    this.#doubts.delete(lane.key)
    if (single && answers.at(-1)?.is === 'unknown') {
      const [oldest] = this.#doubts.keys()
      if (this.#doubts.size >= mostDoubts && oldest !== undefined) this.#doubts.delete(oldest)
      this.#doubts.set(lane.key, call)
    }
    const step = afterPublish(work, this.#settings, {
      othersConfirmed,
      spared: () => budget !== undefined && !budget.tryRepeat(clock.monotonicMs()),
      chance: random,
      atMs: clock.wallMs(),
    })
    this.#claims.owe(lane, step.done, step.next, (isWritten) => this.#count(step, lane, isWritten))
  }

  #count(step: LaneStep, lane: ClaimedLane, isWritten: boolean): void {
    const { published, skipped, refused, next } = step
    this.counts.published += published.length
    this.counts.skipped += skipped
    if (relayPublished.hasSubscribers) {
      for (const { source, id, type } of published) relayPublished.publish({ ...this.#named(), source, id, type })
    }
    if (!isWritten) {
      this.counts.fenced += 1
      if (relayFenced.hasSubscribers) relayFenced.publish({ ...this.#named(), attempt: lane.attempt })
      return
    }
    if (refused !== undefined) {
      this.counts.refused += 1
      const { message, code, failures } = refused
      const { source, id, type } = message
      if (relayRefused.hasSubscribers) relayRefused.publish({ ...this.#named(), source, id, type, code, failures })
    }
    if (next.is === 'park') {
      this.counts.parked += 1
      const { source, id, type } = next.letter.message
      if (relayParked.hasSubscribers)
        relayParked.publish({ ...this.#named(), source, id, type, code: next.letter.code })
    }
  }

  #named(): { readonly domain: string; readonly relay: string } {
    return { domain: this.#db.name, relay: this.#settings.reader.name }
  }
}

const words: readonly string[] = ['confirmed', 'refused', 'unsent', 'unknown'] satisfies readonly Published['is'][]

function isAnswer(answer: unknown): answer is Published {
  return words.includes(Object(answer).is)
}
