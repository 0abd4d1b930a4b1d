// The upkeep that a service does by itself: sweeps of what it knows to recover, and purges of what is over, for as long
// as it runs. Sweeps share the records between all processes; of purges one process has the turn.

import {
  leasedOperationsOf,
  type PurgeCounts,
  type PurgeOptions,
  paused,
  purge,
  type RecordStore,
  type SweepCounts,
  sweep,
  takeTurn,
  timeOfRecords,
} from '../../idempotency/index.js'
import {
  type Clock,
  type Duration,
  defined,
  demandKnown,
  demandSignal,
  durationMs,
  isRepriseError,
  pick,
  type Random,
  RepriseError,
  warnOnce,
} from '../../kernel/index.js'
import type { Sequences } from '../../sequence/index.js'
import { type OperationUpkeepEvent, operationUpkeep } from '../../telemetry/index.js'
import type { LetterStore } from '../letters.js'
import { type MessagePurgeCounts, type MessagePurgeOptions, purgeMessages } from './purge.js'

/** How a service keeps up its store. */
export interface UpkeepOptions
  extends Pick<PurgeOptions, 'unknownAfter' | 'auditAfter' | 'markersAfter' | 'batch' | 'pause'>,
    Pick<MessagePurgeOptions, 'sentAfter' | 'processedAfter' | 'headsAfter' | 'lettersAfter'> {
  /** Ends it after the batch under way: the promise is fulfilled with what was done. */
  readonly signal: AbortSignal
  /**
   * The time between two sweeps of the leased operations of this process, give or take a quarter, at least 10 ms.
   * Default `'30s'`.
   */
  readonly sweepEvery?: Duration
  /** The time between two purges, whichever process has the turn; at least 10 ms. Default `'10m'`. */
  readonly purgeEvery?: Duration
  /** Sequences whose producers are forgotten, each with the `idle` of its purge. Default: none. */
  readonly sequences?: Readonly<Record<string, Duration>>
  /**
   * Hears of each pass that failed, and which part of it; the pass comes again. Default: a warning of Node
   * (`process.emitWarning`), once for the process.
   */
  readonly onError?: (error: unknown, part: OperationUpkeepEvent['part']) => void
  /** Time. Default the domain's. */
  readonly clock?: Clock
  /** Chance. Default the domain's. */
  readonly random?: Random
}

/** What upkeep has done in this process. */
export interface UpkeepReport {
  /** Records that sweeps took, and what became of them. */
  readonly swept: SweepCounts
  /** How often this process had the turn to purge. */
  readonly turns: number
  /** Records that were forgotten. */
  readonly records: PurgeCounts
  /** Messages that were forgotten. */
  readonly messages: MessagePurgeCounts
  /** Producers of sequences that were forgotten. */
  readonly producers: number
  /** Passes that failed. */
  readonly failures: number
}

/** What upkeep needs of a domain. */
export interface UpkeepDomain extends RecordStore, Pick<Sequences<never>, 'sequence'> {
  /** Undefined: the messages of the store are purged elsewhere. */
  readonly messages?: LetterStore | undefined
}

/** The upkeep of a domain. */
export interface Upkeep {
  /**
   * Keeps up the store for as long as the service runs: sweeps the leased operations that are defined in this process,
   * and forgets records past their window, messages that every reader has done, and what else is asked for. Call it
   * once at start-up, in every process: sweeps share the records, of purges one process has the turn, and those that
   * die are not waited for. A pass that fails is told and comes again; it rejects for wrong options alone, before
   * anything is done. It is over when the signal is aborted or the store closed.
   *
   * @example
   * ```ts
   * import { memory } from 'reprise/stores/memory'
   *
   * const db = memory({ name: 'shop' })
   * const ending = new AbortController()
   * const upkeep = db.upkeep({ signal: ending.signal })
   * ending.abort() // when the service ends
   * console.log((await upkeep).failures)
   * ```
   * ```text
   * 0
   * ```
   */
  upkeep(options: UpkeepOptions): Promise<UpkeepReport>
}

