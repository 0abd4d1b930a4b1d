// Takes what a broker delivers: each message in a transaction that first asks the store what it is, and is acknowledged
// after the commit, never before.

import type { Message, StoredMessage, TransactionControls } from '../../../atomicity/index.js'
import { fingerprint } from '../../../identity/index.js'
import { type CancelTimer, detached, isRepriseError, keepableText, sha256 } from '../../../kernel/index.js'
import type { Delivery, Subscription } from '../../broker.js'
import type { Arrival } from '../../lanes.js'
import { suspected } from '../../suspicion.js'
import { deliverAgain } from '../drilled.js'
import { type Ending, type Next, nothingKnown, onArrival } from '../machine.js'
import { fitted, isMessage, storable } from '../readable.js'
import { reach } from './fault-points.js'
import { type Handling, letterOf } from './handling.js'
import type { LaneReader } from './lane-reader.js'
import { pausedFor } from './pause.js'

type Unreadable = Extract<Delivery['content'], { readonly unreadable: string }>

/**
 * What is answered to the broker: it is done, once its lane has been worked on where that is given, or it is tried
 * again after so long.
 */
type Answer = { readonly is: 'ack'; readonly lane?: string } | { readonly is: 'again'; readonly forMs: number }

const ack: Answer = { is: 'ack' }
const notYet: Answer = { is: 'again', forMs: 0 }
const mostBytes = 64 * 1024 * 1024

/** Takes deliveries until its consumer stops. */
export class Deliveries<Handle extends TransactionControls> {
  readonly #work: Handling<Handle>
  readonly #lanes: Pick<LaneReader<Handle>, 'handleNow'>
  /** The last delivery of each key that is not answered yet: the next one of that key waits for it. */
  readonly #tails = new Map<string, Promise<void>>()
  readonly #open = new Map<Delivery, Promise<void>>()
  /** How many deliveries there were. */
  seen = 0
  #cancelExtend: CancelTimer | undefined

  constructor(work: Handling<Handle>, lanes: Pick<LaneReader<Handle>, 'handleNow'>) {
    this.#work = work
    this.#lanes = lanes
  }

  get isIdle(): boolean {
    return this.#open.size === 0
  }

