// The options of a transaction with every default filled in, and refused before anything is opened where they cannot
// be.

import type { Blocker, Isolation, Manifest } from '../../atomicity/index.js'
import { type Content, currentDeadline, type Pepper, storedKey } from '../../identity/index.js'
import {
  type Clock,
  type Deadline,
  type Duration,
  demandKnown,
  demandSignal,
  demandWhole,
  durationMs,
  earlier,
  formatDuration,
  type Random,
  RepriseError,
  systemClock,
  systemRandom,
} from '../../kernel/index.js'
import {
  areForeignLayers,
  type Backoff,
  type Budget,
  type ForeignLayer,
  fullJitter,
  type Layers,
  layersWith,
} from '../../retry/index.js'
import { effectRuleOf } from '../effect-guard/rule.js'
import type { EffectRule } from '../open-transaction.js'
import {
  type TransactionDefaults,
  type TransactionOptions,
  type TransactOptions,
  transactionOptionNames,
  transactOptionNames,
} from '../options.js'
import { type KeyedCall, plainKey } from './keyed.js'

/** Reads what a lost commit may have left; undefined or null: it left nothing. */
export type Found = (tx: never) => unknown

/** {@link TransactionOptions} with every default filled in. */
export interface TransactionSettings {
  readonly isolation: Isolation
  /** Longest wait for a connection, in ms. */
  readonly connectionWaitMs: number
  /** Longest run of the body, in ms. */
  readonly bodyLimitMs: number
  /** Longest wait for a lock, in ms. */
  readonly lockWaitMs: number
  /** Transactions at most, the first included. */
  readonly attempts: number
  /** Layers that are not ours, as they were declared. */
  readonly foreignLayers: readonly ForeignLayer[]
  /** What they and the transaction are together. */
  readonly own: Layers
  readonly backoff: Backoff
  readonly budget: Budget | undefined
}

/**
 * Everything that one call goes by. A class: all calls have one shape, which the runner reads many times. A spread of
 * so many members gives objects that are slow to make and to read.
 */
export class CallSettings implements TransactionSettings {
  readonly isolation: Isolation
  readonly connectionWaitMs: number
  readonly bodyLimitMs: number
  readonly lockWaitMs: number
  readonly attempts: number
  readonly foreignLayers: readonly ForeignLayer[]
  readonly own: Layers
  readonly backoff: Backoff
  readonly budget: Budget | undefined
  /** What an effect in the body leads to. */
  readonly effects: EffectRule
  readonly clock: Clock
  readonly random: Random
  /** Whether the outcome of a COMMIT is always known, so that nothing of a deadline has to be kept for resolution. */
  readonly certain: boolean
  /** The key, and what is done with it; undefined: none. */
  readonly keyed: KeyedCall<unknown> | undefined
  /** Reads the effect by its natural key, after a commit whose answer was lost; undefined: nobody can. */
  readonly found: Found | undefined
  readonly readOnly: boolean
  /** The end of everything, resolution included. */
  readonly deadline: Deadline
  readonly signal: AbortSignal | undefined
  /** What is kept of the deadline for resolution, in ms. */
  readonly reserveMs: number
  /** Who was last seen to block the claim of the key, over all attempts. */
  readonly claimBlockers: Blocker[] = []

  constructor(shared: SharedSettings, { keyed, found, readOnly, deadline, signal }: OwnSettings) {
    if (signal !== undefined) demandSignal(signal)
    this.isolation = shared.isolation
    this.connectionWaitMs = shared.connectionWaitMs
    this.bodyLimitMs = shared.bodyLimitMs
    this.lockWaitMs = shared.lockWaitMs
    this.attempts = shared.attempts
    this.foreignLayers = shared.foreignLayers
    this.own = shared.own
    this.backoff = shared.backoff
    this.budget = shared.budget
    this.effects = shared.effects
    this.clock = shared.clock
    this.random = shared.random
    this.certain = readOnly || shared.certain
    this.keyed = keyed
    this.found = found
    this.readOnly = readOnly
    this.deadline = deadline
    this.signal = signal
    const leftMs = deadline.expiresAtMs - shared.clock.monotonicMs()
    this.reserveMs = this.certain ? 0 : reserveOf(Math.max(0, leftMs))
  }
}

/** What a call says itself. */
type OwnSettings = Pick<CallSettings, 'keyed' | 'found' | 'readOnly' | 'deadline' | 'signal'>

/** What calls share: all those of an operation, and those of a domain that say nothing else. */
type SharedSettings = Omit<CallSettings, keyof OwnSettings | 'reserveMs' | 'claimBlockers'>