const recordOptions = ['unknownAfter', 'auditAfter', 'markersAfter', 'batch', 'pause'] as const
const messageAges = ['sentAfter', 'processedAfter', 'headsAfter', 'lettersAfter'] as const
const optionNames = [
  ...['signal', 'sweepEvery', 'purgeEvery', 'sequences', 'onError', 'clock', 'random'],
  ...[...recordOptions, ...messageAges],
]
// The first purge comes soon after the start, but not in all processes of a deployment at once.
const longestStartMs = 10_000

/** The upkeep of a store, for its domain. */
export function upkeepOf(domain: UpkeepDomain): Upkeep {
  return { upkeep: async (options) => (await Keeper.of(domain, options)).run() }
}

type Part = OperationUpkeepEvent['part']
type Counts = Readonly<Record<string, number>>

class Keeper {
  readonly #domain: UpkeepDomain
  readonly #options: UpkeepOptions
  readonly #time: { readonly clock: Clock; readonly random: Random }
  readonly #sweepMs: number
  readonly #purgeMs: number
  readonly #done = new Map<Part, Counts>()
  #failures = 0
  #isClosed = false

  constructor(domain: UpkeepDomain, options: UpkeepOptions) {
    this.#domain = domain
    this.#options = options
    const { clock, random } = timeOfRecords(domain.records)
    this.#time = { clock: options.clock ?? clock, random: options.random ?? random }
    this.#sweepMs = durationMs(options.sweepEvery ?? '30s', { minMs: 10, option: 'sweepEvery' })
    this.#purgeMs = durationMs(options.purgeEvery ?? '10m', { minMs: 10, option: 'purgeEvery' })
  }

  /** Checks all options, once and before anything is done. */
  static async of(domain: UpkeepDomain, options: UpkeepOptions): Promise<Keeper> {
    demandKnown(options, optionNames, 'options of upkeep')
    demandSignal(options.signal)
    const keeper = new Keeper(domain, options)
    for (const [name, idle] of Object.entries(options.sequences ?? {})) {
      domain.sequence(name)
      durationMs(idle, { minMs: 1, option: `sequences.${name}` })
    }
    const unused = messageAges.find((name) => options[name] !== undefined)
    if (domain.messages === undefined && unused !== undefined) {
      const message = `The store does not purge messages: ${unused} belongs to the store of the same database that does.`
      throw new RepriseError('CAPABILITY_UNSUPPORTED', message, { details: { option: unused } })
    }
    // Passes that are over before they begin ask nothing of the store, and refuse what they would refuse.
    await keeper.#records(AbortSignal.abort())
    await keeper.#messages(AbortSignal.abort())
    return keeper
  }

