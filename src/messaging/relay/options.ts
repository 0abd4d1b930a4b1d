// Options of a relay, checked once, with every default filled in.

import type { Message } from '../../atomicity/index.js'
import { timeOfRecords } from '../../idempotency/index.js'
import {
  type Clock,
  type Duration,
  demandKnown,
  demandWhole,
  durationMs,
  formatDuration,
  type Random,
  RepriseError,
} from '../../kernel/index.js'
import {
  type Backoff,
  type Breaker,
  type Budget,
  consecutiveBreaker,
  equalJitter,
  fullJitter,
  tokenBudget,
} from '../../retry/index.js'
import type { Publisher } from '../broker.js'
import { demandName, invalid } from '../consumer/options.js'
import type { Reader } from '../lanes.js'
import type { MessageDomain } from '../store.js'
import type { RelayRules } from './machine.js'

/** What a relay needs of a store. Every domain has it. */
export interface RelayDomain extends MessageDomain<never> {
  readonly records: Parameters<typeof timeOfRecords>[0]
}

/** How a relay works. */
export interface RelayOptions {
  /**
   * Its name: 1 to 255 characters. Relays of the same name share the work, in any number of processes; those of
   * different names each get every message.
   */
  readonly name: string
  /** Where messages are published. */
  readonly to: Publisher
  /** Types that are published: names, or beginnings that end with `*`, such as `order.*`. Default: all. */
  readonly types?: readonly string[]
  /**
   * Whether a message is published; the others are passed over. It has no effects, answers at once, and gives the same
   * answer for the same message. What it throws counts against the message. Default: all are.
   */
  readonly where?: (message: Message) => boolean
  /** How many messages are published together at most, 1 to 10,000. Default 500. */
  readonly batch?: number
  /**
   * How often a message is published at most, the first time included, while the broker refuses it; then it is a dead
   * letter and its key is parked. 1 to 100. Default 5.
   */
  readonly attempts?: number
  /**
   * How many processes may end while they publish a message and nothing else, before it is a dead letter with
   * MESSAGE_KILLS; 1 to 100. Default 3.
   */
  readonly crashes?: number
  /** The wait before a refused message is published again. Default `fullJitter({ baseMs: 1_000, capMs: 60_000 })`. */
  readonly backoff?: Backoff
  /**
   * What limits repeats of refused messages: without one left, a message waits for the longest of `backoff`. `false`:
   * nothing does. Default `tokenBudget({ maxTokens: 100 })`.
   */
  readonly budget?: Budget | false
  /**
   * Decides when a broker that is away is left alone, and when it is tried with one message. Default: after five calls
   * in a row, for a second and then longer, up to 30.
   */
  readonly breaker?: Breaker
  /** How long the broker may take to confirm one call. Default `'10s'`. */
  readonly deadline?: Duration
  /**
   * How long the claim of a key holds. A relay that died is followed after that. Longer than `deadline` and two
   * `storeLimit` together, or the definition is refused. Default `'30s'`.
   */
  readonly lease?: Duration
  /** How often the store is asked for messages that nobody told us of. Default `'1s'`. */
  readonly poll?: Duration
  /** How long one question to the store may take. Default `'5s'`. */
  readonly storeLimit?: Duration
  /** Default the domain's. */
  readonly clock?: Clock
  /** Default the domain's. */
  readonly random?: Random
}

const optionNames: readonly (keyof RelayOptions)[] = [
  'name',
  'to',
  'types',
  'where',
  'batch',
  'attempts',
  'crashes',
  'backoff',
  'budget',
  'breaker',
  'deadline',
  'lease',
  'poll',
  'storeLimit',
  'clock',
  'random',
]

/** {@link RelayOptions} with every default filled in. */
export interface RelaySettings extends RelayRules {
  readonly reader: Reader
  readonly to: Publisher
  readonly where: (message: Message) => boolean
  readonly batch: number
  readonly budget: Budget | undefined
  readonly breaker: Breaker
  readonly deadlineMs: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly storeLimitMs: number
  readonly clock: Clock
  readonly random: Random
}

