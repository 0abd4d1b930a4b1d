// A definition with every default filled in, or refused: what cannot be safe is refused when it is defined, not at the
// first late repeat. And what such a definition answers.

import type { RecordMode } from '../atomicity/index.js'
import { checkFieldRule, keyWindow } from '../identity/index.js'
import { defined, demandWhole, durationMs, isRepriseError, RepriseError } from '../kernel/index.js'
import { type ForeignLayer, layersWith } from '../retry/index.js'
import type { OperationAnswers, OperationOptions, Reversibility } from './definition.js'
import type { OperationDomain } from './domain.js'
import { checkedCodecs, type OutcomeStorage } from './outcome.js'

/** What atomic and leased runners know of their definition alike. */
export interface OperationSettings<Input> {
  readonly name: string
  /** Where marker and effect commit. */
  readonly mode: RecordMode
  /** The options, as given. */
  readonly options: Pick<OperationOptions<Input, unknown>, 'scope' | 'key' | 'content' | 'terminal'> & {
    readonly fields: OperationOptions<Input, unknown>['fields']
  }
  /** How long an outcome is remembered, in ms. */
  readonly windowMs: number
  /** The longest time after which a repeat may still arrive, in ms. */
  readonly retryHorizonMs: number
  /** Whether that was declared. */
  readonly horizonDeclared: boolean
  /** The oldest key accepted, in ms; undefined: any. */
  readonly oldestKeyMs: number | undefined
  /** Whether duplicates are refused at once. */
  readonly refusesDuplicates: boolean
  /** How long a duplicate waits at most, in ms. */
  readonly waitMs: number
  /** How many duplicates of one key may wait in this process. */
  readonly mostWaiting: number
  /** How outcomes are stored. */
  readonly storage: OutcomeStorage
  /** What kind of effect is protected. */
  readonly reversibility: Reversibility
  /** Who mints the keys. */
  readonly mintedBy: string
}

const usual = { waitMs: 5_000, mostWaiting: 10_000, largestOutcome: 262_144 } as const
const mostWaiting = 1_000_000
const largestOutcome = 67_108_864
const nameShape = /^[A-Za-z][A-Za-z0-9_.:/-]{0,127}$/
const codeShape = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/

const sharedOptions: readonly string[] = [
  'scope',
  'key',
  'content',
  'fields',
  'window',
  'retryHorizon',
  'oldestKey',
  'duplicates',
  'wait',
  'waiters',
  'failures',
  'terminal',
  'codec',
  'earlierCodecs',
  'largestOutcome',
  'reversibility',
  'mintedBy',
  'run',
]

/** What a mode adds. */
export interface ModeOptions {
  /** Where marker and effect commit. */
  readonly mode: RecordMode
  /** The names of the options that only this mode has. */
  readonly names: readonly string[]
  /** How long a claim lives without a heartbeat, in ms; undefined in atomic mode. */
  readonly leaseMs?: number
}

/**
 * Fills in the defaults. Refuses with OPERATION_INVALID (`details.option` says which), SCOPE_MISSING,
 * WINDOW_SHORTER_THAN_HORIZON, WINDOW_SHORTER_THAN_LEASE or DURATION_INVALID.
 */
export function operationSettings<Input, Result, Code extends string>(
  name: string,
  options: OperationOptions<Input, Result, Code> & { readonly run: unknown },
  { mode, names, leaseMs }: ModeOptions,
): OperationSettings<Input> {
  checkDefinition(name, options)
  for (const option of Object.keys(options)) {
    if (!sharedOptions.includes(option) && !names.includes(option))
      throw invalidOption(option, 'There is no such option.')
  }
  if (typeof options.scope !== 'function') {
    throw new RepriseError(
      'SCOPE_MISSING',
      'An operation says who may share a key: without a scope a stranger with the same key gets somebody else’s outcome.',
    )
  }
  checkFunctions(options)
  checkFields(options)
  const times = timesOf(options, leaseMs)
  const { key, scope, content, fields, terminal, duplicates = 'wait', reversibility = 'guarded' } = options
  if (duplicates !== 'wait' && duplicates !== 'refuse') throw invalidOption('duplicates', "It is 'wait' or 'refuse'.")
  return {
    name,
    mode,
    options: { key, scope, fields, ...defined({ content, terminal }) },
    ...times,
    refusesDuplicates: duplicates === 'refuse',
    mostWaiting: whole('waiters', options.waiters ?? usual.mostWaiting, mostWaiting),
    storage: {
      ...checkedCodecs(options.codec, options.earlierCodecs ?? []),
      largestBytes: whole('largestOutcome', options.largestOutcome ?? usual.largestOutcome, largestOutcome),
      failures: codesOf(options.failures ?? []),
      rememberedMs: times.windowMs,
    },
    reversibility: reversibilityOf(reversibility),
    mintedBy: mintedByOf(options.mintedBy ?? 'caller'),
  }
}

/** Refuses with OPERATION_INVALID what is no name, or no options. */
export function checkDefinition(name: unknown, options: unknown): void {
  if (typeof name !== 'string' || !nameShape.test(name)) {
    throw invalidOption('name', 'An operation is named by 1 to 128 letters, digits and _ . : / -, a letter first.')
  }
  if (typeof options !== 'object' || options === null) throw invalidOption('options', 'An operation needs its options.')
}

