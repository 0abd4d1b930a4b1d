// A consumer lives, dies, freezes and is followed by another one, while messages come more than once, handlers fail and
// the store goes away. In the end every message has to have had its effect once, in the order of its key.
//
// It is the real consumer on a store in memory. A process that dies is one whose calls are never answered again; the
// transaction that it had open ends by its deadline, as a server ends it when the connection is gone.

import { AsyncLocalStorage } from 'node:async_hooks'
import { currentIntent } from '../../../../src/identity/index.js'
import { armFaultPoints, deadlineAfter, type Random, RepriseError, seededRandom } from '../../../../src/kernel/index.js'
import {
  type Arrival,
  type ConsumeOptions,
  consume,
  type Delivery,
  type Message,
  type MessageStore,
  type Source,
} from '../../../../src/messaging/index.js'
import { type MemoryDomain, type MemoryTransaction, memory } from '../../../../src/stores/memory/index.js'
import { type ManualClock, manualClock } from '../../../../src/testing/index.js'
import { messageOf, ScriptedSource } from '../scripted-source.js'
import { aSecond, busy, Says } from '../world.js'

/** Where messages come from, and how they are ordered. */
export interface Setting {
  readonly from: 'source' | 'outbox'
  readonly order: 'key' | 'gapless'
}

/** What a bug may put itself between. Shared by all processes of a life, as a second store would be. */
export interface Bug {
  readonly name: string
  readonly setting: Setting
  readonly noticed: RegExp
  delivery?(life: Life, delivery: Delivery): Delivery
  arrive?(life: Life, real: MessageStore<MemoryTransaction>['arrive']): MessageStore<MemoryTransaction>['arrive']
  keep?(life: Life, real: MessageStore<MemoryTransaction>['keep']): MessageStore<MemoryTransaction>['keep']
  endIn?(life: Life, real: MessageStore<MemoryTransaction>['endIn']): MessageStore<MemoryTransaction>['endIn']
  /** Whether a store that is away looks like a failure of the handler. */
  readonly outageReachesHandler?: true
  /** For how long the consumer declares that messages come again and are remembered. */
  readonly memoryMs?: number
  /** Done before each delivery that is not the first. */
  beforeRedelivery?(life: Life): Promise<void>
}

/** A process, as far as a life knows it. */
interface Process {
  isDead: boolean
}

// Who is at work: a process that stood still goes on beside those that followed it, and each dies its own death.
const atWork = new AsyncLocalStorage<Process>()

const keys = ['a', 'b', 'c']
const perKey = 4
const leaseMs = 5_000

/** One life. */
export class Life {
  readonly clock: ManualClock = manualClock()
  readonly db: MemoryDomain = memory({ name: 'shop', clock: this.clock })
  readonly source = new ScriptedSource({ deliveryCount: 'none' })
  readonly random: Random
  /** For bugs: what they remember outside of the store. */
  readonly elsewhere = new Set<string>()
  readonly #setting: Setting
  readonly #bug: Partial<Bug>
  readonly #left = new Map<string, number>()
  readonly #keys = new Map<string, Set<unknown>>()
  readonly #calls: string[] = []
  readonly #frozen: (() => void)[] = []
  readonly #stops: AbortController[] = []
  /** What happened, for a story. */
  readonly story: string[] = []
  #isAway = false
  #isHealed = false
  #n = 0

  constructor(seed: number, setting: Setting, bug: Partial<Bug> = {}) {
    this.random = seededRandom(seed)
    this.#setting = setting
    this.#bug = bug
    this.db.table('effect', { unique: [['n']] })
  }