  /** Begins to take deliveries. */
  async open(): Promise<Subscription | undefined> {
    const { source, inFlight } = this.#work.settings
    this.#extendLater()
    // What a broker calls us in belongs to whoever published, and must not reach the handler.
    return source?.open((delivery) => detached(() => this.#receive(delivery)), { inFlight })
  }

  /** No more of them are asked for, and those here are no longer extended. */
  over(): void {
    this.#cancelExtend?.()
  }

  /** Waits until all that was delivered is answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#open.values())
  }

  #receive(delivery: Delivery): Promise<void> {
    const { order } = this.#work.settings
    const { content } = delivery
    const key = 'unreadable' in content || order === 'none' ? undefined : content.key
    this.seen += 1
    const before = key === undefined ? undefined : this.#tails.get(key)
    const taking = this.#take(delivery, before).finally(() => {
      this.#open.delete(delivery)
      if (key !== undefined && this.#tails.get(key) === taking) this.#tails.delete(key)
      this.#work.slotsWake.wake()
    })
    this.#open.set(delivery, taking)
    if (key !== undefined) this.#tails.set(key, taking)
    return taking
  }

  // Never rejected.
  async #take(delivery: Delivery, before: Promise<void> | undefined): Promise<void> {
    const { pause, stop, slots, settings } = this.#work
    await before
    try {
      while (!stop.aborted) {
        await pause.over(stop)
        // Asked again in the slot: much may have happened while it was waited for.
        const answer = await slots.within(false, async () =>
          stop.aborted || pause.isOn ? notYet : this.#answer(delivery),
        )
        if (answer.is === 'ack') {
          if (answer.lane !== undefined) await this.#lanes.handleNow(answer.lane)
          await delivery.ack()
          const fault = reach('consumer.acked')
          if (fault !== undefined) await fault
          return
        }
        await pausedFor(answer.forMs, settings.clock, stop)
      }
      await delivery.again(0)
    } catch {
      // What is not answered comes again.
    }
  }

  async #answer(delivery: Delivery): Promise<Answer> {
    const { content } = delivery
    if ('unreadable' in content) return this.#bury(content)
    let arrival: Arrival
    try {
      arrival = this.#arrivalOf(content)
    } catch (error) {
      if (isRepriseError(error) && error.code.startsWith('JSON_')) {
        return this.#bury({ unreadable: `Its data is no JSON: ${error.message}`, raw: JSON.stringify(content) })
      }
      // A codec that fails says nothing about the message.
      this.#work.pause.begin('store', 0, error)
      return notYet
    }
    const message = await fitted(content, this.#work.settings.schemas)
    if (!isMessage(message)) return this.#handle(arrival, content, message)
    if ((delivery.count ?? 1) > 1) return this.#handle(arrival, message, 'suspect')
    return this.#handle(arrival, message, this.#work.settings.effect === undefined ? undefined : 'outside')
  }

  /**
   * @param unfit What is wrong with it, that it was delivered before, or that its effect is no part of a transaction:
   * then it is handled in its lane, whose claim keeps its key in order.
   */
  async #handle(
    arrival: Arrival,
    message: Message,
    unfit: Extract<Ending, { readonly is: 'dead' }> | 'suspect' | 'outside' | undefined,
  ): Promise<Answer> {
    const work = this.#work
    const { db, settings } = work
    const arrive = async (tx: Handle, called: () => void): Promise<ReturnType<typeof onArrival>> => {
      const step = onArrival(await db.messages.arrive(tx, arrival, settings.gapWaitMs), message)
      if (step.is === 'bury') {
        await db.messages.bury(tx, settings.reader, letterOf(storedOf(arrival), { ...step, is: 'park', history: '' }))
      }
      if (step.is !== 'handle') return step
      if (unfit !== undefined) throw new NotNow()
      const fault = reach('consumer.arrived')
      if (fault !== undefined) await fault
      called()
      await work.handle(tx, message)
      const handled = reach('consumer.handled')
      if (handled !== undefined) await handled
      return step
    }
    const ended = await work.transact(message, arrive, undefined)
    if ('result' in ended) {
      const fault = reach('consumer.committed')
      if (fault !== undefined) await fault
      const step = ended.result
      this.#wakeLanes(step)
      if (step.is === 'handle') {
        work.countDone(message)
        this.#drill(arrival, message)
      } else {
        work.count(step.as, message)
        if (step.is === 'bury') work.countLetter(message, step.code, false)
      }
      return ack
    }
    if (!(ended.error instanceof NotNow)) {
      return this.#follow(arrival, message, work.next(message, nothingKnown, ended.ending, ended.error))
    }
    if (unfit === 'suspect' || unfit === 'outside') {
      const history = unfit === 'suspect' ? suspected('', settings.clock.wallMs()) : ''
      const rest = { is: 'rest', forMs: 0, failures: 0, history, pause: undefined } as const
      const answer = await this.#keep(arrival, message, rest)
      return answer.is === 'ack' && unfit === 'outside' ? { is: 'ack', lane: message.key } : answer
    }
    return this.#follow(arrival, message, work.next(message, nothingKnown, unfit as Ending, undefined))
  }

  #drill(arrival: Arrival, message: Message): void {
    const { db, settings } = this.#work
    const { drill, reader, clock, memoryMs, deadlineMs, gapWaitMs } = settings
    if (!drill?.draws()) return
    const arrive = async (tx: Handle): Promise<string> => (await db.messages.arrive(tx, arrival, gapWaitMs)).is
    deliverAgain(drill, db, { consumer: reader.name, message, clock, memoryMs, deadlineMs, arrive })
  }

