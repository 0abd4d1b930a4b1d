// Messages under torture: callers in this process want intents of worker processes, whose messages go through outbox,
// relays, a broker of the run and consumers. When the faults are over, everything is delivered, and compared.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../../../src/kernel/index.js'
import { consumerFaultPoints, relayFaultPoints } from '../../../src/messaging/index.js'
import { transactionFaultPoints } from '../../../src/transaction/index.js'
import { draw, type EngineFault } from '../engines/engine.js'
import type { Part, PartRun, World } from '../part.js'
import type { Violation } from '../report.js'
import type { WorkerAnswer } from '../worker-process.js'
import { TortureBroker } from './broker.js'
import { type MessageWay, type Order, tables, type Wanted } from './definitions.js'
import { type EmittedRow, type HandledRow, type JudgedCall, type JudgedIntent, judge, type LanesSeen } from './judge.js'
import { bugNames } from './planted.js'

/** What a worker of this part is asked for. */
export type Asked = Order | { readonly state: number; readonly mend: boolean }

/** What is left to do. */
export interface State {
  readonly depth: number
  readonly letters: readonly { readonly reader: string; readonly code: string; readonly letters: number }[]
}

const callerCount = 12
/** How long a caller waits before it turns to something else, in ms; the answer is noted whenever it comes. */
const patienceMs = 250
/** How many calls may be under way. */
const mostUnderWay = 200
const askerCount = 8
/** How many keyed intents of a round are called for again. */
const recentCount = 100
const mostAsks = 60
/**
 * How many messages an intent has at most, and how far they may be behind before callers wait, so that a round can be
 * judged soon after it.
 */
const usual = { perIntent: 6, behind: 4_000 }
const loaded = { perIntent: 40, behind: 20_000 }
/** How long nothing may go on, in ms, before what is left counts as stuck. */
const stuckMs = 60_000

/** Reasons of dead letters that are nobody's fault, or that were asked for. */
const expected = new Set(['MESSAGE_REFUSED', 'MESSAGE_UNCONFIRMED', 'MESSAGE_KILLS', 'TypeError'])

interface Intent extends JudgedIntent {
  readonly order: Omit<Order, 'way'>
  readonly calls: JudgedCall[]
}

class MessagingRun implements PartRun {
  readonly told: PartRun['told']
  readonly faults: readonly EngineFault[]
  readonly #world: World
  readonly #broker: TortureBroker
  readonly #most: typeof usual
  readonly #lanes: LanesSeen = new Map()
  /** How many effects each round had when it was judged: none comes later. */
  readonly #counts = new Map<number, number>()
  #round: Intent[] = []
  #number = 0
  #messages = 0
  #moments = 0
  #underWay = 0