/** The settings, or ARGUMENT_INVALID (DURATION_INVALID for a duration) that names the option. */
export function relaySettings(db: RelayDomain, options: RelayOptions): RelaySettings {
  demandKnown(options, optionNames, 'options')
  if (typeof Object(Object(db).messages).claim !== 'function') {
    const message = 'A relay needs a domain that has messages.'
    throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'db' } })
  }
  const { name, to, where, types, budget, breaker } = options
  const { backoff = fullJitter({ baseMs: 1_000, capMs: 60_000 }) } = options
  demandName('name', name)
  demandPublisher(to)
  if (where !== undefined && typeof where !== 'function') throw invalid('where', 'It is a function.')
  if (typeof backoff?.delayMs !== 'function') throw invalid('backoff', 'A backoff is made by fullJitter and the like.')
  if (budget !== undefined && budget !== false && typeof budget?.tryRepeat !== 'function') {
    throw invalid('budget', 'A budget is made by tokenBudget or ratioBudget, or is false.')
  }
  if (breaker !== undefined && typeof breaker?.tryEnter !== 'function') {
    throw invalid('breaker', 'A breaker is made by consecutiveBreaker and the like.')
  }
  const time = timeOfRecords(db.records)
  const random = options.random ?? time.random
  return {
    reader: Object.freeze({ name, kind: 'relay', reads: 'outbox' }),
    to,
    where: both(typeFilter(types), where),
    batch: whole('batch', options.batch ?? 500, 10_000),
    attempts: whole('attempts', options.attempts ?? 5, 100),
    crashes: whole('crashes', options.crashes ?? 3, 100),
    backoff,
    budget: budget === false ? undefined : (budget ?? tokenBudget({ maxTokens: 100 })),
    breaker:
      breaker ?? consecutiveBreaker({ failures: 5, openFor: equalJitter({ baseMs: 1_000, capMs: 30_000 }), random }),
    pollMs: ms('poll', options.poll ?? '1s', 1),
    ...times(options),
    clock: options.clock ?? time.clock,
    random,
  }
}

// A lease that ends while the broker may still confirm would let somebody else publish the same messages beside us.
function times({ deadline = '10s', lease = '30s', storeLimit = '5s' }: RelayOptions): {
  readonly deadlineMs: number
  readonly leaseMs: number
  readonly storeLimitMs: number
} {
  const [deadlineMs, leaseMs] = [ms('deadline', deadline, 1), ms('lease', lease, 1)]
  const storeLimitMs = ms('storeLimit', storeLimit, 1)
  const leastMs = deadlineMs + 2 * storeLimitMs
  if (leaseMs > leastMs) return { deadlineMs, leaseMs, storeLimitMs }
  const [given, needed] = [leaseMs, leastMs].map((value) => formatDuration(Math.ceil(value)))
  const message = `The option lease is not valid. It is ${given}; to publish and to tell the store may take ${needed}: give it more.`
  throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'lease', leaseMs, leastMs } })
}

function demandPublisher(to: Publisher): void {
  const { publish, manifest } = Object(to) as Partial<Publisher>
  if (typeof publish === 'function' && typeof Object(manifest).order === 'string') return
  throw invalid('to', 'It is the publisher of a broker.')
}

function typeFilter(types: readonly string[] | undefined): ((message: Message) => boolean) | undefined {
  if (types === undefined) return undefined
  const sound = Array.isArray(types) && types.length > 0 && types.length <= 1_000
  if (!sound || !types.every((type) => typeof type === 'string' && /^[^*]{1,255}\*?$|^\*$/.test(type))) {
    throw invalid('types', 'It is a list of up to 1,000 types, or of beginnings of types that end with *.')
  }
  const names = new Set(types.filter((type) => !type.endsWith('*')))
  const beginnings = types.filter((type) => type.endsWith('*')).map((type) => type.slice(0, -1))
  return ({ type }) => names.has(type) || beginnings.some((beginning) => type.startsWith(beginning))
}

function both(
  one: ((message: Message) => boolean) | undefined,
  other: ((message: Message) => boolean) | undefined,
): (message: Message) => boolean {
  if (one === undefined || other === undefined) return one ?? other ?? (() => true)
  return (message) => one(message) && other(message)
}

function whole(option: string, value: number, most: number): number {
  return demandWhole(value, 1, most, (why) => invalid(option, why))
}

function ms(option: string, value: Duration, minMs: number): number {
  return durationMs(value, { minMs, option })
}