  async run(): Promise<UpkeepReport> {
    const { random } = this.#time
    const startMs = (everyMs: number): number => Math.min(everyMs, longestStartMs) * random.next()
    await Promise.all([
      this.#repeat(startMs(this.#sweepMs), async () => {
        await this.#told('sweep', (signal) => this.#sweep(signal))
        return this.#sweepMs * (0.75 + random.next() / 2)
      }),
      this.#repeat(startMs(this.#purgeMs), () => this.#purge()),
    ])
    const counts = <Kind>(part: Part, nothing: Kind): Kind => ({ ...nothing, ...this.#done.get(part) })
    return {
      swept: counts('sweep', nothingSwept),
      turns: this.#done.get('turn')?.['turns'] ?? 0,
      records: counts('records', { finished: 0, unknown: 0, audit: 0, markers: 0, unconfirmed: 0 }),
      messages: counts('messages', { messages: 0, processed: 0, heads: 0, letters: 0, unconfirmed: 0 }),
      producers: this.#done.get('sequences')?.['producers'] ?? 0,
      failures: this.#failures,
    }
  }

  // Passes one after another: `pass` says how long to rest after it, in ms.
  async #repeat(startMs: number, pass: () => Promise<number>): Promise<void> {
    const { signal } = this.#options
    let restMs = startMs
    while (!this.#isClosed && (await paused(restMs, this.#time.clock, signal))) restMs = await pass()
  }

  async #purge(): Promise<number> {
    let nextInMs = this.#purgeMs
    let mine = false
    await this.#told('turn', async () => {
      const turn = await takeTurn(this.#domain, this.#time, 'purge', this.#purgeMs)
      nextInMs = turn.nextInMs
      mine = turn.mine
      return mine ? { turns: 1 } : {}
    })
    if (mine) {
      const began = this.#time.clock.monotonicMs()
      await this.#told('records', (signal, progress) => this.#records(signal, progress))
      await this.#told('messages', (signal, progress) => this.#messages(signal, progress))
      await this.#told('sequences', (signal) => this.#sequences(signal))
      nextInMs = Math.max(0, nextInMs - (this.#time.clock.monotonicMs() - began))
    }
    // A little later, and not at the same time as everybody else who waits for the next turn.
    return nextInMs + (this.#purgeMs / 10) * this.#time.random.next()
  }

  // Runs a part, adds what it did, and tells of its failure. Progress is what a part that fails has done until then.
  async #told(
    part: Part,
    work: (signal: AbortSignal, progress: (counts: Counts) => void) => Promise<Counts>,
  ): Promise<void> {
    const { signal } = this.#options
    if (signal.aborted || this.#isClosed) return
    let counts: Counts = {}
    let failed: { readonly error: unknown } | undefined
    try {
      counts = await work(signal, (soFar) => {
        counts = soFar
      })
    } catch (error) {
      failed = { error }
    }
    this.#done.set(part, sum(this.#done.get(part) ?? {}, counts))
    if (isRepriseError(failed?.error, 'STORE_CLOSED')) {
      this.#isClosed = true
      return
    }
    if (operationUpkeep.hasSubscribers) operationUpkeep.publish({ domain: this.#domain.name, part, counts, ...failed })
    if (failed !== undefined) this.#complain(failed.error, part)
  }

  #complain(error: unknown, part: Part): void {
    this.#failures += 1
    const { onError } = this.#options
    if (onError === undefined) {
      const code = isRepriseError(error) ? error.code : 'an error'
      const message = `Upkeep of the domain ${this.#domain.name} failed (${part}: ${code}), and is tried again. Give onError to hear of each failure.`
      warnOnce('UPKEEP_FAILED', message)
      return
    }
    try {
      onError(error, part)
    } catch (cause) {
      warnOnce('UPKEEP_FAILED', `onError of upkeep threw (${cause instanceof Error ? cause.name : typeof cause}).`)
    }
  }

  async #sweep(signal: AbortSignal): Promise<Counts> {
    const operations = leasedOperationsOf(this.#domain.records)
    if (operations.length === 0) return {}
    return countsIn(await sweep({ store: this.#domain, operations, signal, ...this.#time }))
  }

  async #records(signal: AbortSignal, onProgress?: (counts: Counts) => void): Promise<Counts> {
    const options = { ...pick(this.#options, recordOptions), ...defined({ onProgress }) }
    return countsIn(await purge({ store: this.#domain, ...options, signal, ...this.#time }))
  }

  async #messages(signal: AbortSignal, onProgress?: (counts: Counts) => void): Promise<Counts> {
    const { messages } = this.#domain
    if (messages === undefined) return {}
    const options = { ...pick(this.#options, [...messageAges, 'batch', 'pause']), ...defined({ onProgress }) }
    return countsIn(await purgeMessages({ store: { ...this.#domain, messages }, ...options, signal, ...this.#time }))
  }

  async #sequences(signal: AbortSignal): Promise<Counts> {
    let producers = 0
    for (const [name, idle] of Object.entries(this.#options.sequences ?? {})) {
      producers += await this.#domain.sequence(name).purge({ idle, signal, ...pick(this.#options, ['batch']) })
    }
    return { producers }
  }
}

const nothingSwept: SweepCounts = {
  taken: 0,
  succeeded: 0,
  failed: 0,
  released: 0,
  unknown: 0,
  held: 0,
  waiting: 0,
  elsewhere: 0,
  error: 0,
}

// Whether a pass was interrupted is no count.
function countsIn(report: object): Counts {
  return Object.fromEntries(Object.entries(report).filter(([, count]) => typeof count === 'number'))
}

function sum(one: Counts, other: Counts): Counts {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]))
}