// What resolution usually takes, and what it cannot do with less than; the latter also tells whether there is a reserve
// at all.
const usualReserveMs = 250
const leastReserveMs = 10
// Numbers, since text would be read again for each transaction.
const usualMs = { deadline: 10_000, connectionWait: 1_000, bodyLimit: 5_000, lockWait: 2_000 } as const
const defaultBackoff = /* @__PURE__ */ fullJitter({ baseMs: 15, capMs: 500 })

/** Makes the error with which an option is refused. */
export type RefuseOption = (option: string, why: string) => RepriseError

/**
 * Reads the options that transactions, operations and routes share, and fills in the defaults. Throws what `refuse`
 * makes of an option that is not valid, DURATION_INVALID for what is no duration (`details.option` says which one), and
 * CAPABILITY_UNSUPPORTED for an isolation level that the manifest does not have, unless `refuse` is given.
 *
 * @param refuse Default: ARGUMENT_INVALID.
 */
export function readTransactionOptions(
  manifest: Manifest,
  defaults: TransactionDefaults,
  options: TransactionOptions,
  refuse?: RefuseOption,
): TransactionSettings {
  const { isolation = manifest.isolation[0] } = options
  if (isolation === undefined || !manifest.isolation.includes(isolation)) {
    throw refuse?.('isolation', 'The domain’s manifest does not offer it.') ?? unsupported('isolation', manifest)
  }
  const refuseAttempts = (why: string): RepriseError => (refuse ?? invalid)('attempts', why)
  const attempts = demandWhole(options.attempts ?? defaults.attempts ?? 8, 1, 50, refuseAttempts)
  const budget = options.budget === undefined ? defaults.budget : options.budget
  const { succeeded, failed, tryRepeat } = Object(budget) as Partial<Budget>
  const counts = [succeeded, failed, tryRepeat].every((method) => typeof method === 'function')
  if (budget !== undefined && budget !== false && !counts) {
    throw (refuse ?? invalid)('budget', 'It is made by tokenBudget(…) or ratioBudget(…), or is false.')
  }
  const foreignLayers = options.foreignLayers ?? defaults.foreignLayers ?? []
  if (!areForeignLayers(foreignLayers)) {
    throw (refuse ?? invalid)('foreignLayers', 'It lists layers, each with a name and its attempts, from 1 to 100.')
  }
  return {
    isolation,
    connectionWaitMs: limitMs('connectionWait', options.connectionWait, defaults.connectionWait, 0),
    bodyLimitMs: limitMs('bodyLimit', options.bodyLimit, defaults.bodyLimit, 1),
    lockWaitMs: limitMs('lockWait', options.lockWait, defaults.lockWait, 1),
    attempts,
    foreignLayers,
    own: layersWith(attempts, foreignLayers),
    backoff: backoffOf(options.backoff ?? defaults.backoff, refuse),
    budget: budget === false ? undefined : budget,
  }
}

/** What the calls share that go by these options. */
export function sharedSettings(
  manifest: Manifest,
  defaults: TransactionDefaults,
  settings: TransactionSettings,
): SharedSettings {
  const { clock = systemClock, random = systemRandom } = defaults
  return { ...settings, effects: effectRuleOf(defaults), clock, random, certain: manifest.commit === 'certain' }
}

/**
 * Reads the options of single calls. What calls share that say nothing else is read here, and refused here where no
 * transaction could be told it; what it returns refuses with ARGUMENT_INVALID, CAPABILITY_UNSUPPORTED, or the codes of
 * durations and keys.
 */
export function settingsReader(
  manifest: Manifest,
  defaults: TransactionDefaults,
  pepper?: Pepper,
): (options: TransactOptions) => CallSettings {
  const usual = sharedSettings(manifest, defaults, readTransactionOptions(manifest, defaults, {}))
  const { clock } = usual
  deadlineOf(clock, defaults, {})
  return (options) => {
    demandKnown(options, transactOptionNames, 'options')
    const { signal, readOnly = false, found } = options
    if (typeof readOnly !== 'boolean') throw invalid('readOnly')
    if (found !== undefined && typeof found !== 'function') throw invalid('found', 'It is a function that reads.')
    if (readOnly && !manifest.readOnly) throw unsupported('readOnly', manifest)
    const whole = deadlineOf(clock, defaults, options)
    const keyed = keyOf(options, whole.expiresAtMs - clock.monotonicMs(), pepper)
    const saysMore = transactionOptionNames.some((name) => options[name] !== undefined)
    const shared = saysMore ? { ...usual, ...readTransactionOptions(manifest, defaults, options) } : usual
    const deadline = earlier(whole, currentDeadline())
    return new CallSettings(shared, { keyed, found: found as Found | undefined, readOnly, deadline, signal })
  }
}

