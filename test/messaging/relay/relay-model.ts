// A model of relays that share an outbox and a broker: the rules of src/messaging/relay/machine.ts, driven by a schedule
// that crashes, stalls and loses answers, on a store and a broker of a few lines. Parts can be replaced by wrong ones.

import type { Message, StoredMessage } from '../../../src/atomicity/index.js'
import { type Random, seededRandom } from '../../../src/kernel/index.js'
import type { ClaimedLane, LaneEnd, Published } from '../../../src/messaging/index.js'
import {
  afterPublish,
  callSays,
  companyOf,
  isToBlame,
  type LaneWork,
  nextCall,
} from '../../../src/messaging/relay/machine.js'
import { begunAlone, killing, sortedLanes } from '../../../src/messaging/suspicion.js'
import { constantDelay } from '../../../src/retry/index.js'

/** What a relay and its store do, each replaceable. */
export interface Parts {
  readonly companyOf: typeof companyOf
  readonly sortedLanes: typeof sortedLanes
  /** The history that is written before a message runs alone. */
  readonly begunAlone: typeof begunAlone
  readonly nextCall: typeof nextCall
  readonly afterPublish: typeof afterPublish
  /** Whether an end is written, by what the lane is now. */
  readonly fenced: (lane: Lane, owner: string, attempt: number) => boolean
  /** Whether a lane may be claimed. */
  readonly isFree: (lane: Lane, nowMs: number) => boolean
  /** When the store is told that messages are done. */
  readonly marks: 'after' | 'before'
}

export const soundParts: Parts = {
  companyOf,
  sortedLanes,
  begunAlone,
  nextCall,
  afterPublish,
  fenced: (lane, owner, attempt) => lane.owner === owner && lane.attempt === attempt,
  isFree: (lane, nowMs) => lane.dueMs <= nowMs,
  marks: 'after',
}

interface Lane {
  readonly key: string
  done: number
  state: 'idle' | 'waiting' | 'parked'
  dueMs: number
  owner: string | undefined
  attempt: number
  claims: number
  failures: number
  history: string
}

interface Work extends LaneWork {
  answers: readonly Published[]
  call: number
}

/** A relay between its claim and its end. */
interface Step {
  readonly works: readonly Work[]
  /** The one that runs alone. */
  readonly alone: Work | undefined
  readonly sinceMs: number
  awayInRow: number
}

/** What a relay remembers as long as it lives. */
interface Memory {
  call: number
  lastConfirmed: number
  readonly doubts: Map<string, number>
}

const noMemory = (): Memory => ({ call: 0, lastConfirmed: 0, doubts: new Map() })

const rules = { attempts: 3, crashes: 2, backoff: constantDelay(100) }
const leaseMs = 1_000
const deadlineMs = 300

/** One run of a schedule. `violations` is empty where all promises were kept. */
export class RelayModel {
  readonly violations: string[] = []
  readonly seen = { crashes: 0, fenced: 0, lost: 0, takenOver: 0, parked: 0, duplicates: 0, singles: 0 }
  readonly #parts: Parts
  readonly #random: Random
  // What the broker keeps in order.
  readonly #order: 'key' | 'none'
  #nowMs = 0
  readonly #messages = new Map<string, StoredMessage[]>()
  readonly #lanes = new Map<string, Lane>()
  readonly #relays: (Step | undefined)[] = [undefined, undefined, undefined]
  readonly #owners = ['0', '1', '2']
  readonly #memories = [noMemory(), noMemory(), noMemory()]
  readonly #letters = new Map<string, string>()
  readonly #wire = new Map<string, number[]>()
  // What is wrong with a message, for good.
  readonly #bad = new Map<string, 'refused' | 'poison' | 'kills'>()
  // How often a message went singly, and its answer was lost.
  readonly #unanswered = new Map<string, number>()
  // How often a message began alone, and how often somebody said how that ended.
  readonly #begun = new Map<string, number>()
  readonly #told = new Map<string, number>()
  #isAway = false
  #fault: 'answer' | 'messages' | undefined

  constructor(seed: number, parts: Parts = soundParts) {
    this.#random = seededRandom(seed)
    this.#order = seed % 2 === 0 ? 'key' : 'none'
    this.#parts = parts
  }