  constructor(world: World, broker: TortureBroker) {
    this.#world = world
    this.#broker = broker
    this.#most = world.isLoad ? loaded : usual
    this.told = { port: broker.port }
    this.faults = [...broker.faults, { kind: 'stop', weight: 6, strike: () => this.#stopAtWork() }]
  }

  get intents(): number {
    return this.#messages
  }

  get counted(): Readonly<Record<string, number>> {
    return { 'twice-on-the-wire': this.#broker.duplicates }
  }

  // Where somebody else follows, and whoever goes on after it has to be kept out. It is counted when it comes there.
  async #stopAtWork(): Promise<boolean> {
    this.#world.workers.stopAt(['consumer.claimed', 'consumer.handled', 'relay.claimed', 'relay.published'])
    return false
  }

  async work(signal: AbortSignal): Promise<void> {
    this.#round = []
    this.#number += 1
    this.#broker.isMended = false
    await Promise.all(Array.from({ length: callerCount }, () => this.#caller(signal)))
  }

  async #caller(signal: AbortSignal): Promise<void> {
    const { random } = this.#world
    while (!signal.aborted) {
      const keyed = this.#round.slice(-recentCount).filter((intent) => intent.keyed)
      const again = keyed.length > 0 && random.next() < 0.15
      const intent = again ? draw(random, keyed) : this.#wanted(random)
      const duplicates = intent.keyed && random.next() < 0.3 ? 2 : 1
      const calls = Array.from({ length: duplicates }, () => this.#call(intent, drawnWay(random)))
      await Promise.race([Promise.all(calls), wait(patienceMs)])
      while ((this.#underWay > mostUnderWay || this.#isFarBehind()) && !signal.aborted) await wait(20)
    }
  }

  #isFarBehind(): boolean {
    return this.#messages - this.#broker.distinct > this.#most.behind
  }

  #wanted(random: Random): Intent {
    const { keys = 300 } = this.#world
    const messages = Array.from({ length: 1 + Math.floor(random.next() * this.#most.perIntent) }, () =>
      drawnMessage(random, keys),
    )
    const [id, keyed] = [randomUUID(), random.next() < 0.5]
    const ends = random.next() < 0.07 ? 'refused' : 'done'
    const seen = messages.flatMap(({ way }, n) => (way === 'dropped' ? [] : [n]))
    const order = { intent: id, round: this.#number, keyed, messages, ends } as const
    const intent: Intent = { id, keyed, messages: seen, order, calls: [] }
    this.#round.push(intent)
    this.#messages += ends === 'done' ? seen.length : 0
    return intent
  }

  async #call(intent: Intent, way: Order['way']): Promise<WorkerAnswer | undefined> {
    const late = intent.calls.some(({ told }) => told !== undefined && 'final' in told)
    const calledAt = ++this.#moments
    const call: JudgedCall = { calledAt, toldAt: Number.POSITIVE_INFINITY, late, told: undefined }
    intent.calls.push(call)
    this.#underWay += 1
    call.told = (await this.#world.workers.call({ ...intent.order, way } satisfies Asked)) as WorkerAnswer | undefined
    call.toldAt = ++this.#moments
    this.#underWay -= 1
    return call.told
  }

  async judge(): Promise<readonly Violation[]> {
    const left = this.#round.filter(({ keyed }) => keyed).values()
    const asker = async (): Promise<void> => {
      for (const intent of left) await this.#decide(intent)
    }
    await Promise.all(Array.from({ length: askerCount }, asker))
    const strange: Violation[] = []
    const still = await this.#quiet(strange)
    const { engine } = this.#world
    const where = `where round = ${this.#number}`
    const emitted = await engine.rows<EmittedRow>(`select intent, run from emitted ${where}`)
    const rows = await engine.rows<HandledRow>(`select * from handled ${where}`)
    // PostgreSQL gives whole numbers of 64 bits as text.
    const handled = rows.map((row) => ({
      ...row,
      ...{ position: Number(row.position), n: Number(row.n), epoch: Number(row.epoch), number: Number(row.number) },
    }))
    const wire = this.#broker.taken()
    const found = judge({ intents: this.#round, emitted, handled, wire, left: still, before: this.#lanes })
    return [...strange, ...found, ...(await this.#sinceJudged())]
  }

  async #decide(intent: Intent): Promise<void> {
    for (let asks = 0; asks < mostAsks; asks += 1) {
      const told = await this.#call(intent, 'plain')
      if (told !== undefined && 'final' in told) return
      await wait(Math.min(1_500, 50 * 2 ** asks))
    }
  }

  /** Waits until all is delivered, as long as something goes on; then says what is left, or nothing. */
  async #quiet(strange: Violation[]): Promise<string | undefined> {
    const { workers } = this.#world
    this.#broker.isMended = true
    let [before, sinceMs] = ['', performance.now()]
    for (let mend = true; ; mend = !mend) {
      const state = (await workers.call({ state: this.#number, mend } satisfies Asked)) as State | { error: string }
      if ('depth' in state) {
        for (const { reader, code, letters } of state.letters) {
          if (expected.has(code)) continue
          strange.push({ kind: 'outOfOrder', intent: reader, says: `${letters} dead letters, ${code}.` })
        }
        if (strange.length > 0) return undefined
        if (state.depth === 0 && state.letters.length === 0 && this.#broker.isIdle) return undefined
      }
      const now = JSON.stringify([state, this.#broker.distinct, this.#broker.isIdle])
      if (now !== before) [before, sinceMs] = [now, performance.now()]
      if (performance.now() - sinceMs > stuckMs) return `This is left, and nothing goes on: ${now}`
      await wait(100)
    }
  }

  /** Effects that came to rounds which were judged before. */
  async #sinceJudged(): Promise<readonly Violation[]> {
    const counts = await this.#world.engine.rows<{ round: number; n: number }>(
      'select round, count(*) as n from handled group by round',
    )
    return counts.flatMap(({ round: of, n: count }) => {
      const [round, n] = [Number(of), Number(count)]
      const was = this.#counts.get(round) ?? n
      this.#counts.set(round, n)
      if (was === n) return []
      return [{ kind: 'zombie' as const, intent: `round ${round}`, says: `It had ${was} effects, and has ${n} now.` }]
    })
  }

  close(): Promise<void> {
    return this.#broker.close()
  }
}

function drawnWay(random: Random): Order['way'] {
  const drawn = random.next()
  return drawn < 0.06 ? 'throws' : drawn < 0.2 ? 'slow' : 'plain'
}

/** Most keys are plain; a few are hot, and what is special about messages happens to keys of their own. */
function drawnMessage(random: Random, keys: number): Wanted {
  const drawn = random.next()
  const odd = (way: MessageWay): Wanted => ({ key: `odd-${Math.floor(random.next() * 8)}`, way, later: false })
  if (drawn < 0.004) return odd('poison')
  if (drawn < 0.008) return odd('refused')
  if (drawn < 0.03) return odd('plain')
  const key = drawn < 0.1 ? `hot-${Math.floor(random.next() * 3)}` : `key-${Math.floor(random.next() * keys)}`
  return { key, way: drawn > 0.95 ? 'dropped' : 'plain', later: drawn > 0.92 && drawn <= 0.95 }
}

/** Messages. */
export const messagingPart: Part = {
  name: 'messaging',
  worker: 'messaging-worker',
  leaseMs: 1_500,
  tables,
  points: [...transactionFaultPoints, ...relayFaultPoints, ...consumerFaultPoints],
  bugs: bugNames,
  async open(world) {
    const broker = new TortureBroker(1_500)
    await broker.listen()
    return new MessagingRun(world, broker)
  },
}
