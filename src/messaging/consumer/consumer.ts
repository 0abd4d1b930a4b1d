// A consumer: messages from a broker, or from the outbox itself, each taking effect once.

import type { TransactionControls } from '../../atomicity/index.js'
import {
  type Duration,
  demandKnown,
  demandSignal,
  detached,
  durationMs,
  inTime,
  RepriseError,
} from '../../kernel/index.js'
import { refuseInside } from '../../transaction/index.js'
import type { Subscription } from '../broker.js'
import { type ConsumeOptions, type ConsumerDomain, type ConsumerSettings, consumerSettings } from './options.js'
import { Deliveries } from './run/deliveries.js'
import { type ConsumerCounts, Handling } from './run/handling.js'
import { LaneReader } from './run/lane-reader.js'
import { pausedFor } from './run/pause.js'

/** Until when a consumer works. */
export interface RunConsumerOptions {
  /** Ends it: what is being handled is finished first, and nothing is acknowledged that is not committed. */
  readonly signal: AbortSignal
}

/** How a consumer works off what is there. */
export interface DrainConsumerOptions {
  /** Ends it early, as it ends `run`. Default: none. */
  readonly signal?: AbortSignal
  /** Of a source: how long nothing has to arrive until it counts as empty. Default `'250ms'`. */
  readonly quiet?: Duration
}

/** Takes messages, each once. */
export interface Consumer {
  readonly name: string
  /** For how long it is remembered that a message was handled, in ms: no purge is earlier. */
  readonly memoryMs: number
  /** What it did so far, in this process. */
  readonly counts: ConsumerCounts
  /**
   * Works until the signal is aborted, and gives the counts. Rejected where no pause would help: a missing migration, a
   * store that was closed.
   */
  run(options: RunConsumerOptions): Promise<ConsumerCounts>
  /**
   * Works off what is due now, for tests and for work that is done now and then. What rests until later stays; a pause
   * ends it, and a store that is away rejects it.
   */
  drain(options?: DrainConsumerOptions): Promise<ConsumerCounts>
}

/**
 * Takes messages from a broker, or from the outbox of the domain. The effect of a message, its emits, and the fact that
 * it is done are one commit; what a broker delivers again afterwards is recognised. Refuses options that cannot hold
 * with ARGUMENT_INVALID, which names the option.
 *
 * @example
 * ```ts
 * import { consume } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * const receipts = consume(db, {
 *   name: 'receipts',
 *   from: db,
 *   handle: async (_tx, message) => console.log(message.type, message.data.amount),
 * })
 * await db.transact((tx) => tx.emit({ type: 'order.placed', data: { amount: 5 } }))
 * console.log((await receipts.drain()).handled)
 * ```
 * ```text
 * order.placed 5
 * 1
 * ```
 */
export function consume<Handle extends TransactionControls>(
  db: ConsumerDomain<Handle>,
  options: ConsumeOptions<Handle>,
): Consumer {
  return runningConsumer(db, consumerSettings(db, options))
}

/** A consumer of settings that were checked. */
export function runningConsumer<Handle extends TransactionControls>(
  db: ConsumerDomain<Handle>,
  settings: ConsumerSettings<Handle>,
): Consumer {
  return new RunningConsumer(db, settings)
}

class RunningConsumer<Handle extends TransactionControls> implements Consumer {
  readonly name: string
  readonly memoryMs: number
  readonly #work: Handling<Handle>
  #isRunning = false

  constructor(db: ConsumerDomain<Handle>, settings: ConsumerSettings<Handle>) {
    this.name = settings.reader.name
    this.memoryMs = settings.memoryMs
    this.#work = new Handling(db, settings)
  }

