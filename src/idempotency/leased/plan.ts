// A leased operation as its runner needs it: every default filled in, and refused here where it could not be safe.

import type { RecordStore } from '../../atomicity/index.js'
import { type Duration, durationMs, RepriseError } from '../../kernel/index.js'
import { areForeignLayers, type Classifier, defaultClassifier, type ForeignLayer, firstOf } from '../../retry/index.js'
import type { OperationAnswers, OperationOptions } from '../definition.js'
import { type OperationDomain, operationDomain } from '../domain.js'
import type { Recovery } from '../machine.js'
import type { Failure } from '../outcome.js'
import {
  answersOf,
  checkDefinition,
  invalidOption,
  type OperationSettings,
  operationSettings,
  placementOf,
} from '../settings.js'
import type { Lease } from './lease.js'
import { isRecover, type Recover, type ResolveCall, type ResolveFunction, resolve } from './recovery.js'

/** Options of a leased operation. */
export interface LeasedOptions<Input, Result, Code extends string = string>
  extends OperationOptions<Input, Result, Code> {
  /** The store that keeps the marker. The effect lies outside of it. */
  readonly store: RecordStore
  /** How long a claim lives without a heartbeat; heartbeats come every third of it. At least 30 ms. */
  readonly lease: Duration
  /**
   * What is done where the effect may have happened: `rerunKeyed(window)`, `resolve(fn)` or `hold()`. Mandatory, and
   * refused with RECOVERY_MISSING, unless the effect is declared `repeatable`: then it is simply run again. A function
   * is short for `resolve(fn)`, and knows the type of its input by itself.
   */
  readonly recover?:
    | Recover<NoInfer<Input>, NoInfer<Result>, NoInfer<Code>>
    | ResolveFunction<NoInfer<Input>, NoInfer<Result>, NoInfer<Code>>
  /**
   * Carries the intent out. What it sends goes through {@link Lease.effect}. A final failure is returned with
   * `fail(…)`.
   */
  readonly run: (lease: Lease, input: Input) => PromiseLike<Result | Failure<Code>> | Result | Failure<Code>
  /**
   * How long past its end a lease is left alone before somebody takes it over, for clocks that run apart. Default a
   * tenth of the lease, at least `'1s'`.
   */
  readonly margin?: Duration
  /**
   * How much of the lease must be left, by the last confirmed renewal, for an external call to begin; otherwise it is
   * renewed first. At most two thirds; default half.
   */
  readonly leftForCall?: Duration
  /**
   * Judges what a call threw, before the usual classifiers: only `happened: 'no'` proves that nothing was sent.
   * Default: none.
   */
  readonly classify?: Classifier
  /**
   * Whether the input is kept, as JSON, until the outcome is known, so that a sweep can run the operation again by
   * itself. Default false.
   */
  readonly keepInput?: boolean
  /**
   * How long a call may take. When it is over nothing more is sent and the lease is no longer renewed; the call itself
   * ends when the lease and its margin do, at the latest. Default: the domain's.
   */
  readonly deadline?: Duration
  /** When a sweep first looks at an outcome that has become unknown. Default `'30s'`. */
  readonly lookAfter?: Duration
  /**
   * Layers that are not ours and repeat around the operation or below it: `[{ name: 'gateway', attempts: 2 }]`. They
   * count in its answers. Default: none.
   */
  readonly foreignLayers?: readonly ForeignLayer[]
}

/** The answers of a leased operation. */
type LeasedAnswers = OperationAnswers & { readonly mode: 'leased' }

/** A leased operation, every default filled in. */
export interface Plan {
  readonly settings: OperationSettings<unknown>
  readonly domain: OperationDomain
  /** How long a claim lives without a heartbeat, in ms. */
  readonly leaseMs: number
  /** How long past its end a lease is left alone, in ms. */
  readonly marginMs: number
  /** How much of the lease must be left for a call to begin, in ms. */
  readonly leftForCallMs: number
  /** How long a call takes by default, in ms. */
  readonly deadlineMs: number
  /** When a sweep first looks at an unknown outcome, in ms. */
  readonly lookAfterMs: number
  /** Whether the input is kept. */
  readonly keepInput: boolean
  /** What the machine knows of the recovery. */
  readonly recovery: Recovery
  /** Asks what happened; undefined where nobody can be asked. */
  readonly ask: ((call: ResolveCall<unknown>) => unknown) | undefined
  /** Judges what a call threw. */
  readonly classify: Classifier
  readonly run: (lease: Lease, input: unknown) => unknown
  readonly answers: LeasedAnswers
}

