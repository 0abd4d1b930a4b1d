// What lanes and deliveries share: the transaction of a message, what follows from how it ended, and the counts.

import type { Message, StoredMessage, TransactionControls } from '../../../atomicity/index.js'
import { contentKey, type Key, withIntent } from '../../../identity/index.js'
import { isReturnedVerdict, soundVerdict } from '../../../retry/index.js'
import {
  type ConsumerMessageEvent,
  consumerDuplicate,
  consumerFailed,
  consumerFenced,
  consumerHandled,
  consumerLate,
  consumerMismatch,
  consumerParked,
  consumerPaused,
  type EventChannel,
} from '../../../telemetry/index.js'
import { Wake } from '../../wake.js'
import { endingOf, type HandlerProgress, Judged } from '../failure.js'
import { afterHandling, type Ending, type KnownFailures, type Next } from '../machine.js'
import type { ConsumerDomain, ConsumerSettings } from '../options.js'
import { Pause } from './pause.js'
import { Slots } from './slots.js'

/** What a consumer did so far, in this process. */
export interface ConsumerCounts {
  /** Messages whose effect was committed. */
  readonly handled: number
  /** Messages that had been handled before. */
  readonly duplicates: number
  /** Messages with the identity of one that was handled, and other content. */
  readonly mismatches: number
  /** Runs of the handler that failed. */
  readonly failed: number
  /** Messages that became dead letters, in whatever way. */
  readonly parked: number
  /** Messages that were passed over: discarded before they came, or by the verdict on an error. */
  readonly discarded: number
  /** Messages from a source that were put behind one of their key that waits. */
  readonly stored: number
  /** Messages from a source that came before one with a lower number. */
  readonly gaps: number
  /** Messages that came after a later one of their key was handled. */
  readonly late: number
  /** Messages of an epoch that was over. */
  readonly outdated: number
  /** Deliveries that could not be read. */
  readonly unreadable: number
  /** Messages that somebody else had by the time they were handled here; their effect was rolled back. */
  readonly fenced: number
  /** Pauses that began. */
  readonly pauses: number
}

type Counts = { -readonly [Name in keyof ConsumerCounts]: number }

/** What an event says of a message. */
export type Named = Pick<Message, 'source' | 'id' | 'type'>

const channelOf: Readonly<Partial<Record<keyof ConsumerCounts, EventChannel<ConsumerMessageEvent>>>> = {
  handled: consumerHandled,
  duplicates: consumerDuplicate,
  mismatches: consumerMismatch,
  late: consumerLate,
  fenced: consumerFenced,
}

/** One consumer at work. */
export class Handling<Handle extends TransactionControls> {
  readonly db: ConsumerDomain<Handle>
  readonly settings: ConsumerSettings<Handle>
  readonly slots: Slots
  readonly pause: Pause
  /** Wakes the loop over the lanes: one of them may be due. */
  readonly lanesWake: Wake = new Wake()
  /** Wakes the same loop where it waits for slots. */
  readonly slotsWake: Wake = new Wake()
  /** Aborted when the consumer is to stop. */
  stop: AbortSignal = new AbortController().signal
  readonly counts: Counts = {
    handled: 0,
    duplicates: 0,
    mismatches: 0,
    failed: 0,
    parked: 0,
    discarded: 0,
    stored: 0,
    gaps: 0,
    late: 0,
    outdated: 0,
    unreadable: 0,
    fenced: 0,
    pauses: 0,
  }

  constructor(db: ConsumerDomain<Handle>, settings: ConsumerSettings<Handle>) {
    this.db = db
    this.settings = settings
    this.slots = new Slots(settings.concurrency)
    this.pause = new Pause(settings.clock, settings.random, (because, forMs, error) => {
      this.counts.pauses += 1
      if (!consumerPaused.hasSubscribers) return
      consumerPaused.publish({ domain: db.name, consumer: settings.reader.name, because, forMs, error })
    })
  }

