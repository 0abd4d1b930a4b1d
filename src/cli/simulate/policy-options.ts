// A policy as options of the command line, named like the members of the policy's data. They override those of a policy
// file.

import { defined } from '../../kernel/index.js'
import {
  type BackoffData,
  type BreakerData,
  type BudgetData,
  type ConcurrencyData,
  type PolicyData,
  policyFrom,
} from '../../retry/index.js'
import { type GivenOptions, type Option, type OptionGroup, UsageError } from '../option-table.js'

/** Chooses a method of a gRPC service config. */
export const methodOption: Option = {
  name: 'method',
  kind: 'text',
  value: 'SERVICE/METHOD',
  text: 'of a gRPC service config (the first one that has a policy)',
}

/** Options that make a policy. Defaults are those of `retryPolicy`. */
export const policyOptions: readonly OptionGroup[] = [
  {
    title: 'Policy',
    options: [
      {
        name: 'policy',
        kind: 'text',
        value: 'FILE',
        text: 'your own: its JSON ("budget": null for none), a gRPC service config, or a module that exports it as default',
      },
      methodOption,
      { name: 'attempts', kind: 'number', text: 'calls in all, the first included, 1 to 20 (3)' },
      { name: 'attempt-timeout-ms', kind: 'number', text: 'how long a client waits for an answer (1000)' },
      { name: 'deadline-ms', kind: 'number', text: 'how long a call may take with all its waits (no limit)' },
      { name: 'no-hedge', kind: 'flag', text: 'leaves out the hedging of the policy, which is not simulated' },
    ],
  },
  {
    title: 'Backoff',
    options: [
      {
        name: 'backoff',
        kind: 'choice',
        choices: ['full', 'equal', 'none', 'decorrelated', 'constant', 'grpc'],
        text: 'kind of jitter; none: exponential without jitter (full)',
      },
      { name: 'base-ms', kind: 'number', text: 'first ceiling (50)' },
      { name: 'cap-ms', kind: 'number', text: 'highest ceiling (2000)' },
      { name: 'multiplier', kind: 'number', text: 'growth per failure (2; decorrelated 3, constant 1)' },
    ],
  },
  {
    title: 'Budget, one for each client',
    options: [
      {
        name: 'budget',
        kind: 'choice',
        choices: ['token', 'ratio', 'none'],
        text: 'token: the throttle of gRPC A6; ratio: a share of calls (token)',
      },
      { name: 'max-tokens', kind: 'number', text: 'token: at the start and at most (10)' },
      { name: 'token-ratio', kind: 'number', text: 'token: gained by a success (0.1)' },
      { name: 'ratio', kind: 'number', text: 'ratio: repeats per call (0.1)' },
      { name: 'budget-window-ms', kind: 'number', text: 'ratio: how far back calls count (10000)' },
      { name: 'refill-per-second', kind: 'number', text: 'ratio: repeats regained whatever the traffic (0.01)' },
      { name: 'floor-per-second', kind: 'number', text: 'ratio: repeats that are always allowed (0)' },
      { name: 'initial', kind: 'number', text: 'ratio: repeats in hand at the start (1)' },
    ],
  },
  {
    title: 'Breaker, one for each client',
    options: [
      {
        name: 'breaker',
        kind: 'choice',
        choices: ['consecutive', 'count', 'window', 'none'],
        text: 'what opens it (none)',
      },
      { name: 'failures', kind: 'number', text: 'consecutive: failures in a row (5)' },
      { name: 'size', kind: 'number', text: 'count: latest calls that are judged (100)' },
      { name: 'breaker-window-ms', kind: 'number', text: 'window: how far back calls are judged (30000)' },
      { name: 'failure-ratio', kind: 'number', text: 'count, window: share of failures (0.5)' },
      { name: 'minimum-calls', kind: 'number', text: 'count, window: fewer prove nothing (10)' },
      { name: 'open-for-ms', kind: 'number', text: 'how long it stays open (10000)' },
      { name: 'probes', kind: 'number', text: 'calls let in while half-open (1)' },
    ],
  },
  {
    title: 'Limit, one for each client',
    options: [
      { name: 'most', kind: 'number', text: 'attempts that may be out at a time (no limit)' },
      { name: 'queue', kind: 'number', text: 'attempts that may wait for a slot (0)' },
    ],
  },
]

/**
 * The policy without any options: the defaults of `retryPolicy`, and a time-out, since the simulated service needs one.
 */
export const usualPolicy: PolicyData = {
  name: 'policy',
  attempts: 3,
  backoff: { kind: 'full', baseMs: 50, capMs: 2000 },
  budget: { kind: 'token', maxTokens: 10, tokenRatio: 0.1 },
  attemptTimeoutMs: 1000,
  minimumRemainderMs: 1,
  maxRetryAfterMs: 60_000,
  layer: 'inherit',
}

/**
 * The policy of a file, or the usual one, with the changes of the options. Refuses invalid values as `retryPolicy`
 * does.
 */