const leastLeaseMs = 30
const leastMarginMs = 1_000
const optionNames: readonly string[] = [
  'store',
  'lease',
  'recover',
  'margin',
  'leftForCall',
  'classify',
  'keepInput',
  'deadline',
  'lookAfter',
  'foreignLayers',
]

/**
 * Checks a definition. Refuses with OPERATION_INVALID, SCOPE_MISSING, RECOVERY_MISSING, WINDOW_SHORTER_THAN_LEASE,
 * WINDOW_SHORTER_THAN_HORIZON, DURATION_INVALID or CAPABILITY_UNSUPPORTED.
 */
export function planOf<Input, Result, Code extends string>(
  name: string,
  options: LeasedOptions<Input, Result, Code>,
): Plan {
  checkDefinition(name, options)
  const leaseMs = durationMs(options.lease, { minMs: leastLeaseMs, option: 'lease' })
  const settings = operationSettings(name, options, { mode: 'leased', names: optionNames, leaseMs })
  const { store, classify, keepInput = false, deadline, foreignLayers = [] } = options
  const named = typeof store?.name === 'string' && typeof store.manifest?.engine === 'string'
  if (!named || typeof store.records?.swap !== 'function') {
    throw invalidOption('store', 'It has a name, a manifest and records, as every domain does.')
  }
  if (typeof keepInput !== 'boolean') throw invalidOption('keepInput', 'It is true or false.')
  if (classify !== undefined && typeof classify !== 'function') throw invalidOption('classify', 'It is a classifier.')
  if (!areForeignLayers(foreignLayers)) {
    throw invalidOption('foreignLayers', 'It lists layers, each with a name and its attempts, from 1 to 100.')
  }
  const domain = operationDomain(store)
  const marginMs = durationMs(options.margin ?? Math.max(leastMarginMs, leaseMs / 10), { option: 'margin' })
  const leftForCallMs = durationMs(options.leftForCall ?? leaseMs / 2, { option: 'leftForCall' })
  if (leftForCallMs > (leaseMs * 2) / 3) throw invalidOption('leftForCall', 'It is at most two thirds of the lease.')
  const { rule, ask } = recoverOf(options)
  if (rule.kind === 'rerun' && rule.windowMs < leaseMs + marginMs) {
    throw new RepriseError(
      'WINDOW_SHORTER_THAN_LEASE',
      'The receiver forgets the key before a claim can be taken over: running it again would never be safe.',
      { details: { option: 'recover', windowMs: rule.windowMs, leaseMs: leaseMs + marginMs } },
    )
  }
  return {
    settings: settings as unknown as OperationSettings<unknown>,
    domain,
    leaseMs,
    marginMs,
    leftForCallMs,
    deadlineMs: deadline === undefined ? domain.deadlineMs : durationMs(deadline, { minMs: 1, option: 'deadline' }),
    lookAfterMs: durationMs(options.lookAfter ?? '30s', { option: 'lookAfter' }),
    keepInput,
    recovery: rule,
    ask: ask as Plan['ask'],
    classify: classify === undefined ? defaultClassifier : firstOf(classify, defaultClassifier),
    run: options.run as Plan['run'],
    answers: answersOf(settings, domain, {
      mode: 'leased',
      rung: 'key',
      placement: placementOf('application', 1, foreignLayers),
      holds: 'marker',
      leaseMs,
      recovery: rule,
    }),
  }
}

function recoverOf<Input, Result, Code extends string>({
  recover,
  reversibility = 'guarded',
}: LeasedOptions<Input, Result, Code>): Recover<Input, Result, Code> {
  if (recover !== undefined) {
    if (typeof recover === 'function') return resolve(recover)
    if (isRecover(recover)) return recover
    throw invalidOption('recover', 'It is rerunKeyed(…), resolve(…) or hold().')
  }
  // Running it again changes nothing, so it may be done at any time.
  if (reversibility === 'repeatable') return { rule: { kind: 'rerun', windowMs: Number.POSITIVE_INFINITY } }
  throw new RepriseError(
    'RECOVERY_MISSING',
    'A leased operation says what to do when its effect may have happened: recover is rerunKeyed(…), resolve(…) or hold().',
    { details: { reversibility } },
  )
}