  /** Counts a message, and tells those who listen. */
  count(as: keyof ConsumerCounts, message: Named): void {
    this.counts[as] += 1
    const channel = channelOf[as]
    if (channel?.hasSubscribers) channel.publish(this.#named(message))
  }

  /** Counts a message that became a dead letter. */
  countLetter(message: Named, code: string, parks: boolean): void {
    this.counts.parked += 1
    if (consumerParked.hasSubscribers) consumerParked.publish({ ...this.#named(message), code, parks })
  }

  /**
   * Runs a transaction on behalf of a message.
   *
   * @param body Calls the handler by the function it is given.
   * @param signal Ends it: the lane is not ours any more.
   */
  async transact<Result>(
    message: Pick<Message, 'source' | 'id'>,
    body: (tx: Handle, called: () => void) => Promise<Result>,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly result: Result } | { readonly ending: Ending; readonly error: unknown }> {
    const { deadlineMs, classify } = this.settings
    const limits = { deadline: deadlineMs, bodyLimit: deadlineMs, connectionWait: deadlineMs }
    const progress: HandlerProgress = { begun: false, called: false, threw: undefined }
    const run = async (tx: Handle): Promise<Result> => {
      // The transaction may be repeated as a whole.
      progress.begun = true
      progress.called = false
      progress.threw = undefined
      try {
        return await body(tx, () => {
          progress.called = true
        })
      } catch (error) {
        progress.threw = { error }
        throw error
      }
    }
    try {
      const result = await withIntent({ key: messageKey(this.settings.reader.name, message) }, () =>
        this.db.transact(run, signal === undefined ? limits : { ...limits, signal }),
      )
      this.pause.ended()
      return { result }
    } catch (error) {
      return { ending: endingOf(error, progress, classify, signal), error }
    }
  }

  /** Calls the handler that is for the message. A verdict that it returns is a failure, as in a policy. */
  async handle(tx: Handle, message: Message): Promise<void> {
    const { handle, discarded } = this.settings
    const handler = message.discarded === undefined ? handle : discarded
    const returned = await handler?.(tx, message)
    if (isReturnedVerdict(returned)) throw new Judged(soundVerdict(returned.verdict))
  }

  /** Counts that a message was handled, or passed over. */
  countDone(message: Message): void {
    const { budget, clock, discarded } = this.settings
    const isPassedOver = message.discarded !== undefined && discarded === undefined
    this.count(isPassedOver ? 'discarded' : 'handled', message)
    budget?.succeeded(clock.monotonicMs())
  }

  /** What follows from how a message's handling ended. Failures are counted and told, and pauses begin. */
  next(message: Named, known: KnownFailures, given: Ending, error: unknown): Next {
    const { clock, random } = this.settings
    const ending = given.is === 'failed' ? this.#charged(known, given) : given
    if (ending.is === 'failed') {
      this.counts.failed += 1
      if (consumerFailed.hasSubscribers) {
        const { verdict, code } = ending
        consumerFailed.publish({
          ...this.#named(message),
          help: verdict.help,
          code,
          failures: known.failures,
          error,
        })
      }
    }
    if (ending.is === 'fenced') this.count('fenced', message)
    const next = afterHandling(known, ending, this.settings, random, clock.wallMs())
    if ((next.is === 'again' || next.is === 'rest') && next.pause !== undefined) {
      this.pause.begin(next.pause, next.is === 'again' ? next.forMs : 0, error)
    }
    return next
  }

  #charged(known: KnownFailures, ending: Extract<Ending, { readonly is: 'failed' }>): Ending {
    const { budget, clock } = this.settings
    if (budget === undefined || ending.verdict.help !== 'transient') return ending
    const nowMs = clock.monotonicMs()
    budget.failed(nowMs, known.failures > 0)
    return { ...ending, spared: !budget.tryRepeat(nowMs) }
  }

  #named({ source, id, type }: Named): ConsumerMessageEvent {
    return { domain: this.db.name, consumer: this.settings.reader.name, source, id, type }
  }
}

/** The key of a message: the same for every delivery, so that what a handler calls gets the same keys. */
export function messageKey(consumer: string, { source, id }: Pick<Message, 'source' | 'id'>): Key {
  return contentKey({ inputs: [consumer, source, id], window: 'reprise.consumer' })
}

/** The message that a dead letter keeps. */
export function letterOf(
  message: StoredMessage,
  next: Extract<Next, { readonly is: 'park' }>,
): { message: StoredMessage; code: string; reason: string; history: string } {
  const { code, reason, history } = next
  return { message, code, reason, history: history === '' ? '[]' : history }
}
