// The way from the relay to the service: the channel between a process and the one that started it. A message is
// confirmed when the consumer has committed its effect, so that nothing is lost with the memory of the service.

import { remainingMs } from 'reprise/kernel'
import {
  type BrokerManifest,
  type Delivery,
  eventText,
  isReadable,
  type Message,
  type Published,
  type Publisher,
  type PublishLimits,
  readEvent,
  type Source,
  type SourceLimits,
  type Subscription,
} from 'reprise/messaging'
import { Receiver, type Taken } from '../../wire/receiver.js'

const manifest: BrokerManifest = {
  broker: 'parent process',
  order: 'key',
  confirm: 'disk',
  delay: false,
  deliveryCount: 'none',
  dedupeMs: 0,
  redeliveryMs: undefined,
  because: {
    delay: 'The relay decides when it comes again.',
    deliveryCount: 'The channel does not count.',
    dedupeMs: 'The channel passes on what it is given.',
  },
}

/** What the relay says: the events of one call, as JSON of CloudEvents. */
export interface Publishing {
  readonly publish: number
  readonly events: readonly string[]
}

/** What the service says about such a call. */
export interface Answering {
  readonly published: number
  readonly taken: readonly Taken[]
  /** A drill: the relay is to be killed before it tells the store. */
  readonly kill: boolean
}

/** Publishes to the process that started this one. */
export class ParentPublisher implements Publisher {
  readonly manifest = manifest
  readonly #waiting = new Map<number, (answer: Answering | undefined) => void>()
  readonly #killed: () => void
  #calls = 0

  /** @param killed Is called when this process is to be killed, before `publish` answers. */
  constructor(killed: () => void) {
    this.#killed = killed
    process.on('message', (answer: Answering) => this.#waiting.get(answer.published)?.(answer))
    process.on('disconnect', () => {
      for (const settle of this.#waiting.values()) settle(undefined)
    })
  }

  async publish(messages: readonly Message[], { deadline }: PublishLimits): Promise<readonly Published[]> {
    if (!process.connected) return messages.map(() => ({ is: 'unsent', error: gone() }))
    this.#calls += 1
    const answer = await this.#asked({ publish: this.#calls, events: messages.map(eventText) }, remainingMs(deadline))
    if (answer?.kill === true) this.#killed()
    return messages.map((_, place) => publishedOf(answer?.taken[place]))
  }

  #asked(call: Publishing, waitMs: number): Promise<Answering | undefined> {
    return new Promise((resolve) => {
      const settle = (answer: Answering | undefined): void => {
        clearTimeout(late)
        this.#waiting.delete(call.publish)
        resolve(answer)
      }
      const late = setTimeout(settle, waitMs, undefined)
      this.#waiting.set(call.publish, settle)
      process.send?.(call, undefined, undefined, (error) => {
        if (error !== null) settle(undefined)
      })
    })
  }
}

function publishedOf(taken: Taken | undefined): Published {
  if (taken === undefined) return { is: 'unknown', error: gone() }
  if (taken === 'unsent') return { is: 'unsent', error: gone() }
  return taken === 'confirmed' ? { is: taken } : { is: taken, code: 'UNREADABLE', reason: 'It is no event.' }
}

function gone(): Error {
  return new Error('The service did not take it.')
}

/** What a drill does to events on their way, and who is told of them. */
export interface Hooks {
  /** How often an event is delivered. */
  times(message: Message): number
  /** Is told of each delivery, before it. */
  delivered(message: Message): void
}

/** Where events of the relay arrive, in the service. */
export class RelaySource implements Source {
  readonly manifest = manifest
  readonly #hooks: Hooks
  #receiver: Receiver | undefined

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  async open(receive: (delivery: Delivery) => Promise<void>, { inFlight }: SourceLimits): Promise<Subscription> {
    this.#receiver = new Receiver(receive, inFlight)
    return this.#receiver
  }

  /** Takes events: different keys side by side, of a key one after the other, and none behind one that was not taken. */
  async take(events: readonly string[]): Promise<readonly Taken[]> {
    const lanes = new Map<string, Promise<Taken>>()
    return Promise.all(
      events.map((text) => {
        const message = readEvent(text)
        if (!isReadable(message)) return 'refused'
        const before = lanes.get(message.key) ?? Promise.resolve('confirmed')
        const taken = before.then((last) => (last === 'confirmed' ? this.#deliver(message) : 'unsent'))
        lanes.set(message.key, taken)
        return taken
      }),
    )
  }

  async #deliver(message: Message): Promise<Taken> {
    const times = this.#hooks.times(message)
    for (let delivery = 0; delivery < times; delivery += 1) {
      // One that nobody is ready for comes again.
      if (this.#receiver?.isReady !== true) return 'unsent'
      this.#hooks.delivered(message)
      const taken = await this.#receiver.take(message)
      if (taken !== 'confirmed') return taken
    }
    return 'confirmed'
  }
}
