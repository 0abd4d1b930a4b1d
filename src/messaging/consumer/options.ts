// Options of a consumer, checked once, with every default filled in.

import type { Message, TransactionControls } from '../../atomicity/index.js'
import type { Drill } from '../../drill/index.js'
import { drillOfRecords, timeOfRecords } from '../../idempotency/index.js'
import {
  type Clock,
  type Duration,
  demandKnown,
  demandWhole,
  durationMs,
  formatDuration,
  isStandardSchema,
  isWellFormed,
  type Random,
  RepriseError,
  type StandardSchema,
} from '../../kernel/index.js'
import {
  type Backoff,
  type Budget,
  type Classifier,
  defaultClassifier,
  firstOf,
  forCodes,
  fullJitter,
  ownErrorClassifier,
  tokenBudget,
  transient,
} from '../../retry/index.js'
import type { Domain } from '../../transaction/index.js'
import type { Source } from '../broker.js'
import type { Arrival, Reader } from '../lanes.js'
import type { MessageDomain } from '../store.js'
import type { Ending } from './machine.js'

/** What a consumer needs of a store: its transactions, and its messages. Every domain has both. */
export interface ConsumerDomain<Handle extends TransactionControls>
  extends Pick<Domain<never>, 'name'>,
    MessageDomain<Handle> {
  readonly records: Parameters<typeof timeOfRecords>[0]
  transact<Result>(
    body: (tx: Handle) => PromiseLike<Result> | Result,
    options: {
      readonly deadline: Duration
      readonly bodyLimit: Duration
      readonly connectionWait: Duration
      readonly signal?: AbortSignal
    },
  ): Promise<Result>
}

/**
 * Takes a message. What it does through `tx` commits together with the fact that the message is done; what it throws
 * rolls all of that back, and is judged by `classify`.
 */
export type MessageHandler<Handle> = (
  tx: Handle,
  // biome-ignore lint/suspicious/noExplicitAny: what the data is only the user knows, and `schemas` checks.
  message: Message<any>,
) => unknown

/** How a consumer works. */
export interface ConsumeOptions<Handle> {
  /**
   * Its name: 1 to 255 characters. Consumers of the same name share the work, in any number of processes; those of
   * different names each get every message.
   */
  readonly name: string
  /**
   * Where messages come from: a broker's source, or the domain itself (or `'outbox'`), whose outbox is then read
   * without relay or broker.
   */
  readonly from: Source | MessageDomain<Handle> | 'outbox'
  /** Takes a message, in a transaction of the domain. */
  readonly handle: MessageHandler<Handle>
  /**
   * `'key'`: messages of a key one at a time in the order in which they arrive, and none before one that failed.
   * `'gapless'`: the numbers of their places are checked too. `'none'`: no order, for sources only. Default `'key'`.
   */
  readonly order?: Arrival['order']
  /** Of `'gapless'`: how long a missing number is waited for before the key is parked. Default `'30s'`. */
  readonly gapWait?: Duration
  /** How many messages are handled at a time, of different keys; 1 to 1,000. Default 16. */
  readonly concurrency?: number
  /**
   * How many deliveries a source may have with us that are not answered; `concurrency` to 10,000. Default 4 times
   * `concurrency`.
   */
  readonly inFlight?: number
  /** How many messages of a key are read at a time, 1 to 1,000. Default 16. */
  readonly batch?: number
  /**
   * How often a message is handled at most, the first time included, while it fails as `transient`; 1 to 100. Default
   * 5.
   */
  readonly attempts?: number
  /**
   * How many processes may end while the message runs alone in them, before it is a dead letter with MESSAGE_KILLS; 1
   * to 100. Default 3.
   */
  readonly crashes?: number
  /**
   * What errors of the handler mean, asked before the classifiers for HTTP and the network. Default: none of your own.
   */
  readonly classify?: Classifier
  /** The wait before a message is handled again. Default `fullJitter({ baseMs: 1_000, capMs: 60_000 })`. */
  readonly backoff?: Backoff
  /**
   * What limits repeats over all messages: without one left, a message waits for the longest of `backoff`. `false`:
   * nothing does. Default `tokenBudget({ maxTokens: 100 })`.
   */
  readonly budget?: Budget | false
  /** How long one message may take, with all repeats of its transaction. Default `'10s'`. */
  readonly deadline?: Duration
  /**
   * How long the claim of a key holds without being extended, at least 100 ms. A consumer that died is followed after
   * that. Default `'30s'`.
   */
  readonly lease?: Duration
  /** How often the store is asked for messages that nobody told us of. Default `'1s'`. */
  readonly poll?: Duration
  /** How long one question to the store may take beside the transactions of handlers. Default `'5s'`. */
  readonly storeLimit?: Duration
  /**
   * For how long it is remembered that a message was handled. At least `redelivered`, or the definition is refused.
   * Default `'7d'`. Without meaning where the outbox is read: there its place is the memory.
   */
  readonly memory?: Duration
  /**
   * The longest time after which a message may come once more, by the source, by a repeat of the relay, or by a redrive
   * that a person asks for. Default: what the source declares.
   */
  readonly redelivered?: Duration
  /** Schemas of the data by the type of the message, in the form of Standard Schema. Default: none. */
  readonly schemas?: Readonly<Record<string, StandardSchema>>
  /** Takes a message that was discarded before it was delivered. Default: it is passed over. */
  readonly discarded?: MessageHandler<Handle>
  /** Default the domain's. */
  readonly clock?: Clock
  /** Default the domain's. */
  readonly random?: Random
}

