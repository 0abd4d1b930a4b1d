// Sequences of a domain, as their users open and accept: marker and effect in the caller's own transaction.

import { TransactionHandle } from '../atomicity/index.js'
import { parseJson, printJson } from '../idempotency/index.js'
import {
  type Content,
  fingerprint,
  isProducerName,
  type Pepper,
  type SequenceNumber,
  sameContent,
  sequenceNumberOf,
} from '../identity/index.js'
import {
  type Duration,
  defined,
  demandKnown,
  demandWhole,
  durationMs,
  isStoreName,
  RepriseError,
} from '../kernel/index.js'
import { sequenceRefused } from '../telemetry/index.js'
import { ruleOnNumber, type SequenceRuling } from './rule.js'
import type { SequencePlace, SequenceStore } from './store.js'

/** A number that arrived. */
export interface Arrived extends SequenceNumber {
  /**
   * What is asked for under the number: a repeat of the last number with other content is refused with
   * SEQUENCE_MISMATCH. Default: not compared.
   */
  readonly content?: Content
}

/** What became of a number. */
export type Accepted<Result> =
  | { readonly result: 'new'; readonly value: Result }
  | { readonly result: 'duplicate'; readonly kept: true; readonly value: Result }
  /** It was carried out before, and its result is not kept: it is not the last number, or was larger than is kept. */
  | { readonly result: 'duplicate'; readonly kept: false; readonly value?: undefined }

/** Which producers are forgotten. */
export interface ForgetOptions {
  /** Producers of which nothing was opened or accepted for longer than this, by the store's clock. At least 1 ms. */
  readonly idle: Duration
  /** How many are forgotten in one transaction, 1 to 10,000. Default 500. */
  readonly batch?: number
  /** Ends it after the transaction under way: the promise is fulfilled with what was forgotten. Default: none. */
  readonly signal?: AbortSignal
}

/** Numbered intents of producers: each is carried out once and in order, and epochs that are over are refused. */
export interface Sequence<Handle> {
  readonly name: string
  /**
   * Opens the next epoch of a producer, in a transaction of its own. From its commit on, numbers of the epoch before
   * are refused with SEQUENCE_FENCED. Where the answer is lost, open once more: an epoch that nobody heard of is
   * fenced by the next.
   *
   * @param producer 1 to 255 visible ASCII characters.
   */
  open(producer: string): Promise<number>
  /**
   * Accepts a number in the caller's transaction, so that it commits together with its effect. The next number is new:
   * `run` is called, and what it returns is kept for repeats, as JSON of up to 256 KiB. A number that was accepted
   * before is a duplicate; the last one comes with the result that was kept.
   *
   * Refuses a number of another epoch than the open one with SEQUENCE_FENCED, one beyond the next with SEQUENCE_GAP,
   * and the last one with other content with SEQUENCE_MISMATCH. Without `run` the caller acts on `result` itself, and
   * no result is kept.
   *
   * @param tx The handle of a transaction of this domain; that of another one is refused with ARGUMENT_INVALID.
   *
   * @example
   * ```ts
   * import { memory } from 'reprise/stores/memory'
   *
   * const db = memory({ name: 'shop' })
   * const orders = db.sequence('orders')
   * const epoch = await orders.open('till-1')
   * const at = { producer: 'till-1', epoch, number: 1 }
   * const place = () => db.transact((tx) => orders.accept(tx, at, () => 'placed'))
   * console.log((await place()).result, (await place()).result)
   * ```
   * ```text
   * new duplicate
   * ```
   */
  accept(tx: Handle, at: Arrived): Promise<Accepted<undefined>>
  accept<Result>(tx: Handle, at: Arrived, run: () => Result | PromiseLike<Result>): Promise<Accepted<Result>>
  /**
   * Forgets idle producers, in small transactions; how many it were. One that comes back has to open an epoch first,
   * which is higher than all before: until then its numbers are refused with SEQUENCE_FENCED.
   */
  purge(options: ForgetOptions): Promise<number>
}

/** The sequences of a domain. */
export interface Sequences<Handle> {
  /** A sequence, by its name: 1 to 255 characters, none of them a control character. Asks nothing of the store. */
  sequence(name: string): Sequence<Handle>
}

/** Runs a transaction of the domain. */
export type SequenceTransact<Handle> = <Result>(body: (tx: Handle) => Promise<Result>) => Promise<Result>

/**
 * The sequences of a store, for its domain.
 *
 * @param engine Of the domain: `accept` takes handles of its transactions only.
 * @param pepper Under which fingerprints are stored; undefined: none.
 */
export function sequencesOf<Handle>(
  engine: { readonly name: string },
  store: SequenceStore<Handle>,
  transact: SequenceTransact<Handle>,
  pepper: Pepper | undefined,
): Sequences<Handle> {
  return {
    sequence: (name) => {
      if (!isStoreName(name, 255)) {
        const message = 'A sequence has a name of 1 to 255 characters, none of them a control character.'
        throw new RepriseError('ARGUMENT_INVALID', message)
      }
      return new StoreSequence(name, { engine, store, transact, pepper })
    },
  }
}

const largestBytes = 262_144
// A number may become the next one between two statements; more often than this in one transaction it does not.
const mostRounds = 4

interface SequenceParts<Handle> {
  readonly engine: { readonly name: string }
  readonly store: SequenceStore<Handle>
  readonly transact: SequenceTransact<Handle>
  readonly pepper: Pepper | undefined
}