/** The refusal of an option. */
export function invalidOption(option: string, message: string, cause?: unknown): RepriseError {
  return new RepriseError('OPERATION_INVALID', `The option ${option} is not valid. ${message}`, {
    details: { option },
    ...defined({ cause }),
  })
}

function checkFunctions(options: OperationOptions<never, unknown> & { readonly run: unknown }): void {
  const { key, run, content, terminal } = options as unknown as Record<string, unknown>
  if (typeof key !== 'function') throw invalidOption('key', 'It is a function from an input to its key.')
  if (typeof run !== 'function') throw invalidOption('run', 'It is the function that does the work.')
  if (content !== undefined && content !== 'none' && typeof content !== 'function') {
    throw invalidOption('content', "It is a function from an input to its content, or 'none'.")
  }
  if (terminal !== undefined && typeof terminal !== 'function') {
    throw invalidOption('terminal', 'It is a function from an error to a failure.')
  }
}

function checkFields({ fields, content }: OperationOptions<never, unknown>): void {
  if (fields === undefined) return
  if (content === 'none') throw invalidOption('fields', "With the content 'none' there is nothing to choose from.")
  const names = typeof fields === 'object' && fields !== null ? Object.keys(fields) : []
  if (names.length !== 1 || (names[0] !== 'only' && names[0] !== 'omit')) {
    throw invalidOption('fields', 'It is { only: […] } or { omit: […] }.')
  }
  try {
    checkFieldRule(fields)
  } catch (cause) {
    throw invalidOption('fields', isRepriseError(cause) ? cause.message : 'It lists JSON Pointers.', cause)
  }
}

function timesOf(options: OperationOptions<never, unknown>, leaseMs: number | undefined) {
  const windowMs = durationMs(options.window, { minMs: 1, option: 'window' })
  const declared = options.retryHorizon
  const horizonMs = declared === undefined ? windowMs : durationMs(declared, { option: 'retryHorizon' })
  const { retryHorizonMs } = keyWindow({ window: windowMs, retryHorizon: horizonMs })
  if (leaseMs !== undefined && windowMs < leaseMs) {
    throw new RepriseError(
      'WINDOW_SHORTER_THAN_LEASE',
      `A window of ${windowMs} ms is shorter than a lease of ${leaseMs} ms: the memory of a key would end before a claim on it does.`,
      { details: { windowMs, leaseMs } },
    )
  }
  const oldestKeyMs =
    options.oldestKey === undefined ? undefined : durationMs(options.oldestKey, { minMs: 1, option: 'oldestKey' })
  if (oldestKeyMs !== undefined && oldestKeyMs > windowMs) {
    throw invalidOption(
      'oldestKey',
      'A key that is accepted for longer than its outcome is remembered would be carried out anew.',
    )
  }
  const waitMs = options.wait === undefined ? usual.waitMs : durationMs(options.wait, { option: 'wait' })
  return { windowMs, retryHorizonMs, horizonDeclared: declared !== undefined, oldestKeyMs, waitMs }
}

function codesOf(codes: readonly string[]): ReadonlySet<string> {
  const sound = Array.isArray(codes) && codes.every((code) => typeof code === 'string' && codeShape.test(code))
  if (!sound) throw invalidOption('failures', 'It lists codes of 1 to 64 letters, digits and _ . -, a letter first.')
  return new Set(codes)
}

function reversibilityOf(word: Reversibility): Reversibility {
  if (['repeatable', 'guarded', 'compensable', 'irreversible'].includes(word)) return word
  throw invalidOption('reversibility', 'It is repeatable, guarded, compensable or irreversible.')
}

function mintedByOf(words: string): string {
  if (typeof words === 'string' && words.length > 0 && words.length <= 200) return words
  throw invalidOption('mintedBy', 'It is a text of 1 to 200 characters.')
}

function whole(option: 'waiters' | 'largestOutcome', value: number, most: number): number {
  return demandWhole(value, 0, most, (why) => invalidOption(option, why))
}

/** What the mode of an operation says of it. */
export interface ModeAnswers extends Pick<OperationAnswers, 'mode' | 'rung' | 'placement' | 'leaseMs' | 'recovery'> {
  /** What its domain holds. */
  readonly holds: OperationAnswers['domain']['holds']
}

/** Which layers repeat, those of others included. */
export function placementOf(
  layer: OperationAnswers['placement']['layer'],
  attempts: number,
  foreign: readonly ForeignLayer[],
): OperationAnswers['placement'] {
  const foreignLayers = Object.freeze(foreign.map((one) => Object.freeze({ ...one })))
  return Object.freeze({ layer, attempts, foreignLayers, declared: layersWith(attempts, foreign).declared })
}

/** The five answers of a definition: identity, rung, placement, reversibility, domain. */
export function answersOf<Mode extends ModeAnswers>(
  settings: OperationSettings<never>,
  domain: OperationDomain,
  { mode, rung, placement, holds, leaseMs, recovery }: Mode,
): OperationAnswers & { readonly mode: Mode['mode'] } {
  const { name, mintedBy, windowMs, retryHorizonMs, horizonDeclared, options, reversibility } = settings
  const content = options.content === 'none' ? 'ignored' : 'compared'
  return Object.freeze({
    name,
    mode,
    identity: Object.freeze({ mintedBy, windowMs, retryHorizonMs, horizonDeclared, content }),
    rung,
    placement,
    reversibility,
    domain: Object.freeze({ name: domain.name, engine: domain.manifest.engine, holds }),
    leaseMs,
    recovery,
  })
}