/** The names of all options. */
export const optionNames: readonly (keyof ConsumeOptions<never>)[] = [
  'name',
  'from',
  'handle',
  'order',
  'gapWait',
  'concurrency',
  'inFlight',
  'batch',
  'attempts',
  'crashes',
  'classify',
  'backoff',
  'budget',
  'deadline',
  'lease',
  'poll',
  'storeLimit',
  'memory',
  'redelivered',
  'schemas',
  'discarded',
  'clock',
  'random',
]

/** How an effect outside of the store ended, where it did not succeed. */
export interface EffectEnd {
  readonly ending: Ending
  readonly error: unknown
}

/** {@link ConsumeOptions} with every default filled in. */
export interface ConsumerSettings<Handle> {
  readonly reader: Reader
  /** Undefined: the outbox is read. */
  readonly source: Source | undefined
  readonly handle: MessageHandler<Handle>
  readonly discarded: MessageHandler<Handle> | undefined
  /**
   * The effect of a message that lies outside of the store, had before the transaction that says that it is done;
   * given: how it failed.
   */
  readonly effect?: (message: Message, signal: AbortSignal) => Promise<EffectEnd | undefined>
  readonly order: Arrival['order']
  readonly gapWaitMs: number
  readonly concurrency: number
  readonly inFlight: number
  readonly batch: number
  readonly attempts: number
  readonly crashes: number
  readonly classify: Classifier
  readonly backoff: Backoff
  readonly budget: Budget | undefined
  readonly deadlineMs: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly storeLimitMs: number
  readonly memoryMs: number
  readonly schemas: Readonly<Record<string, StandardSchema>>
  readonly clock: Clock
  readonly random: Random
  /** Has deliveries come again on purpose; undefined: nobody does. */
  readonly drill: Drill | undefined
}

const usualClassifier: Classifier = firstOf(
  forCodes({ BODY_TIME_LIMIT: transient('BODY_TIME_LIMIT', 'no'), LOCK_TIMEOUT: transient('LOCK_TIMEOUT', 'no') }),
  defaultClassifier,
)