class StoreSequence<Handle> implements Sequence<Handle> {
  readonly name: string
  readonly #engine: { readonly name: string }
  readonly #store: SequenceStore<Handle>
  readonly #transact: SequenceTransact<Handle>
  readonly #pepper: Pepper | undefined

  constructor(name: string, { engine, store, transact, pepper }: SequenceParts<Handle>) {
    this.name = name
    this.#engine = engine
    this.#store = store
    this.#transact = transact
    this.#pepper = pepper
  }

  async open(producer: string): Promise<number> {
    if (!isProducerName(producer)) {
      throw new RepriseError('ARGUMENT_INVALID', 'A producer has a name of 1 to 255 visible ASCII characters.')
    }
    return this.#transact((tx) => this.#store.open(tx, { sequence: this.name, producer }))
  }

  async accept<Result>(
    tx: Handle,
    given: Arrived,
    run?: () => Result | PromiseLike<Result>,
  ): Promise<Accepted<Result>> {
    if (!TransactionHandle.isOf(this.#engine, tx)) throw notOurs(this.#engine.name)
    demandKnown(given, ['producer', 'epoch', 'number', 'content'], 'at')
    const { content } = given
    const at = { ...sequenceNumberOf(given), sequence: this.name }
    const hidden = <Print extends string>(print: Print): Print => this.#pepper?.hide(print) ?? print
    const mark = { fingerprint: content === undefined ? undefined : hidden(fingerprint(content)), value: undefined }
    // What an earlier pepper made is brought forward first.
    const isSame = (stored: string): boolean =>
      content === undefined || sameContent(hidden(stored), content, undefined, this.#pepper)
    for (let round = 1; round <= mostRounds; round += 1) {
      if (await this.#store.advance(tx, at, mark)) {
        return { result: 'new', value: (run === undefined ? undefined : await this.#carryOut(tx, at, run)) as Result }
      }
      const row = await this.#store.read(tx, at)
      const ruling = ruleOnNumber(row, at, isSame)
      if (ruling.is === 'duplicate') return duplicate(ruling.isLast ? row?.value : undefined)
      if (ruling.is !== 'new') throw this.#refusal(ruling, at)
    }
    throw new RepriseError(
      'ROW_UNSETTLED',
      `The row of the producer changed ${mostRounds} times while it was looked at.`,
      {
        details: { rounds: mostRounds },
      },
    )
  }

  #refusal(ruling: Refused, at: SequencePlace): RepriseError {
    if (sequenceRefused.hasSubscribers) {
      const { is: because, ...known } = ruling
      const { sequence, epoch, number } = at
      const domain = this.#engine.name
      sequenceRefused.publish({ domain, sequence, epoch, number, because, ...defined(known) })
    }
    return refusal(ruling, at)
  }

  // The number is written before the effect, so that an error that the body swallows cannot commit a part of the effect
  // without it.
  async #carryOut<Result>(tx: Handle, at: SequencePlace, run: () => Result | PromiseLike<Result>): Promise<Result> {
    const value = await run()
    const text = printJson(value, largestBytes)
    // Too large to be kept.
    if (text === undefined) return value
    await this.#store.keep(tx, at, text)
    return parseJson(text) as Result
  }

  async purge(options: ForgetOptions): Promise<number> {
    demandKnown(options, ['idle', 'batch', 'signal'], 'options')
    const idleMs = durationMs(options.idle, { minMs: 1, option: 'idle' })
    const batch = demandWhole(options.batch ?? 500, 1, 10_000, (why) => {
      return new RepriseError('ARGUMENT_INVALID', `batch: ${why}`, { details: { path: 'batch' } })
    })
    let purged = 0
    while (options.signal?.aborted !== true) {
      const forgotten = await this.#transact((tx) => this.#store.forget(tx, this.name, idleMs, batch))
      purged += forgotten
      if (forgotten < batch) break
    }
    return purged
  }
}

function duplicate<Result>(text: string | undefined): Accepted<Result> {
  if (text === undefined) return { result: 'duplicate', kept: false }
  return { result: 'duplicate', kept: true, value: parseJson(text) as Result }
}

// A number that is written to another store than its effect is protects nothing.
function notOurs(domain: string): RepriseError {
  const message = 'accept wants the handle of a transaction of its own domain: number and effect commit together there.'
  return new RepriseError('ARGUMENT_INVALID', message, { details: { domain } })
}

type Refused = Exclude<SequenceRuling, { readonly is: 'new' | 'duplicate' }>

function refusal(ruling: Refused, { epoch, number }: SequenceNumber): RepriseError {
  const details = { epoch, number }
  if (ruling.is === 'mismatch') {
    return new RepriseError('SEQUENCE_MISMATCH', `Number ${number} was used for other content before.`, { details })
  }
  if (ruling.is === 'gap') {
    const { next } = ruling
    const message = `Number ${number} came before number ${next}.`
    return new RepriseError('SEQUENCE_GAP', message, { details: { ...details, next } })
  }
  const { open } = ruling
  if (open !== undefined) {
    const message = `Epoch ${epoch} is not the one that is open, which is ${open}.`
    return new RepriseError('SEQUENCE_FENCED', message, { details: { ...details, open } })
  }
  const message = 'The producer has no epoch open here: it never had one, or was forgotten. Open the next.'
  return new RepriseError('SEQUENCE_FENCED', message, { details })
}
