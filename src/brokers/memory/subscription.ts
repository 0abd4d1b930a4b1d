// A subscription in memory: deliveries of a group, at most so many at a time that are not answered.

import { demandSignal, demandWhole, RepriseError, whenAborted } from '../../kernel/index.js'
import { type Delivery, isReadable, readEvent, type SourceLimits, type Subscription } from '../../messaging/index.js'
import type { Entry, Group, Subscriber } from './topic.js'

type Receive = (delivery: Delivery) => Promise<void>

/** One who takes deliveries of a group. */
export class MemorySubscription implements Subscription, Subscriber {
  readonly ended: Promise<void>
  readonly #group: Group
  readonly #receive: Receive
  readonly #inFlight: number
  readonly #held = new Set<Entry>()
  #state: 'open' | 'paused' | 'draining' | 'over' = 'open'
  #end: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined
  #unwatch: (() => void) | undefined

  constructor(group: Group, receive: Receive, { inFlight, signal }: SourceLimits) {
    demandWhole(inFlight, 1, 1_000_000, (why) => {
      const message = `The limit inFlight is not valid. ${why}`
      return new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'inFlight' } })
    })
    this.#group = group
    this.#receive = receive
    this.#inFlight = inFlight
    this.ended = new Promise((resolve, reject) => {
      this.#end = { resolve, reject }
    })
    // Whoever does not look at it is not to be told of it as a rejection that nobody handled.
    this.ended.catch(() => undefined)
    if (signal !== undefined) {
      demandSignal(signal)
      this.#unwatch = whenAborted(signal, () => this.close())
    }
  }

  get isReady(): boolean {
    return this.#state === 'open' && this.#held.size < this.#inFlight
  }

  take(entry: Entry): void {
    this.#held.add(entry)
    const read = readEvent(entry.text)
    const answer = async (then: () => void): Promise<void> => {
      if (this.#state === 'over') {
        throw new RepriseError('DELIVERY_LOST', 'The subscription has ended; the message comes again.')
      }
      // Only the first answer counts.
      if (!this.#held.delete(entry)) return
      then()
      if (this.#state === 'draining' && this.#held.size === 0) this.close()
    }
    void this.#receive({
      content: isReadable(read) ? read : { ...read, raw: entry.text },
      count: entry.count,
      ack: () => answer(() => this.#group.remove(entry)),
      again: (delayMs) => answer(() => this.#group.giveBack(entry, delayMs)),
      refuse: () => answer(() => this.#group.remove(entry)),
      // There is no limit in time.
      extend: async () => {},
    })
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused'
  }

  resume(): void {
    if (this.#state !== 'paused') return
    this.#state = 'open'
    this.#group.deliver()
  }

  drain(): Promise<void> {
    if (this.#state !== 'over') this.#state = 'draining'
    if (this.#held.size === 0) this.close()
    return this.ended.catch(() => undefined)
  }

  /** Ends it at once. What was not answered comes again, here or elsewhere. */
  close(error?: unknown): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#unwatch?.()
    this.#held.clear()
    this.#group.leave(this)
    if (error === undefined) this.#end?.resolve()
    else this.#end?.reject(error)
  }
}
