// Memory, as a broker: for tests, and for programs of one process. Events travel as JSON text of CloudEvents, as they
// do elsewhere, and it can fail in the ways in which brokers fail.

import {
  type Clock,
  type Duration,
  demandKnown,
  demandWhole,
  durationMs,
  RepriseError,
  remainingMs,
  systemClock,
} from '../../kernel/index.js'
import {
  type BrokerManifest,
  eventText,
  isReadable,
  type Message,
  type Published,
  type Publisher,
  type PublishLimits,
  readEvent,
  type Source,
} from '../../messaging/index.js'
import { MemorySubscription } from './subscription.js'
import { type Group, Topic, type TopicRules } from './topic.js'

/** How a broker in memory works. */
export interface MemoryBrokerOptions {
  /**
   * `'key'`: the next message of a key is delivered when the one before was answered. `'none'`: all that there is, side
   * by side. Default `'key'`.
   */
  readonly order?: 'key' | 'none'
  /**
   * How many messages a group of subscribers may have before it, 1 to 1,000,000; one more is not taken. Default
   * 100,000.
   */
  readonly most?: number
  /** How long a message is delivered again that nobody acknowledges, counted from its publishing. Default `'1d'`. */
  readonly keep?: Duration
  /** Default {@link systemClock}. */
  readonly clock?: Clock
}

/** Ways to fail. What was set stays until it is set back; what is counted ends by itself. */
export interface BrokerFaults {
  /** Nobody reaches the broker: nothing is published, and subscriptions break. */
  isAway: boolean
  /** Of so many calls of `publish` the answer is lost: the broker has the messages, and nobody knows. */
  lostAnswers: number
  /** Of so many calls of `publish` the messages are lost on their way, and nobody knows. */
  lostMessages: number
  /** So many messages are delivered twice. */
  doubled: number
  /** Why a message is refused. Default: none is. */
  refuses: ((message: Message) => string | undefined) | undefined
  /** Breaks all open subscriptions: what was not answered comes again. */
  cut(): void
}

/** A broker in memory. */
export interface MemoryBroker {
  readonly manifest: BrokerManifest
  /** Where messages of a topic are published. */
  publisher(topic: string): Publisher
  /**
   * Where messages of a topic come from. Each group gets all of them, and those who subscribe to the same one share
   * them.
   *
   * @param group Default `'default'`.
   */
  source(topic: string, group?: string): Source
  /** What was published to a topic, the oldest first: the last of it, for tests. */
  published(topic: string): readonly Message[]
  /** How many messages a group has before it, those with subscribers included. */
  waiting(topic: string, group?: string): number
  /** Puts a text on a topic as it is, such as one that is no event. For tests. */
  putRaw(topic: string, text: string): void
  readonly faults: BrokerFaults
}