/** The settings, or ARGUMENT_INVALID (DURATION_INVALID for a duration) that names the option. */
export function consumerSettings<Handle extends TransactionControls>(
  db: ConsumerDomain<Handle>,
  options: ConsumeOptions<Handle>,
): ConsumerSettings<Handle> {
  demandKnown(options, optionNames, 'options')
  demandDomain(db)
  const { name, handle, discarded, order = 'key', classify, budget, schemas = {} } = options
  const { backoff = fullJitter({ baseMs: 1_000, capMs: 60_000 }) } = options
  demandName('name', name)
  const source = sourceOf(db, options.from)
  if (typeof handle !== 'function') throw invalid('handle', 'A consumer needs a function that takes its messages.')
  if (discarded !== undefined && typeof discarded !== 'function') throw invalid('discarded', 'It is a function.')
  if (order !== 'key' && order !== 'gapless' && order !== 'none') {
    throw invalid('order', "order is 'key', 'gapless' or 'none'.")
  }
  if (order === 'none' && source === undefined) {
    throw invalid('order', "The outbox is read in the order of its keys: order 'none' is for sources.")
  }
  if (classify !== undefined && typeof classify !== 'function') throw invalid('classify', 'A classifier is a function.')
  if (typeof backoff?.delayMs !== 'function') throw invalid('backoff', 'A backoff is made by fullJitter and the like.')
  if (budget !== undefined && budget !== false && typeof budget?.tryRepeat !== 'function') {
    throw invalid('budget', 'A budget is made by tokenBudget or ratioBudget, or is false.')
  }
  for (const schema of Object.values(schemas)) {
    if (isStandardSchema(schema)) continue
    throw invalid('schemas', 'Each schema is one of Standard Schema.')
  }
  const concurrency = whole('concurrency', options.concurrency ?? 16, 1, 1_000)
  const time = timeOfRecords(db.records)
  const memoryMs = memoryOf(options, source)
  return {
    reader: Object.freeze(
      source === undefined
        ? { name, kind: 'consumer', reads: 'outbox' }
        : { name, kind: 'consumer', reads: 'inbox', memoryMs },
    ),
    source,
    handle,
    discarded,
    order,
    gapWaitMs: ms('gapWait', options.gapWait ?? '30s', 0),
    concurrency,
    inFlight: whole('inFlight', options.inFlight ?? concurrency * 4, concurrency, 10_000),
    batch: whole('batch', options.batch ?? 16, 1, 1_000),
    attempts: whole('attempts', options.attempts ?? 5, 1, 100),
    crashes: whole('crashes', options.crashes ?? 3, 1, 100),
    classify: firstOf(ownErrorClassifier, ...(classify === undefined ? [] : [classify]), usualClassifier),
    backoff,
    budget: budget === false ? undefined : (budget ?? tokenBudget({ maxTokens: 100 })),
    deadlineMs: ms('deadline', options.deadline ?? '10s', 1),
    leaseMs: ms('lease', options.lease ?? '30s', 100),
    pollMs: ms('poll', options.poll ?? '1s', 1),
    storeLimitMs: ms('storeLimit', options.storeLimit ?? '5s', 1),
    memoryMs,
    schemas,
    clock: options.clock ?? time.clock,
    random: options.random ?? time.random,
    drill: drillOfRecords(db.records),
  }
}

/** Refuses what is no domain that has messages. */
export function demandDomain(db: unknown): void {
  const { messages, transact } = Object(db) as { readonly messages?: unknown; readonly transact?: unknown }
  if (typeof transact === 'function' && typeof Object(messages).claim === 'function') return
  throw new RepriseError('ARGUMENT_INVALID', 'A consumer needs a domain that has messages.', {
    details: { option: 'db' },
  })
}

const invisible = /\p{Cc}/u

/** Refuses what is no name. */
export function demandName(option: string, name: unknown): asserts name is string {
  const sound = typeof name === 'string' && name !== '' && name.length <= 255 && isWellFormed(name)
  if (sound && !invisible.test(name)) return
  throw invalid(option, 'It is text of 1 to 255 characters, none of them a control character.')
}

function sourceOf<Handle extends TransactionControls>(
  db: ConsumerDomain<Handle>,
  from: ConsumeOptions<Handle>['from'],
): Source | undefined {
  if (from === 'outbox' || Object(from).messages === db.messages) return undefined
  if (typeof Object(from).open === 'function' && typeof Object(Object(from).manifest).broker === 'string') {
    return from as Source
  }
  const other = typeof Object(Object(from).messages).claim === 'function'
  throw invalid(
    'from',
    other
      ? 'The outbox of another domain cannot be read: its progress would not commit with the effect. Relay it.'
      : "It is the source of a broker, the domain itself, or 'outbox'.",
  )
}

// A repeat that arrives when it is forgotten that the message was handled takes effect once more.
function memoryOf<Handle>({ memory = '7d', redelivered }: ConsumeOptions<Handle>, source: Source | undefined): number {
  const memoryMs = ms('memory', memory, 1)
  const declaredMs = redelivered === undefined ? source?.manifest.redeliveryMs : ms('redelivered', redelivered, 0)
  if (source === undefined) return memoryMs
  if (declaredMs === undefined) {
    throw invalid(
      'redelivered',
      `${source.manifest.broker} may deliver a message again at any time. Say with redelivered how late that happens, redrives included; memory has to be at least as long.`,
    )
  }
  if (memoryMs >= declaredMs) return memoryMs
  const [kept, late] = [memoryMs, declaredMs].map((given) => formatDuration(Math.ceil(given)))
  throw new RepriseError(
    'ARGUMENT_INVALID',
    `memory is ${kept}, and a message may be redelivered after ${late}: it would take effect twice. Remember it for longer.`,
    { details: { option: 'memory', memoryMs, redeliveredMs: declaredMs } },
  )
}

function whole(option: string, value: number, least: number, most: number): number {
  return demandWhole(value, least, most, (why) => invalid(option, why))
}

function ms(option: string, value: Duration, minMs: number): number {
  return durationMs(value, { minMs, option })
}

/** A refusal that names the option. */
export function invalid(option: string, why: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option ${option} is not valid. ${why}`, { details: { option } })
}
