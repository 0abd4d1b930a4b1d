// A source that delivers what a test hands it, and delivers again what was not acknowledged when its subscription is
// dropped, as a broker does when a process dies.

import type { BrokerManifest, Delivery, Message, Source, Subscription } from '../../../src/messaging/index.js'

const scriptedManifest: BrokerManifest = {
  broker: 'scripted',
  order: 'key',
  confirm: 'memory',
  delay: false,
  deliveryCount: 'exact',
  dedupeMs: 0,
  redeliveryMs: 3_600_000,
  because: {},
}

interface Queued {
  readonly content: Delivery['content']
  count: number
}

/** What became of deliveries, in order. */
export interface Answered {
  readonly id: string
  readonly with: 'ack' | 'again' | 'refuse'
}

export class ScriptedSource implements Source {
  readonly manifest: BrokerManifest
  readonly answered: Answered[] = []
  readonly events: string[] = []
  readonly #queue: Queued[] = []
  readonly #out = new Set<Queued>()
  #receive: ((delivery: Delivery) => Promise<void>) | undefined
  #most = 0
  #isPaused = false
  #settled: (() => void) | undefined

  constructor(manifest: Partial<BrokerManifest> = {}) {
    this.manifest = { ...scriptedManifest, ...manifest }
  }

  get waiting(): number {
    return this.#queue.length + this.#out.size
  }

  send(...contents: readonly Delivery['content'][]): void {
    for (const content of contents) this.#queue.push({ content, count: 0 })
    this.#deliver()
  }

  /** The process died: what it had comes again, in its old place. */
  drop(): void {
    this.#receive = undefined
    this.#queue.unshift(...this.#out)
    this.#out.clear()
  }

  async open(
    receive: (delivery: Delivery) => Promise<void>,
    { inFlight }: { inFlight: number },
  ): Promise<Subscription> {
    this.#receive = receive
    this.#most = inFlight
    this.#isPaused = false
    queueMicrotask(() => this.#deliver())
    return {
      pause: () => {
        this.events.push('pause')
        this.#isPaused = true
      },
      resume: () => {
        this.events.push('resume')
        this.#isPaused = false
        this.#deliver()
      },
      drain: async () => {
        this.#isPaused = true
        if (this.#out.size > 0) await new Promise<void>((resolve) => (this.#settled = resolve))
        if (this.#receive === receive) this.#receive = undefined
      },
      ended: new Promise(() => {}),
    }
  }

  #deliver(): void {
    const receive = this.#receive
    while (receive !== undefined && !this.#isPaused && this.#out.size < this.#most) {
      const next = this.#queue.shift()
      if (next === undefined) return
      next.count += 1
      this.#out.add(next)
      void receive(this.#delivery(next))
    }
  }

  #delivery(queued: Queued): Delivery {
    const answer = async (how: Answered['with']): Promise<void> => {
      if (!this.#out.delete(queued)) throw new Error('The delivery is not out.')
      this.answered.push({ id: idOf(queued.content), with: how })
      if (how === 'again') this.#queue.push(queued)
      if (this.#out.size === 0) this.#settled?.()
      this.#deliver()
    }
    const { deliveryCount } = this.manifest
    const count =
      deliveryCount === 'none' ? undefined : deliveryCount === 'exact' ? queued.count : Math.min(2, queued.count)
    return {
      content: queued.content,
      count,
      ack: () => answer('ack'),
      again: () => answer('again'),
      refuse: () => answer('refuse'),
      extend: async () => {},
    }
  }
}

function idOf(content: Delivery['content']): string {
  return 'unreadable' in content ? 'unreadable' : content.id
}

/** A message as a broker delivers it. */
export function messageOf(id: string, key: string, given: Partial<Message> = {}): Message {
  return {
    source: '/shop',
    id,
    type: 'order.placed',
    subject: key,
    key,
    place: undefined,
    version: undefined,
    atMs: 1_735_689_600_000,
    intent: undefined,
    traceparent: undefined,
    schema: undefined,
    data: { of: id },
    ...given,
  }
}