// The key of a call, bound to its content. Without a key there is nothing to bind.
function keyOf(
  options: TransactOptions,
  deadlineMs: number,
  pepper: Pepper | undefined,
): KeyedCall<unknown> | undefined {
  const { key, content, window, found, readOnly } = options as Loose<KeyedOptions>
  if (key === undefined) {
    if (content !== undefined || window !== undefined) {
      throw invalid(content === undefined ? 'window' : 'content', 'It belongs to a key, and there is none.')
    }
    return undefined
  }
  if (typeof key !== 'object' || key === null) throw invalid('key')
  if (readOnly) throw invalid('key', 'A transaction that only reads needs no key, and could not store one.')
  if (found !== undefined) throw invalid('found', 'A key finds its own outcome: it is for transactions without one.')
  if (content === undefined) {
    throw invalid('content', "What is under the key is compared: give { value }, { json } or { bytes }, or 'none'.")
  }
  const id = storedKey(key.scope, key.key, pepper)
  const compared = content === 'none' ? undefined : (content as Content)
  if (window === undefined) return plainKey(id, { content: compared, pepper })
  const rememberedMs = durationMs(window, { minMs: 1, option: 'window' })
  demandMemory('window', rememberedMs, deadlineMs)
  return plainKey(id, { content: compared, rememberedMs, pepper })
}

type KeyedOptions = Extract<TransactOptions, { readonly key: unknown }>
type Loose<Options> = { readonly [Name in keyof Options]?: Options[Name] | undefined }

/**
 * Refuses with WINDOW_SHORTER_THAN_DEADLINE a memory that may end before a call does: the call could find its own
 * commit forgotten, and carry it out again.
 *
 * @param option The name of what says how long the memory lasts.
 */
export function demandMemory(option: string, rememberedMs: number, deadlineMs: number): void {
  // What is left of a deadline is rarely a whole number.
  const leastMs = Math.ceil(deadlineMs + reserveOf(deadlineMs))
  if (rememberedMs >= leastMs) return
  throw new RepriseError(
    'WINDOW_SHORTER_THAN_DEADLINE',
    `The option ${option} of ${formatDuration(rememberedMs)} is shorter than a deadline of ${formatDuration(Math.ceil(deadlineMs))} and its reserve: ` +
      'a call could find its own commit forgotten, and carry it out again.',
    { details: { option, rememberedMs, leastMs } },
  )
}

function reserveOf(totalMs: number): number {
  // A short deadline is tried all the same: half of it is for the work.
  return Math.max(totalMs / 4, Math.min(totalMs / 2, usualReserveMs), leastReserveMs)
}

/**
 * When a call ends, as it was told or else as the domain was. Refuses what is no duration with DURATION_INVALID, and a
 * deadline without its point in time with ARGUMENT_INVALID; `details.option` is `deadline`.
 */
export function deadlineOf(
  clock: Clock,
  defaults: Pick<TransactionDefaults, 'deadline'>,
  options: Pick<TransactOptions, 'deadline'>,
): Deadline {
  if (typeof options !== 'object' || options === null) throw invalid('options')
  const { deadline: given } = options
  if (typeof given !== 'object' || given === null) {
    return { expiresAtMs: clock.monotonicMs() + limitMs('deadline', given, defaults.deadline, 0) }
  }
  // One that never comes is none: nothing would be left to keep for resolution.
  if (!Number.isFinite(given.expiresAtMs)) throw invalid('deadline')
  return given
}

// Undefined is not given; null and all the rest is, and refused.
function limitMs(
  option: keyof typeof usualMs,
  given: Duration | undefined,
  otherwise: Duration | undefined,
  minMs: number,
): number {
  const duration = given === undefined ? otherwise : given
  return duration === undefined ? usualMs[option] : durationMs(duration, { minMs, option })
}

/** The wait between attempts as it was given, or the default. Throws what `refuse` makes of what is no backoff. */
export function backoffOf(backoff: Backoff | undefined, refuse: RefuseOption = invalid): Backoff {
  if (backoff === undefined) return defaultBackoff
  if (typeof backoff?.delayMs === 'function') return backoff
  throw refuse('backoff', 'It is made by fullJitter(…) or another backoff.')
}

function invalid(option: string, why?: string): RepriseError {
  const message = `The option ${option} is not valid.${why === undefined ? '' : ` ${why}`}`
  return new RepriseError('ARGUMENT_INVALID', message, { details: { option } })
}

function unsupported(option: 'readOnly' | 'isolation', manifest: Manifest): RepriseError {
  const why = manifest.because[option]
  return new RepriseError(
    'CAPABILITY_UNSUPPORTED',
    `The domain's manifest refuses the option ${option}${why === undefined ? '.' : `: ${why}`}`,
    { details: { option, engine: manifest.engine } },
  )
}
