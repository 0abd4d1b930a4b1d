// A topic in memory: what was published, and for each group of subscribers what it still has to be delivered.

import { type CancelTimer, type Clock, RepriseError } from '../../kernel/index.js'

/** A message on its way to the subscribers of a group. */
export interface Entry {
  readonly text: string
  readonly key: string
  readonly publishedMs: number
  /** How often it was delivered. */
  count: number
  /** When it may be delivered. */
  dueMs: number
  /** Who has it. */
  holder: Subscriber | undefined
}

/** Somebody who takes deliveries of a group. */
export interface Subscriber {
  /** Whether it takes one more now. */
  readonly isReady: boolean
  take(entry: Entry): void
}

/** How a topic keeps messages. Times are monotonic ms. */
export interface TopicRules {
  readonly clock: Clock
  readonly order: 'key' | 'none'
  /** The most messages that a group may have before it. */
  readonly most: number
  /** How long a message is delivered, counted from its publishing. */
  readonly keepMs: number
}

const leastDelayMs = 1

/** The subscribers of one name, who share what is delivered. */
export class Group {
  readonly #rules: TopicRules
  // In the order of publishing.
  readonly #entries: Set<Entry> = new Set()
  readonly #subscribers: Set<Subscriber> = new Set()
  #cancel: CancelTimer | undefined
  #expired = 0
  #isDelivering = false
  #isAsked = false

  constructor(rules: TopicRules, texts: readonly Entry[]) {
    this.#rules = rules
    for (const entry of texts) this.add(entry)
  }

  /** Messages that are not done, those with subscribers included. */
  get size(): number {
    return this.#entries.size
  }

  /** Messages that nobody answered for as long as they are kept. */
  get expired(): number {
    return this.#expired
  }

  /** A message for this group. */
  add({ text, key, publishedMs }: Entry): void {
    this.#entries.add({ text, key, publishedMs, count: 0, dueMs: 0, holder: undefined })
  }

  join(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber)
    this.deliver()
  }

  /** A subscriber is gone. What it had comes again. */
  leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber)
    for (const entry of this.#entries) if (entry.holder === subscriber) entry.holder = undefined
    this.deliver()
  }

  /** A message is done. */
  remove(entry: Entry): void {
    this.#entries.delete(entry)
    this.deliver()
  }

  /** A message is to come again. */
  giveBack(entry: Entry, delayMs: number): void {
    entry.holder = undefined
    // Never at once: one that is given back each time would leave no room for anything else.
    entry.dueMs = this.#rules.clock.monotonicMs() + Math.max(leastDelayMs, delayMs)
    this.deliver()
  }

  /** Delivers what can be delivered now, to subscribers in turn. */
  deliver(): void {
    this.#isAsked = true
    // A subscriber that answers at once asks from inside.
    if (this.#isDelivering) return
    this.#isDelivering = true
    while (this.#isAsked) {
      this.#isAsked = false
      this.#pass()
    }
    this.#isDelivering = false
  }

  #pass(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const nowMs = this.#rules.clock.monotonicMs()
    this.#expire(nowMs)
    const held = new Set<string>()
    let nextMs = Number.POSITIVE_INFINITY
    for (const entry of this.#entries) {
      const isBehind = this.#rules.order === 'key' && held.has(entry.key)
      held.add(entry.key)
      if (isBehind || entry.holder !== undefined) continue
      if (entry.dueMs > nowMs) {
        nextMs = Math.min(nextMs, entry.dueMs)
        continue
      }
      const subscriber = this.#nextReady()
      if (subscriber === undefined) return
      entry.holder = subscriber
      entry.count += 1
      subscriber.take(entry)
    }
    if (this.#subscribers.size === 0 || nextMs === Number.POSITIVE_INFINITY) return
    this.#cancel = this.#rules.clock.setTimer(nextMs - nowMs, () => this.deliver(), { keepAlive: false })
  }

  // The one who has waited longest, which then is the last one.
  #nextReady(): Subscriber | undefined {
    for (const subscriber of this.#subscribers) {
      if (!subscriber.isReady) continue
      this.#subscribers.delete(subscriber)
      this.#subscribers.add(subscriber)
      return subscriber
    }
    return undefined
  }

  #expire(nowMs: number): void {
    for (const entry of this.#entries) {
      if (nowMs - entry.publishedMs < this.#rules.keepMs) break
      if (entry.holder !== undefined) continue
      this.#entries.delete(entry)
      this.#expired += 1
    }
  }
}

/** A topic. */
export class Topic {
  readonly #rules: TopicRules
  readonly #groups = new Map<string, Group>()
  /** What was published, for groups that come later and for tests: the last of it. */
  readonly #log: Entry[] = []

  constructor(rules: TopicRules) {
    this.#rules = rules
  }

  /** The texts that were published, the oldest first. */
  get texts(): readonly string[] {
    return this.#log.map(({ text }) => text)
  }

  /** The group of a name. A new one begins with what is still there. */
  group(name: string): Group {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new Group(this.#rules, this.#log)
      this.#groups.set(name, group)
    }
    return group
  }

  /** Takes a message for every group; QUEUE_FULL where one of them has too many before it. */
  publish(text: string, key: string): void {
    const { clock, most } = this.#rules
    for (const group of this.#groups.values()) {
      if (group.size >= most) throw new RepriseError('QUEUE_FULL', 'The topic has no room for a message.')
    }
    const entry = { text, key, publishedMs: clock.monotonicMs(), count: 0, dueMs: 0, holder: undefined }
    this.#log.push(entry)
    if (this.#log.length > most) this.#log.shift()
    for (const group of this.#groups.values()) group.add(entry)
  }

  /** Delivers what was published. */
  deliver(): void {
    for (const group of this.#groups.values()) group.deliver()
  }
}
