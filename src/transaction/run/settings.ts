// The options of a transaction with every default filled in, and refused before anything is opened where they cannot be.

import type { Isolation, Manifest } from '../../atomicity/index.js'
import { currentDeadline, storedKey } from '../../identity/index.js'
import {
  type Clock,
  type Deadline,
  type Duration,
  demandKnown,
  durationMs,
  earlier,
  type Random,
  RepriseError,
  systemClock,
  systemRandom,
} from '../../kernel/index.js'
import { type Backoff, type Budget, fullJitter } from '../../retry/index.js'
import { effectRuleOf } from '../effect-guard/rule.js'
import type { EffectRule } from '../open-transaction.js'
import { type TransactionDefaults, type TransactOptions, transactOptionNames } from '../options.js'
import { type Keyed, plainKey } from './keyed.js'

/** The options of one transaction, all of them known. */
export interface Settings {
  /** The key, and what is done with it; undefined: none. */
  readonly keyed: Keyed<unknown> | undefined
  /** Isolation level. */
  readonly isolation: Isolation
  /** Whether it only reads. */
  readonly readOnly: boolean
  /** The end of everything, resolution included. */
  readonly deadline: Deadline
  /** What is kept of the deadline for resolution, in ms. */
  readonly reserveMs: number
  /** Longest wait for a connection, in ms. */
  readonly connectionWaitMs: number
  /** Longest run of the body, in ms. */
  readonly bodyLimitMs: number
  /** Longest wait for a lock, in ms. */
  readonly lockWaitMs: number
  /** Transactions at most. */
  readonly attempts: number
  /** The wait between them. */
  readonly backoff: Backoff
  /** What limits repeats. */
  readonly budget: Budget | undefined
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined
  /** What an effect in the body leads to. */
  readonly effects: EffectRule
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
}

// What resolution usually takes, and what it cannot do with less than; the latter also tells whether there is a reserve at all.
const usualReserveMs = 250
const leastReserveMs = 10
const mostAttempts = 50
// Numbers, since text would be read again for each transaction.
const usualMs = { deadline: 10_000, connectionWait: 1_000, bodyLimit: 5_000, lockWait: 2_000 } as const
const defaultBackoff = /* @__PURE__ */ fullJitter({ baseMs: 15, capMs: 500 })

/** Fills in the defaults. Refuses with ARGUMENT_INVALID, CAPABILITY_UNSUPPORTED, or the codes of durations and keys. */
export function settingsOf(
  manifest: Manifest,
  defaults: TransactionDefaults,
  options: TransactOptions,
  effects: EffectRule = effectRuleOf(defaults),
): Settings {
  if (typeof options !== 'object' || options === null) throw invalid('options')
  demandKnown(options, transactOptionNames, 'options')
  const clock = defaults.clock ?? systemClock
  const readOnly = options.readOnly ?? false
  if (typeof readOnly !== 'boolean') throw invalid('readOnly')
  const { key, signal } = options
  checkSignal(signal)
  if (key !== undefined && (typeof key !== 'object' || key === null)) throw invalid('key')
  if (readOnly && !manifest.readOnly) throw unsupported('readOnly', manifest)
  if (readOnly && options.key !== undefined)
    throw new RepriseError('ARGUMENT_INVALID', 'A transaction that only reads needs no key, and could not store one.')
  const nowMs = clock.monotonicMs()
  const deadline = earlier(deadlineOf(clock, defaults, options), currentDeadline())
  const totalMs = Math.max(0, deadline.expiresAtMs - nowMs)
  const certain = readOnly || manifest.commit === 'certain'
  return {
    keyed: options.key === undefined ? undefined : plainKey(storedKey(options.key.scope, options.key.key)),
    isolation: isolationOf(manifest, options.isolation),
    readOnly,
    deadline,
    reserveMs: certain ? 0 : reserveOf(totalMs),
    connectionWaitMs: limitMs('connectionWait', options.connectionWait, defaults.connectionWait, 0),
    bodyLimitMs: limitMs('bodyLimit', options.bodyLimit, defaults.bodyLimit, 1),
    lockWaitMs: limitMs('lockWait', options.lockWait, defaults.lockWait, 1),
    attempts: attemptsOf(options.attempts ?? defaults.attempts ?? 8),
    backoff: backoffOf(options.backoff ?? defaults.backoff),
    budget: budgetOf(options.budget ?? defaults.budget),
    signal: options.signal,
    effects,
    clock,
    random: defaults.random ?? systemRandom,
  }
}

/** The settings of one call with a key, out of those that its calls share. */
export function settingsOfCall(
  shared: Settings,
  keyed: Keyed<unknown>,
  deadline: Deadline,
  signal: AbortSignal | undefined,
): Settings {
  checkSignal(signal)
  const leftMs = Math.max(0, deadline.expiresAtMs - shared.clock.monotonicMs())
  return { ...shared, keyed, deadline, reserveMs: shared.reserveMs === 0 ? 0 : reserveOf(leftMs), signal }
}

function reserveOf(totalMs: number): number {
  // A short deadline is tried all the same: half of it is for the work.
  return Math.max(totalMs / 4, Math.min(totalMs / 2, usualReserveMs), leastReserveMs)
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') throw invalid('signal')
}

/**
 * When a call ends, as it was told or else as the domain was. Refuses what is no duration with DURATION_INVALID, and a deadline without its point in time with ARGUMENT_INVALID;
 * `details.option` is `deadline`.
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
  if (duration === undefined) return usualMs[option]
  try {
    return durationMs(duration, { minMs })
  } catch (cause) {
    const message = `The option ${option} is not a duration of at least ${minMs} ms.`
    throw new RepriseError('DURATION_INVALID', message, { cause, details: { option } })
  }
}

/** The wait between attempts as it was told, or the default. Refuses what is none with ARGUMENT_INVALID. */
export function backoffOf(backoff: Backoff | undefined): Backoff {
  if (backoff === undefined) return defaultBackoff
  if (typeof backoff?.delayMs === 'function') return backoff
  throw invalid('backoff')
}

function budgetOf(budget: Budget | undefined): Budget | undefined {
  const { succeeded, failed, tryRepeat } = Object(budget) as Partial<Budget>
  const sound = [succeeded, failed, tryRepeat].every((method) => typeof method === 'function')
  if (budget === undefined || sound) return budget
  throw invalid('budget')
}

function isolationOf(manifest: Manifest, asked: Isolation | undefined): Isolation {
  const usual = manifest.isolation[0]
  if (asked === undefined && usual !== undefined) return usual
  if (asked !== undefined && manifest.isolation.includes(asked)) return asked
  throw unsupported('isolation', manifest)
}

function attemptsOf(attempts: number): number {
  if (Number.isInteger(attempts) && attempts >= 1 && attempts <= mostAttempts) return attempts
  throw invalid('attempts')
}

function invalid(option: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option ${option} is not valid.`, { details: { option } })
}

function unsupported(option: 'readOnly' | 'isolation', manifest: Manifest): RepriseError {
  const why = manifest.because[option]
  return new RepriseError(
    'CAPABILITY_UNSUPPORTED',
    `The domain's manifest refuses the option ${option}${why === undefined ? '.' : `: ${why}`}`,
    { details: { option, engine: manifest.engine } },
  )
}