  get counts(): ConsumerCounts {
    return { ...this.#work.counts }
  }

  async run(options: RunConsumerOptions): Promise<ConsumerCounts> {
    demandKnown(options, ['signal'], 'options')
    demandSignal(options.signal)
    return this.#working(options.signal, undefined)
  }

  async drain(options: DrainConsumerOptions = {}): Promise<ConsumerCounts> {
    demandKnown(options, ['signal', 'quiet'], 'options')
    const { signal = new AbortController().signal, quiet = '250ms' } = options
    demandSignal(signal)
    return this.#working(signal, durationMs(quiet, { minMs: 1, option: 'quiet' }))
  }

  /** @param quietMs Present: it ends when there is nothing to do. */
  async #working(signal: AbortSignal, quietMs: number | undefined): Promise<ConsumerCounts> {
    refuseInside()
    if (this.#isRunning) throw new RepriseError('ARGUMENT_INVALID', 'The consumer is at work already.')
    this.#isRunning = true
    const { source } = this.#work.settings
    const stop = new AbortController()
    const end = (): void => stop.abort()
    const forward = AbortSignal.any([signal, stop.signal])
    this.#work.stop = forward
    const unlisten = source === undefined ? this.#work.db.messages.onEmit(this.#work.lanesWake.wake) : undefined
    try {
      // Neither deadline nor retry of whoever starts the consumer belongs to its messages.
      await detached(() =>
        source === undefined
          ? new LaneReader(this.#work).run(quietMs !== undefined)
          : this.#fromSource(quietMs, forward, end),
      )
    } finally {
      unlisten?.()
      this.#isRunning = false
    }
    return this.counts
  }

  // The deliveries, and beside them the lanes of what waits in the inbox.
  async #fromSource(quietMs: number | undefined, stop: AbortSignal, end: () => void): Promise<void> {
    const lanes = new LaneReader(this.#work)
    const deliveries = new Deliveries(this.#work, lanes)
    if (quietMs !== undefined) {
      await this.#drained(lanes, deliveries, quietMs, stop, end)
      return
    }
    const reading = lanes.run(false).finally(end)
    const receiving = this.#subscribed(deliveries, stop).finally(end)
    await Promise.all([reading, receiving])
  }

  async #drained(
    lanes: LaneReader<Handle>,
    deliveries: Deliveries<Handle>,
    quietMs: number,
    stop: AbortSignal,
    end: () => void,
  ): Promise<void> {
    const { clock } = this.#work.settings
    await lanes.register()
    const before = this.#work.counts.pauses
    const subscription = await deliveries.open()
    try {
      // Until a whole span went by in which nothing was under way.
      for (let isQuiet = false; !isQuiet && !stop.aborted && this.#work.counts.pauses === before; ) {
        const seen = deliveries.seen
        await pausedFor(quietMs, clock, stop)
        isQuiet = deliveries.isIdle && deliveries.seen === seen
      }
      await lanes.run(true)
    } finally {
      end()
      await subscription?.drain()
      deliveries.over()
    }
  }

  // Holds a subscription until the consumer stops, and opens another one where it breaks.
  async #subscribed(deliveries: Deliveries<Handle>, stop: AbortSignal): Promise<void> {
    const { pause } = this.#work
    try {
      while (!stop.aborted) {
        await pause.over(stop)
        if (stop.aborted) return
        let subscription: Subscription | undefined
        try {
          subscription = await deliveries.open()
          if (await this.#heldOpen(subscription as Subscription, stop)) return
        } catch (error) {
          pause.begin('source', 0, error)
        } finally {
          deliveries.over()
        }
      }
    } finally {
      await deliveries.settled()
    }
  }

  // True: it has ended, because we asked for it or because its broker has no more.
  async #heldOpen(subscription: Subscription, stop: AbortSignal): Promise<boolean> {
    const unpause = this.#work.pause.watch(subscription)
    try {
      await inTime({ signal: stop }, subscription.ended).catch((error: unknown) => {
        if (!stop.aborted) throw error
      })
      await subscription.drain()
      return true
    } finally {
      unpause()
    }
  }
}