export function policyWith(given: GivenOptions, file: PolicyData = usualPolicy): PolicyData {
  const { backoff, budget, breaker, limit, hedgeAfterMs, ...rest } = file
  const changed: PolicyData = {
    ...rest,
    ...given.numbers({
      attempts: 'attempts',
      'attempt-timeout-ms': 'attemptTimeoutMs',
      'deadline-ms': 'deadlineMs',
    }),
    backoff: backoffWith(given, backoff),
    ...defined({
      budget: budgetWith(given, budget),
      breaker: breakerWith(given, breaker),
      limit: limitWith(given, limit),
      hedgeAfterMs: given.has('no-hedge') ? undefined : hedgeAfterMs,
    }),
  }
  return policyFrom(changed).toJSON()
}

function backoffWith(given: GivenOptions, before: BackoffData): BackoffData {
  const kind = (given.text('backoff') as BackoffData['kind'] | undefined) ?? before.kind
  // A multiplier that was meant for another kind is not taken over.
  const start: BackoffData = kind === before.kind ? before : { kind, baseMs: before.baseMs, capMs: before.capMs }
  const data: BackoffData = {
    ...start,
    ...given.numbers({ 'base-ms': 'baseMs', 'cap-ms': 'capMs', multiplier: 'multiplier' }),
  }
  return kind === 'constant' ? { ...data, capMs: data.baseMs } : data
}

const budgets = {
  token: { kind: 'token', maxTokens: 10, tokenRatio: 0.1 },
  ratio: { kind: 'ratio', ratio: 0.1, windowMs: 10_000, refillPerSecond: 0.01, floorPerSecond: 0, initial: 1 },
} as const satisfies Readonly<Record<string, BudgetData>>

const budgetNames = {
  token: { 'max-tokens': 'maxTokens', 'token-ratio': 'tokenRatio' },
  ratio: {
    ratio: 'ratio',
    'budget-window-ms': 'windowMs',
    'refill-per-second': 'refillPerSecond',
    'floor-per-second': 'floorPerSecond',
    initial: 'initial',
  },
} as const

function budgetWith(given: GivenOptions, before: BudgetData | undefined): BudgetData | undefined {
  const kind = (given.text('budget') as BudgetData['kind'] | 'none' | undefined) ?? before?.kind ?? 'none'
  refuseOthers(given, 'budget', kind, budgetNames)
  if (kind === 'none') return undefined
  const start = before?.kind === kind ? before : budgets[kind]
  return { ...start, ...given.numbers(budgetNames[kind] as Readonly<Record<string, string>>) } as BudgetData
}

const openFor: BackoffData = { kind: 'constant', baseMs: 10_000, capMs: 10_000 }
const breakers = {
  consecutive: { kind: 'consecutive', failures: 5, openFor, probes: 1 },
  count: { kind: 'count', size: 100, failureRatio: 0.5, minimumCalls: 10, openFor, probes: 1 },
  window: { kind: 'window', windowMs: 30_000, failureRatio: 0.5, minimumCalls: 10, openFor, probes: 1 },
} as const satisfies Readonly<Record<string, BreakerData>>

const share = { 'failure-ratio': 'failureRatio', 'minimum-calls': 'minimumCalls', probes: 'probes', 'open-for-ms': '' }
const breakerNames = {
  consecutive: { failures: 'failures', probes: 'probes', 'open-for-ms': '' },
  count: { size: 'size', ...share },
  window: { 'breaker-window-ms': 'windowMs', ...share },
} as const

function breakerWith(given: GivenOptions, before: BreakerData | undefined): BreakerData | undefined {
  const kind = (given.text('breaker') as BreakerData['kind'] | 'none' | undefined) ?? before?.kind ?? 'none'
  refuseOthers(given, 'breaker', kind, breakerNames)
  if (kind === 'none') return undefined
  const start = before?.kind === kind ? before : breakers[kind]
  const { 'open-for-ms': _, ...names } = breakerNames[kind]
  const openForMs = given.number('open-for-ms')
  return {
    ...start,
    ...given.numbers(names as Readonly<Record<string, string>>),
    ...(openForMs !== undefined && { openFor: { kind: 'constant', baseMs: openForMs, capMs: openForMs } }),
  } as BreakerData
}

function limitWith(given: GivenOptions, before: ConcurrencyData | undefined): ConcurrencyData | undefined {
  const changed = { kind: 'concurrency', queue: 0, ...before, ...given.numbers({ most: 'most', queue: 'queue' }) }
  if ('most' in changed) return changed as ConcurrencyData
  if (given.has('queue')) throw new UsageError('--queue needs --most')
  return undefined
}

/** Refuses an option that belongs to another kind than the chosen one, since it would change nothing. */
function refuseOthers(
  given: GivenOptions,
  part: string,
  kind: string,
  names: Readonly<Record<string, Readonly<Record<string, string>>>>,
): void {
  const own = names[kind] ?? {}
  for (const [other, options] of Object.entries(names)) {
    const stray = Object.keys(options).find((name) => given.has(name) && !(name in own))
    if (stray !== undefined) throw new UsageError(`--${stray} needs --${part} ${other}; it is ${kind} here`)
  }
}