  /** Runs a schedule of so many steps, then lets everything settle. */
  run(steps: number): this {
    for (let count = 0; count < steps; count += 1) this.#act()
    this.#settle()
    return this
  }

  #act(): void {
    const draw = this.#random.next()
    if (draw < 0.15) this.#emit(this.#pick(['a', 'b', 'c', 'd']))
    else if (draw < 0.3) this.#nowMs += Math.floor(this.#random.next() * 400)
    else if (draw < 0.35) this.#isAway = !this.#isAway
    else if (draw < 0.39) this.#fault = this.#pick(['answer', 'messages'])
    else if (draw < 0.42) this.#crash(Math.floor(this.#random.next() * 3))
    else if (draw < 0.43) this.#nowMs += 2 * leaseMs
    else this.#advance(Math.floor(this.#random.next() * 3))
  }

  // All faults end, but what is wrong with messages stays. Others are emitted, so that the broker confirms something.
  #settle(): void {
    this.#isAway = false
    this.#fault = undefined
    for (const relay of [0, 1, 2]) this.#crash(relay)
    for (let round = 0; round < 200; round += 1) {
      this.#nowMs += 700
      if (round < 150) this.#emit('z')
      for (let count = 0; count < 20; count += 1) this.#advance(0)
      if ([...this.#lanes.values()].every(({ state }) => state !== 'waiting')) break
    }
    for (const [key, messages] of this.#messages) this.#checkSettled(key, messages)
  }

  #checkSettled(key: string, messages: readonly StoredMessage[]): void {
    const onWire = new Set(this.#wire.get(key))
    const lane = this.#lanes.get(key) as Lane
    const missing = messages.filter(({ place }) => !onWire.has(place.number))
    if (lane.state !== 'parked' && missing.length > 0)
      this.#violate(`${key} lost ${missing.map(({ id }) => id).join()}`)
    if (lane.state === 'waiting') this.#violate(`${key} is never done`)
    if (lane.state !== 'parked') return
    const head = messages[lane.done]
    if (head === undefined || !this.#bad.has(head.id)) this.#violate(`${key} is parked, and nothing is wrong with it`)
  }

  #emit(key: string): void {
    const messages = this.#messages.get(key) ?? []
    const number = messages.length + 1
    const id = `${key}${number}`
    const stored = { source: 's', id, type: 't', key, place: { epoch: 1, number }, atMs: 0, data: '1' } as StoredMessage
    this.#messages.set(key, [...messages, stored])
    const bad = this.#random.next()
    if (key !== 'z' && bad < 0.09) this.#bad.set(id, bad < 0.03 ? 'refused' : bad < 0.06 ? 'poison' : 'kills')
    const lane = this.#lanes.get(key)
    const fresh = { done: 0, owner: undefined, attempt: 0, claims: 0, failures: 0, history: '' }
    if (lane === undefined) this.#lanes.set(key, { key, ...fresh, state: 'waiting', dueMs: this.#nowMs })
    else if (lane.state === 'idle') Object.assign(lane, { state: 'waiting', dueMs: this.#nowMs })
  }

  // One step of a relay: it claims, calls the broker, or tells the store.
  #advance(relay: number): void {
    const step = this.#relays[relay]
    if (step === undefined) {
      this.#claim(relay)
      return
    }
    const chosen = this.#parts.nextCall(step.works, this.#order, step.awayInRow)
    const isOver = chosen.length === 0 || step.sinceMs + leaseMs - this.#nowMs < deadlineMs
    if (isOver) this.#end(relay, step)
    else this.#call(relay, step, chosen)
  }

  #claim(relay: number): void {
    const owner = this.#owners[relay] as string
    const due = [...this.#lanes.values()]
      .filter((lane) => lane.state === 'waiting' && this.#parts.isFree(lane, this.#nowMs))
      .sort((one, other) => one.dueMs - other.dueMs)
      .slice(0, 3)
    const claimed = due.map((lane): ClaimedLane => {
      if (lane.owner !== undefined) this.seen.takenOver += 1
      Object.assign(lane, { owner, attempt: lane.attempt + 1, claims: lane.claims + 1, dueMs: this.#nowMs + leaseMs })
      const messages = (this.#messages.get(lane.key) ?? []).slice(lane.done, lane.done + 3)
      const { key, attempt, claims, failures, history } = lane
      return { key, attempt, claims, failures, history, done: undefined, decision: undefined, messages }
    })
    if (claimed.length === 0) return
    const { kept, released, alone } = this.#parts.sortedLanes(claimed, rules, 0)
    for (const lane of released) {
      this.#write(relay, lane, 0, { is: 'rest', forMs: 0, failures: lane.failures, history: lane.history })
    }
    if (alone !== undefined) this.#beginAlone(relay, alone)
    const works = kept.map((lane): Work => {
      const company = this.#parts.companyOf(lane, rules)
      const items =
        company === 'kills'
          ? [killing(lane)]
          : lane.messages.map((stored) => ({ is: 'send', message: stored as Message }) as const)
      return { lane, items, single: company === 'single' || company === 'alone', answers: [], call: 0 }
    })
    const single = works.find(({ lane }) => lane === alone)
    this.#relays[relay] = { works, alone: single, sinceMs: this.#nowMs, awayInRow: 0 }
    if (this.#parts.marks === 'before') for (const { lane } of works) this.#mark(relay, lane, lane.messages.length)
  }

  #beginAlone(relay: number, lane: ClaimedLane): void {
    const { failures, history: before, messages } = lane
    const history = this.#parts.begunAlone(before, 0)
    this.#write(relay, lane, 0, { is: 'hold', forMs: leaseMs, failures, history })
    const [first] = messages
    if (first !== undefined) this.#begun.set(first.id, (this.#begun.get(first.id) ?? 0) + 1)
  }

  #call(relay: number, step: Step, chosen: ReturnType<typeof nextCall>): void {
    if (chosen.length === 1) this.seen.singles += 1
    if (chosen.some(({ message }) => this.#bad.get(message.id) === 'kills')) {
      this.#crash(relay)
      return
    }
    const answers = this.#publish(chosen.map(({ message }) => message))
    const memory = this.#memories[relay] as Memory
    memory.call += 1
    if (answers.some(({ is }) => is === 'confirmed')) memory.lastConfirmed = memory.call
    for (const [index, { lane }] of chosen.entries()) {
      const work = step.works[lane] as Work
      work.answers = [...work.answers, answers[index] as Published]
      work.call = memory.call
    }
    step.awayInRow = callSays(answers) === 'away' ? step.awayInRow + 1 : 0
  }

  #publish(messages: readonly Message[]): readonly Published[] {
    const all = (is: 'unsent' | 'unknown'): readonly Published[] => messages.map(() => ({ is, error: undefined }))
    if (this.#isAway) return all('unsent')
    const fault = this.#fault
    this.#fault = undefined
    if (fault !== undefined) this.seen.lost += 1
    const isLost = fault !== undefined || messages.some(({ id }) => this.#bad.get(id) === 'poison')
    const [only] = messages
    if (isLost && only !== undefined && messages.length === 1) {
      this.#unanswered.set(only.id, (this.#unanswered.get(only.id) ?? 0) + 1)
    }
    if (fault === 'messages' || messages.some(({ id }) => this.#bad.get(id) === 'poison')) return all('unknown')
    const held = new Set<string>()
    const answers = messages.map((message): Published => {
      if (held.has(message.key)) return { is: 'unsent', error: undefined }
      if (this.#bad.get(message.id) === 'refused') {
        if (this.#order === 'key') held.add(message.key)
        return { is: 'refused', code: 'bad', reason: 'bad' }
      }
      this.#arrive(message)
      return { is: 'confirmed' }
    })
    return fault === 'answer' ? all('unknown') : answers
  }

  #arrive({ key, place }: Message): void {
    const number = place?.number as number
    const arrived = this.#wire.get(key) ?? []
    const highest = arrived.reduce((a, b) => Math.max(a, b), 0)
    if (arrived.includes(number)) {
      this.seen.duplicates += 1
      const isMarked = this.#parts.marks === 'after' && number <= (this.#lanes.get(key)?.done ?? 0)
      if (isMarked) this.#violate(`${key}${number} was published again after it was marked`)
    } else if (number !== highest + 1) this.#violate(`${key}${number} was published before ${key}${highest + 1}`)
    this.#wire.set(key, [...arrived, number])
  }

  #end(relay: number, step: Step): void {
    this.#relays[relay] = undefined
    const { lastConfirmed, doubts } = this.#memories[relay] as Memory
    for (const work of step.works) {
      const { lane, single, call, answers } = work
      const othersConfirmed = single && isToBlame(call, lastConfirmed, doubts.get(lane.key))
      doubts.delete(lane.key)
      if (single && answers.at(-1)?.is === 'unknown') doubts.set(lane.key, call)
      const context = { othersConfirmed, spared: () => false, chance: this.#random, atMs: 0 }
      const { done, next } = this.#parts.afterPublish(work, rules, context)
      const [first] = lane.messages
      const isTold = this.#write(relay, work.lane, done?.number ?? 0, next)
      if (isTold && work === step.alone && first !== undefined)
        this.#told.set(first.id, (this.#told.get(first.id) ?? 0) + 1)
    }
  }

  #write(relay: number, { key, attempt }: ClaimedLane, done: number, next: LaneEnd['then']): boolean {
    const lane = this.#lanes.get(key) as Lane
    if (!this.#parts.fenced(lane, this.#owners[relay] as string, attempt)) {
      this.seen.fenced += 1
      return false
    }
    this.#mark(relay, { key, attempt }, done - lane.done)
    Object.assign(lane, { owner: undefined, claims: 0, failures: 0, history: '' })
    const isLast = lane.done === this.#messages.get(key)?.length
    if (next.is === 'free') Object.assign(lane, { state: isLast ? 'idle' : 'waiting', dueMs: this.#nowMs })
    if (next.is === 'rest' || next.is === 'hold') {
      const { failures, history } = next
      Object.assign(lane, { state: 'waiting', dueMs: this.#nowMs + next.forMs, failures, history })
    }
    if (next.is === 'hold') Object.assign(lane, { owner: this.#owners[relay], claims: 1 })
    if (next.is === 'park') this.#park(lane, next.letter.message, next.letter.code)
    return true
  }

  #park(lane: Lane, { id, place }: StoredMessage, code: string): void {
    this.seen.parked += 1
    if (place.number !== lane.done + 1) this.#violate(`${id} is parked, and the next one is another`)
    if (!this.#mayPark(id, code)) this.#violate(`${id} is parked as ${code}`)
    if (!this.#bad.has(id)) this.#bad.set(id, 'poison')
    this.#letters.set(id, code)
    lane.state = 'parked'
  }

  // A process may die by itself with any message, and answers to any message may be lost: as often as that is counted.
  // But nobody is to blame for a process that did something else too.
  #mayPark(id: string, code: string): boolean {
    if (code === 'MESSAGE_KILLS') return this.#unended(id) >= rules.crashes
    if (code === 'MESSAGE_REFUSED') return this.#bad.get(id) === 'refused'
    return (this.#unanswered.get(id) ?? 0) >= (this.#bad.has(id) ? 1 : rules.attempts)
  }

  // How often a process began the message alone, and did not say how it ended.
  #unended(id: string): number {
    return (this.#begun.get(id) ?? 0) - (this.#told.get(id) ?? 0)
  }

  // Messages of a lane count as done from now on.
  #mark(_relay: number, { key }: Pick<ClaimedLane, 'key' | 'attempt'>, more: number): void {
    const lane = this.#lanes.get(key) as Lane
    for (let count = 0; count < more; count += 1) {
      lane.done += 1
      const wire = this.#wire.get(key) ?? []
      if (this.#parts.marks === 'after' && !wire.includes(lane.done)) {
        this.#violate(`${key}${lane.done} is marked and not published`)
      }
    }
  }

  #crash(relay: number): void {
    if (this.#relays[relay] === undefined) return
    this.seen.crashes += 1
    this.#relays[relay] = undefined
    this.#memories[relay] = noMemory()
    // Its next life is another owner.
    this.#owners[relay] = `${this.#owners[relay]}+`
  }

  #violate(what: string): void {
    this.violations.push(what)
  }

  #pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random.next() * values.length)] as Value
  }
}
