// A relay: publishes what transactions have emitted, in order per key, and says in the store how far it has come.

import { demandKnown, demandSignal, detached, RepriseError } from '../../kernel/index.js'
import { refuseInside } from '../../transaction/index.js'
import { type RelayDomain, type RelayOptions, type RelaySettings, relaySettings } from './options.js'
import { type RelayCounts, RelayRunner } from './runner.js'

/** Publishes what was emitted. */
export interface Relay {
  readonly name: string
  /** What it did so far, in this process. */
  readonly counts: RelayCounts
  /**
   * Works until the signal is aborted, and gives the counts. What is being published is finished first. Rejected where
   * no pause would help: a missing migration, a store that was closed.
   */
  run(options: { readonly signal: AbortSignal }): Promise<RelayCounts>
  /**
   * Publishes what is due now, for tests and for work that is done now and then. What rests until later stays; a broker
   * that is away ends it, and a store that is away rejects it.
   */
  drain(options?: { readonly signal?: AbortSignal }): Promise<RelayCounts>
}

/**
 * Publishes the messages of a domain. Each leaves at least once, under the id it was emitted with, and those of a key
 * in their order; one that the broker refuses for good is a dead letter and parks its key, and no other. Refuses
 * options that cannot hold with ARGUMENT_INVALID, which names the option.
 *
 * @example
 * ```ts
 * import { memoryBroker } from 'reprise/brokers/memory'
 * import { relay } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * const broker = memoryBroker()
 * const out = relay(db, { name: 'shop-events', to: broker.publisher('shop') })
 * console.log((await out.drain()).published)
 * ```
 * ```text
 * 0
 * ```
 */
export function relay(db: RelayDomain, options: RelayOptions): Relay {
  return new RunningRelay(db, relaySettings(db, options))
}

class RunningRelay implements Relay {
  readonly name: string
  readonly #db: RelayDomain
  readonly #runner: RelayRunner
  #isRunning = false

  constructor(db: RelayDomain, settings: RelaySettings) {
    this.name = settings.reader.name
    this.#db = db
    this.#runner = new RelayRunner(db, settings)
  }

  get counts(): RelayCounts {
    return { ...this.#runner.counts }
  }

  async run(options: { readonly signal: AbortSignal }): Promise<RelayCounts> {
    demandKnown(options, ['signal'], 'options')
    demandSignal(options.signal)
    return this.#working(options.signal, false)
  }

  async drain(options: { readonly signal?: AbortSignal } = {}): Promise<RelayCounts> {
    demandKnown(options, ['signal'], 'options')
    const { signal = new AbortController().signal } = options
    demandSignal(signal)
    return this.#working(signal, true)
  }

  async #working(signal: AbortSignal, drains: boolean): Promise<RelayCounts> {
    refuseInside()
    if (this.#isRunning) throw new RepriseError('ARGUMENT_INVALID', 'The relay is at work already.')
    this.#isRunning = true
    const unlisten = this.#db.messages.onEmit(this.#runner.wake)
    try {
      // Neither deadline nor retry of whoever starts the relay belongs to what it publishes.
      await detached(() => this.#runner.run(signal, drains))
    } finally {
      unlisten()
      this.#isRunning = false
    }
    return this.counts
  }
}