  /** Lives it, and says what is wrong; undefined: nothing is. */
  async live(): Promise<string | undefined> {
    const messages = this.#messages()
    // At most two failures of its own, of five attempts: what becomes a dead letter was burnt by something else.
    for (const { id } of messages) this.#left.set(id, this.#upTo(3))
    await this.#send(messages)
    for (let processes = 0; processes < 6; processes += 1) await this.#process(processes < 5)
    this.#isHealed = true
    this.#isAway = false
    for (const thaw of this.#frozen.splice(0)) thaw()
    await this.#process(false)
    for (const stop of this.#stops) stop.abort()
    await this.clock.advance(leaseMs * 3)
    return this.#verdict(messages)
  }

  chance(of: number): boolean {
    return !this.#isHealed && this.random.next() < of
  }

  #upTo(most: number): number {
    return Math.floor(this.random.next() * most)
  }

  #messages(): readonly Message[] {
    const messages: Message[] = []
    for (let number = 1; number <= perKey; number += 1) {
      for (const key of keys) messages.push(messageOf(`${key}${number}`, key, { place: { epoch: 1, number } }))
    }
    return messages
  }

  async #send(messages: readonly Message[]): Promise<void> {
    if (this.#setting.from === 'outbox') {
      for (const { id, key } of messages) {
        await this.db.transact((tx) => tx.emit({ type: 'order.placed', id, subject: key, data: { of: id } }))
      }
      return
    }
    const sent: Message[] = []
    for (const message of messages) {
      sent.push(message)
      // A relay that did not hear the answer publishes again.
      if (this.chance(0.3)) sent.push(sent[Math.max(0, sent.length - 1 - this.#upTo(4))] as Message)
    }
    // A broker that keeps no order.
    if (this.#setting.order === 'gapless') {
      for (let index = 1; index < sent.length; index += 1) {
        if (!this.chance(0.3)) continue
        const [moved] = sent.splice(index, 1)
        sent.splice(Math.max(0, index - 1 - this.#upTo(6)), 0, moved as Message)
      }
    }
    this.source.send(...sent)
  }

  async #process(dies: boolean): Promise<void> {
    const process: Process = { isDead: false }
    const stop = new AbortController()
    const disarm = armFaultPoints(async (point) => {
      // A transaction that hangs elsewhere than in its body would hold the only writer for good.
      if (!point.startsWith('consumer.')) return
      const who = atWork.getStore()
      if (who === undefined) throw new Error(`Nobody is at work at ${point}.`)
      if (who.isDead) return never()
      if (!dies || !this.chance(0.08)) return
      if (point === 'consumer.claimed' && this.chance(0.5)) {
        this.story.push(`froze at ${point}`)
        await new Promise<void>((thaw) => this.#frozen.push(thaw))
        return
      }
      this.story.push(`died at ${point}`)
      who.isDead = true
      return never()
    })
    const consumer = consume(this.#as(process), this.#options(process))
    const running = atWork.run(process, () => consumer.run({ signal: stop.signal }))
    running.catch(() => undefined)
    const spanMs = this.#isHealed ? 400_000 : 4_000 + this.#upTo(20_000)
    for (let ms = 0; ms < spanMs && !process.isDead; ms += 500) {
      if (this.chance(0.06)) this.#isAway = !this.#isAway
      if (this.chance(0.03)) this.#frozen.shift()?.()
      await this.clock.advance(500)
      if (this.#isHealed && ms > 15_000 && this.#isQuiet()) break
    }
    this.#isAway = false
    disarm()
    if (process.isDead) {
      this.source.drop()
      // Its transaction ends by its deadline.
      await this.clock.advance(leaseMs * 3)
      await this.#bug.beforeRedelivery?.(this)
      return
    }
    if (this.#frozen.length > 0) {
      // It stands still while others follow it, and goes on beside them when it thaws.
      this.#stops.push(stop)
      this.source.drop()
      await this.clock.advance(leaseMs * 2)
      return
    }
    stop.abort()
    let over = false
    running
      .finally(() => {
        over = true
      })
      .catch(() => undefined)
    for (let steps = 0; !over && steps < 200; steps += 1) await this.clock.advance(500)
    this.source.drop()
    await this.#bug.beforeRedelivery?.(this)
  }

  #isQuiet(): boolean {
    return this.source.waiting === 0 && this.#effects().length >= keys.length * perKey
  }

  #options(process: Process): ConsumeOptions<MemoryTransaction> {
    const { from, order } = this.#setting
    const { memoryMs } = this.#bug
    return {
      name: 'receipts',
      ...(memoryMs !== undefined && { redelivered: memoryMs, memory: memoryMs }),
      from: from === 'outbox' ? 'outbox' : this.#sourceOf(process),
      ...(from === 'source' && { order }),
      gapWait: '2d',
      attempts: 5,
      crashes: 100,
      lease: leaseMs,
      deadline: leaseMs,
      poll: '1s',
      backoff: aSecond,
      classify: (error) => (error instanceof Says ? error.verdict : undefined),
      clock: this.clock,
      random: seededRandom(this.#upTo(1_000_000)),
      handle: async (tx, { id }) => {
        this.#calls.push(id)
        this.#n += 1
        await tx.upsert('effect', { n: this.#n, id: original(id) }, ['n'])
        const keysOf = this.#keys.get(id) ?? new Set()
        this.#keys.set(id, keysOf.add(currentIntent()?.key))
        const left = this.#left.get(id) ?? 0
        if (this.#isAway) throw busy
        if (left > 0 && !this.#isHealed) {
          this.#left.set(id, left - 1)
          throw busy
        }
      },
    }
  }

  // The domain as one process sees it.
  #as(process: Process): MemoryDomain {
    const { db } = this
    const bug = this.#bug
    const guarded =
      <Given extends unknown[], Result>(work: (...given: Given) => Promise<Result>) =>
      async (...given: Given): Promise<Result> => {
        if (process.isDead) return never()
        if (this.#isAway && !bug.outageReachesHandler) throw new RepriseError('STORE_UNREACHABLE', 'The store is away.')
        const result = await work(...given)
        return process.isDead ? never() : result
      }
    const { messages } = db
    return {
      ...db,
      transact: guarded(db.transact as (...given: unknown[]) => Promise<unknown>) as never,
      messages: {
        ...messages,
        register: guarded(messages.register),
        claim: guarded(messages.claim),
        end: guarded(messages.end),
        extend: guarded(messages.extend),
        arrive: bug.arrive?.(this, messages.arrive) ?? messages.arrive,
        keep: bug.keep?.(this, messages.keep) ?? messages.keep,
        endIn: bug.endIn?.(this, messages.endIn) ?? messages.endIn,
      },
    }
  }

  #sourceOf(process: Process): Source {
    const { source } = this
    const guarded = (delivery: Delivery): Delivery => ({
      ...delivery,
      ack: () => (process.isDead ? never() : delivery.ack()),
      again: (delayMs) => (process.isDead ? never() : delivery.again(delayMs)),
    })
    return {
      manifest: source.manifest,
      open: (receive, limits) =>
        source.open((delivery) => {
          const given = guarded(this.#bug.delivery?.(this, delivery) ?? delivery)
          return atWork.run(process, () => receive(given))
        }, limits),
    }
  }

  #effects(): readonly string[] {
    return this.db.rows('effect').map(({ id }) => String(id))
  }

  async #verdict(messages: readonly Message[]): Promise<string | undefined> {
    const effects = this.#effects()
    const limits = { deadline: deadlineAfter('1d', this.clock) }
    const letters = await this.db.messages.letters({ limit: 1_000 }, limits)
    const lettered = new Set(letters.map(({ message }) => message.id))
    for (const { code, message } of letters) {
      if (code !== 'MESSAGE_LATE') return `${message.id} is a dead letter for ${code}`
    }
    for (const { id } of messages) {
      const times = effects.filter((effect) => effect === id).length
      if (times > 1) return `${id} had its effect ${times} times`
      if (times === 0 && !lettered.has(id)) return `${id} was lost`
    }
    for (const key of keys) {
      const order = effects.filter((effect) => effect.startsWith(key))
      if (order.join() !== [...order].sort().join()) return `${key} was out of order: ${order.join(', ')}`
    }
    for (const [id, keysOf] of this.#keys) if (keysOf.size > 1) return `${id} had ${keysOf.size} keys`
    return this.source.waiting > 0 ? `${this.source.waiting} deliveries were never answered` : undefined
  }
}

// A bug may have given it another id.
function original(id: string): string {
  return id.slice(0, 2)
}

function never(): Promise<never> {
  return new Promise(() => {})
}

/** An arrival of another order. */
export function withOrder(arrival: Arrival, order: Arrival['order']): Arrival {
  return { ...arrival, order }
}
