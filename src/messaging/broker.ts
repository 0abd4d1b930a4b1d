// The port to a broker: one side publishes, the other one delivers. What a broker cannot do its manifest says, and
// whoever uses it does without, or refuses.

import type { Message } from '../atomicity/index.js'
import type { Deadline } from '../kernel/index.js'

/** What a broker can do, declared. */
export interface BrokerManifest {
  /** The broker's name, for people and reports. Code does not branch on it. */
  readonly broker: string
  /** What stays in order on its way: messages of a key, all of them, or nothing. */
  readonly order: 'key' | 'all' | 'none'
  /** What a confirmation says: the message is on disk, in memory, or nothing is confirmed. */
  readonly confirm: 'disk' | 'memory' | 'none'
  /** Whether a delivery can be asked for again after a delay. */
  readonly delay: boolean
  /** Whether a delivery says how often the message was delivered, or only whether it was before. */
  readonly deliveryCount: 'exact' | 'redelivered' | 'none'
  /** How long it drops a message with the same identity, in ms; 0: not at all. */
  readonly dedupeMs: number
  /** The longest time after which it may deliver a message once more by itself, in ms; undefined: for ever. */
  readonly redeliveryMs: number | undefined
  /** The fact behind a limit, by the name of the member. */
  readonly because: Readonly<Partial<Record<'order' | 'confirm' | 'delay' | 'deliveryCount' | 'dedupeMs', string>>>
}

/** Where a relay publishes. */
export interface Publisher {
  readonly manifest: BrokerManifest
  /**
   * Publishes messages, and answers for each in its place. Where the manifest keeps an order, those of a key leave in
   * theirs, and behind one that is refused or unsent the others of its key are `unsent`. Repeats nothing by itself, and
   * never throws for a single message. After the deadline what was not answered is `unknown`.
   */
  publish(messages: readonly Message[], limits: PublishLimits): Promise<readonly Published[]>
}

/** How long a call of `publish` may take. */
export interface PublishLimits {
  readonly deadline: Deadline
  readonly signal?: AbortSignal | undefined
}

/** What became of a message. */
export type Published =
  | { readonly is: 'confirmed' }
  /** The broker will not have this message, now or later: it is the message's fault. */
  | { readonly is: 'refused'; readonly code: string; readonly reason: string }
  /** It did not leave. */
  | { readonly is: 'unsent'; readonly error: unknown }
  /** Nobody can tell whether the broker has it. */
  | { readonly is: 'unknown'; readonly error: unknown }

/** Where a consumer's messages come from. */
export interface Source {
  readonly manifest: BrokerManifest
  /**
   * Begins to deliver, at most `inFlight` at a time that are neither acknowledged nor given back. `receive` never
   * rejects.
   */
  open(receive: (delivery: Delivery) => Promise<void>, limits: SourceLimits): Promise<Subscription>
}

/** How much is delivered at a time. */
export interface SourceLimits {
  readonly inFlight: number
  readonly signal?: AbortSignal | undefined
}

/** A subscription that is open. */
export interface Subscription {
  /** Asks for no more until `resume`. What was delivered stays with us. */
  pause(): void
  resume(): void
  /** Asks for no more for good, and is fulfilled when all that was delivered has been answered. */
  drain(): Promise<void>
  /** Fulfilled when the subscription has ended; rejected when it broke and does not come back by itself. */
  readonly ended: Promise<void>
}

/** One message, delivered once more or for the first time. Each delivery is answered once, by one of its methods. */
export interface Delivery {
  /** What was delivered; `unreadable`: it is no event that this version can read. */
  readonly content: Message | { readonly unreadable: string; readonly raw: string }
  /** Which delivery of the message this is, where the broker tells: the first is 1. */
  readonly count: number | undefined
  /** It is done. Where this fails the message comes again. */
  ack(): Promise<void>
  /** It is to come again, after a delay where the broker can. */
  again(delayMs: number): Promise<void>
  /** It is never to come again. */
  refuse(reason: string): Promise<void>
  /** More time is needed, in ms from now, where deliveries have a limit in time. */
  extend(ms: number): Promise<void>
}