/**
 * A broker whose topics live in this process.
 *
 * @example
 * ```ts
 * import { memoryBroker } from 'reprise/brokers/memory'
 *
 * const broker = memoryBroker()
 * const orders = broker.publisher('orders')
 * console.log(orders.manifest.order, broker.published('orders').length)
 * ```
 * ```text
 * key 0
 * ```
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): MemoryBroker {
  demandKnown(options, ['order', 'most', 'keep', 'clock'], 'options')
  return new Broker(options)
}

const mostBytes = 1_048_576

class Broker implements MemoryBroker {
  readonly manifest: BrokerManifest
  readonly faults: BrokerFaults
  readonly #rules: TopicRules
  readonly #topics = new Map<string, Topic>()
  readonly #open = new Set<MemorySubscription>()

  constructor({ order = 'key', most = 100_000, keep = '1d', clock = systemClock }: MemoryBrokerOptions) {
    if (order !== 'key' && order !== 'none') throw invalid('order', "order is 'key' or 'none'.")
    demandWhole(most, 1, 1_000_000, (why) => invalid('most', `The option most is not valid. ${why}`))
    const keepMs = durationMs(keep, { minMs: 1, option: 'keep' })
    this.#rules = { clock, order, most, keepMs }
    this.manifest = Object.freeze({
      broker: 'memory',
      order,
      confirm: 'memory',
      delay: true,
      deliveryCount: 'exact',
      dedupeMs: 0,
      redeliveryMs: keepMs,
      because: {
        confirm: 'Everything is in the memory of the process.',
        dedupeMs: 'Every message is taken, also one that came before.',
        ...(order === 'none' && { order: 'Subscribers take messages side by side.' }),
      },
    })
    this.faults = new Faults(() => this.#cut())
  }

  publisher(topic: string): Publisher {
    const to = this.#topic(topic)
    return { manifest: this.manifest, publish: async (messages, limits) => this.#publish(to, messages, limits) }
  }

  source(topic: string, group: string = 'default'): Source {
    const from = this.#topic(topic).group(group)
    return { manifest: this.manifest, open: async (receive, limits) => this.#subscribe(from, receive, limits) }
  }

  published(topic: string): readonly Message[] {
    return this.#topic(topic).texts.map(readEvent).filter(isReadable)
  }

  waiting(topic: string, group: string = 'default'): number {
    return this.#topic(topic).group(group).size
  }

  putRaw(topic: string, text: string): void {
    const to = this.#topic(topic)
    to.publish(text, text)
    to.deliver()
  }

  #topic(name: string): Topic {
    if (typeof name !== 'string' || name === '') throw invalid('topic', 'A topic needs a name.')
    const topic = this.#topics.get(name) ?? new Topic(this.#rules)
    this.#topics.set(name, topic)
    return topic
  }

  #publish(topic: Topic, messages: readonly Message[], { deadline, signal }: PublishLimits): readonly Published[] {
    const isLate = remainingMs(deadline, this.#rules.clock) === 0
    if (this.faults.isAway || isLate || signal?.aborted) {
      const error = isLate ? new RepriseError('DEADLINE_EXCEEDED', 'There is no time left to publish.') : away()
      return messages.map(() => ({ is: 'unsent', error }))
    }
    if (this.faults.lostMessages > 0) {
      this.faults.lostMessages -= 1
      return messages.map(() => ({ is: 'unknown', error: away() }))
    }
    const held = new Set<string>()
    const answers = messages.map((message): Published => {
      if (held.has(message.key)) return { is: 'unsent', error: behind() }
      const answer = this.#take(topic, message)
      if (answer.is !== 'confirmed' && this.manifest.order !== 'none') held.add(message.key)
      return answer
    })
    topic.deliver()
    if (this.faults.lostAnswers === 0) return answers
    this.faults.lostAnswers -= 1
    return messages.map(() => ({ is: 'unknown', error: away() }))
  }

  #take(topic: Topic, message: Message): Published {
    let text: string
    try {
      text = eventText(message)
    } catch {
      return { is: 'refused', code: 'MESSAGE_INVALID', reason: 'Its data cannot be written as JSON.' }
    }
    if (text.length > mostBytes) {
      return { is: 'refused', code: 'MESSAGE_TOO_LARGE', reason: `It has more than ${mostBytes} characters.` }
    }
    const reason = this.faults.refuses?.(message)
    if (reason !== undefined) return { is: 'refused', code: 'MESSAGE_REFUSED', reason }
    try {
      topic.publish(text, message.key)
      if (this.faults.doubled > 0) {
        this.faults.doubled -= 1
        topic.publish(text, message.key)
      }
    } catch (error) {
      return { is: 'unsent', error }
    }
    return { is: 'confirmed' }
  }

  #subscribe(
    group: Group,
    receive: ConstructorParameters<typeof MemorySubscription>[1],
    limits: ConstructorParameters<typeof MemorySubscription>[2],
  ): MemorySubscription {
    if (this.faults.isAway) throw away()
    limits.signal?.throwIfAborted()
    const subscription = new MemorySubscription(group, receive, limits)
    this.#open.add(subscription)
    const over = (): boolean => this.#open.delete(subscription)
    subscription.ended.then(over, over)
    group.join(subscription)
    return subscription
  }

  #cut(): void {
    for (const subscription of [...this.#open]) subscription.close(away())
  }
}

class Faults implements BrokerFaults {
  lostAnswers = 0
  lostMessages = 0
  doubled = 0
  refuses: BrokerFaults['refuses']
  readonly cut: () => void
  #isAway = false

  constructor(cut: () => void) {
    this.cut = cut
  }

  get isAway(): boolean {
    return this.#isAway
  }

  set isAway(away: boolean) {
    this.#isAway = away
    if (away) this.cut()
  }
}

function away(): RepriseError {
  return new RepriseError('BROKER_AWAY', 'The broker does not answer.')
}

function behind(): RepriseError {
  return new RepriseError('BROKER_AWAY', 'A message of the same key that comes before it was not taken.')
}

function invalid(option: string, message: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', message, { details: { option } })
}
