// A subscription with no broker in between: whoever brings a message waits until the consumer has said what becomes of
// it, and passes that on.

import type { Delivery, Subscription } from 'reprise/messaging'

/** What became of a message: its effect is committed, it is to come again, or it cannot be read. */
export type Taken = 'confirmed' | 'unsent' | 'refused'

/** The consumer's end of the way. */
export class Receiver implements Subscription {
  readonly ended: Promise<void>
  readonly #receive: (delivery: Delivery) => Promise<void>
  readonly #inFlight: number
  #held = 0
  #state: 'open' | 'paused' | 'over' = 'open'
  #end: () => void = () => undefined

  constructor(receive: (delivery: Delivery) => Promise<void>, inFlight: number) {
    this.#receive = receive
    this.#inFlight = inFlight
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Whether one more can be taken now. */
  get isReady(): boolean {
    return this.#state === 'open' && this.#held < this.#inFlight
  }

  /** Hands it to the consumer, and waits for its word. */
  take(content: Delivery['content']): Promise<Taken> {
    this.#held += 1
    return new Promise((resolve) => {
      const answer = async (taken: Taken): Promise<void> => {
        this.#held -= 1
        resolve(taken)
        if (this.#state === 'over' && this.#held === 0) this.#end()
      }
      void this.#receive({
        content,
        count: undefined,
        ack: () => answer('confirmed'),
        again: () => answer('unsent'),
        refuse: () => answer('refused'),
        extend: async () => undefined,
      })
    })
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused'
  }

  resume(): void {
    if (this.#state === 'paused') this.#state = 'open'
  }

  drain(): Promise<void> {
    this.#state = 'over'
    if (this.#held === 0) this.#end()
    return this.ended
  }
}