  async #follow(arrival: Arrival, message: Message, next: Next): Promise<Answer> {
    const fault = reach('consumer.failed')
    if (fault !== undefined) await fault
    if (next.is === 'rest' || next.is === 'park') return this.#keep(arrival, message, next)
    if (next.is === 'skip') return this.#skip(arrival, message)
    return { is: 'again', forMs: next.is === 'again' && next.pause === undefined ? next.forMs : 0 }
  }

  // Into the inbox, in a transaction of its own; then the broker has done its part.
  async #keep(
    arrival: Arrival,
    message: Message,
    next: Extract<Next, { readonly is: 'rest' | 'park' }>,
  ): Promise<Answer> {
    const { db } = this.#work
    const then =
      next.is === 'park'
        ? ({ is: 'park', letter: letterOf(storedOf(arrival), next) } as const)
        : ({ is: 'rest', forMs: next.forMs, failures: next.failures, history: next.history } as const)
    const kept = await this.#work.transact(message, (tx) => db.messages.keep(tx, arrival, then), undefined)
    if ('ending' in kept) {
      if (kept.ending.is !== 'refused') return this.#notWritten(kept.error)
      // With its data as it would be stored, which may be encrypted.
      return this.#bury({ unreadable: kept.ending.reason, raw: JSON.stringify(storedOf(arrival)) })
    }
    const fault = reach('consumer.kept')
    if (fault !== undefined) await fault
    if (next.is === 'park') this.#work.countLetter(message, next.code, true)
    this.#work.lanesWake.wake()
    return ack
  }

  async #skip(arrival: Arrival, message: Message): Promise<Answer> {
    const { db, settings } = this.#work
    const arrive = (tx: Handle): Promise<unknown> => db.messages.arrive(tx, arrival, settings.gapWaitMs)
    const skipped = await this.#work.transact(message, arrive, undefined)
    if ('ending' in skipped) return this.#notWritten(skipped.error)
    this.#work.lanesWake.wake()
    this.#work.count('discarded', message)
    return ack
  }

  async #bury({ unreadable, raw }: Unreadable): Promise<Answer> {
    const { db, settings } = this.#work
    // The same for every delivery of the same text, so that it is one letter.
    const id = sha256(keepableText(raw, mostBytes))
    const message: StoredMessage = {
      source: settings.source?.manifest.broker ?? '',
      id,
      type: 'unreadable',
      subject: undefined,
      key: id,
      place: { epoch: 0, number: 0 },
      version: undefined,
      atMs: settings.clock.wallMs(),
      intent: undefined,
      traceparent: undefined,
      schema: undefined,
      codec: undefined,
      data: keepableText(raw, mostBytes),
    }
    const letter = letterOf(message, {
      is: 'park',
      code: 'MESSAGE_UNREADABLE',
      reason: keepableText(unreadable, 1_000),
      history: '',
    })
    const buried = await this.#work.transact(message, (tx) => db.messages.bury(tx, settings.reader, letter), undefined)
    if ('ending' in buried) return this.#notWritten(buried.error)
    this.#work.count('unreadable', message)
    this.#work.countLetter(message, 'MESSAGE_UNREADABLE', false)
    return ack
  }

  // What was stored, or what closes a gap, may have made a lane due. Nothing else has: a loop over the lanes that
  // looked after each message would be a statement for each.
  #wakeLanes(step: ReturnType<typeof onArrival>): void {
    const isStored = step.is === 'ack' && step.as !== 'duplicates'
    if (isStored || this.#work.settings.order === 'gapless') this.#work.lanesWake.wake()
  }

  // Nothing is acknowledged that is not in the store.
  #notWritten(error: unknown): Answer {
    this.#work.pause.begin('store', 0, error)
    return notYet
  }

  #arrivalOf(message: Message): Arrival {
    const { db, settings } = this.#work
    const { reader, order } = settings
    const stored = storable(db.messages, message)
    return { reader, order, message: message as Message<never>, stored, fingerprint: messageFingerprint(message) }
  }

  // Where deliveries have a limit in time, those that wait here need more of it.
  #extendLater(): void {
    const { clock, leaseMs } = this.#work.settings
    this.#cancelExtend = clock.setTimer(
      leaseMs / 3,
      () => {
        for (const delivery of this.#open.keys()) delivery.extend(leaseMs).catch(() => undefined)
        this.#extendLater()
      },
      { keepAlive: false },
    )
  }
}

/** Rolls back the transaction of a message that is new, and is not to be handled in it. */
class NotNow extends Error {}

/** What a repeat of a message has to share with it. */
export function messageFingerprint({
  type,
  subject,
  key,
  data,
}: Pick<Message, 'type' | 'subject' | 'key' | 'data'>): string {
  const value = [type, subject ?? null, key, data ?? null]
  return fingerprint({ value }, { limits: { maxBytes: mostBytes, maxDepth: 1_000 } })
}

function storedOf({ message, stored }: Arrival): StoredMessage {
  const { data: _, place = { epoch: 0, number: 0 }, ...envelope } = message
  return { ...envelope, ...stored, place }
}
