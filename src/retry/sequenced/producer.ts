// A producer numbers its intents in order: one number an intent, the same in every attempt, and none before the one
// before it is settled.

import { isProducerName, isSequenceCount, type SequenceNumber, sequenceNumberOf } from '../../identity/index.js'
import { demandKnown, RepriseError } from '../../kernel/index.js'

/** Numbers intents in order. Made by {@link producer}. */
export interface Producer {
  /** Who sends. */
  readonly name: string
  /** The epoch that the receiver opened for it. */
  readonly epoch: number
  /** The last number that is known to have been accepted; 0: none yet. */
  readonly last: number
  /** The number that may have been accepted and may not; undefined: there is none. */
  readonly unsettled: number | undefined
}

/** How a producer is made. */
export interface ProducerOptions {
  /** Who sends: 1 to 255 visible ASCII characters. */
  readonly name: string
  /** What the receiver's `open(name)` gave. A new process opens a new one, as does who gives up an unsettled number. */
  readonly epoch: number
}

/** How the call for a number ended: accepted, provably not, or nobody knows. */
type NumberEnd = 'accepted' | 'unsent' | 'unknown'

/** What numbers the call of a guard. */
export interface Numbering {
  /** The number of the call that begins now. Refuses with SEQUENCE_UNSETTLED while another one is not settled. */
  begin(): SequenceNumber
  /** The call is over. */
  end(how: NumberEnd): void
}

/**
 * A producer whose epoch the receiver has opened. Give it to `sequenced`, once for each intent, and run these one after
 * the other.
 *
 * A number whose calls all provably had no effect is given to the next intent. One that may have been accepted has to
 * be settled first: run its guard again, until it succeeds. Else open another epoch, and make a producer of it: nothing
 * that is still on its way can be accepted then.
 *
 * @example
 * ```ts
 * import { producer, retryPolicy, sequenced } from 'reprise/retry'
 *
 * const till = producer({ name: 'till-1', epoch: 7 })
 * const policy = retryPolicy()
 * for (const order of ['tea', 'coffee']) {
 *   await policy.run(sequenced(till), async ({ sequence }) => console.log(order, sequence.epoch, sequence.number))
 * }
 * ```
 * ```text
 * tea 7 1
 * coffee 7 2
 * ```
 */
export function producer(options: ProducerOptions): Producer {
  demandKnown(options, ['name', 'epoch'], 'options')
  const { name, epoch } = options
  if (isProducerName(name) && isSequenceCount(epoch)) return new OrderedProducer(name, epoch)
  const message = 'A producer has a name of 1 to 255 visible ASCII characters, and an epoch from 1.'
  throw new RepriseError('ARGUMENT_INVALID', message)
}

/** Numbers the calls of one guard: by a producer, or always with the number that is given. */
export function numberingOf(given: Producer | SequenceNumber): Numbering {
  if (given instanceof OrderedProducer) return new Intent(given)
  const at = sequenceNumberOf(given as SequenceNumber)
  return { begin: () => at, end: () => undefined }
}

interface OpenNumber {
  readonly intent: Intent
  readonly number: number
  isUnderWay: boolean
  /** Whether a call that is over may have been accepted. What later calls prove is no proof about that one. */
  isDoubtful: boolean
}

class OrderedProducer implements Producer {
  readonly name: string
  readonly epoch: number
  last = 0
  #open: OpenNumber | undefined

  constructor(name: string, epoch: number) {
    this.name = name
    this.epoch = epoch
  }

  get unsettled(): number | undefined {
    return this.#open?.isDoubtful === true ? this.#open.number : undefined
  }

  begin(intent: Intent): number {
    const open = this.#open ?? { intent, number: this.last + 1, isUnderWay: false, isDoubtful: false }
    if (open.intent !== intent || open.isUnderWay) throw unsettled(open)
    open.isUnderWay = true
    this.#open = open
    return open.number
  }

  end(how: NumberEnd): void {
    const open = this.#open as OpenNumber
    open.isUnderWay = false
    open.isDoubtful ||= how === 'unknown'
    if (how === 'accepted') this.last = open.number
    if (how === 'accepted' || !open.isDoubtful) this.#open = undefined
  }
}

class Intent implements Numbering {
  readonly #producer: OrderedProducer
  #accepted: SequenceNumber | undefined
  #number = 0

  constructor(given: OrderedProducer) {
    this.#producer = given
  }

  // One that was accepted keeps its number: sent again, it is a duplicate.
  begin(): SequenceNumber {
    if (this.#accepted !== undefined) return this.#accepted
    this.#number = this.#producer.begin(this)
    return this.#at()
  }

  end(how: NumberEnd): void {
    if (this.#accepted !== undefined) return
    if (how === 'accepted') this.#accepted = this.#at()
    this.#producer.end(how)
  }

  #at(): SequenceNumber {
    return { producer: this.#producer.name, epoch: this.#producer.epoch, number: this.#number }
  }
}

function unsettled({ number, isUnderWay }: OpenNumber): RepriseError {
  const message = isUnderWay
    ? `Number ${number} is under way; the next one waits for its end.`
    : `Number ${number} may have been accepted: run its guard again, or open another epoch.`
  const details = { number, because: isUnderWay ? 'under-way' : 'unknown' }
  return new RepriseError('SEQUENCE_UNSETTLED', message, { details })
}
