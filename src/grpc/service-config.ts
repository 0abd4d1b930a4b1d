// The retry rules of a gRPC service config, read and validated as gRPC proposal A6 says.
//
// The whole config is checked, also the parts for other methods: A6 refuses it as a whole.

import { RepriseError } from '../kernel/index.js'
import { type BackoffData, type BudgetData, backoffFrom, tokenBudget } from '../retry/index.js'

/** A hedging policy of a service config. */
export interface HedgeData {
  /** Calls in all, the first included: 2 to 5. */
  readonly attempts: number
  /** The time between two calls, in ms; 0 sends all of them at once. */
  readonly delayMs: number
  /** Numbers of the gRPC statuses that leave the other calls running. */
  readonly nonFatalStatusCodes: readonly number[]
}

/** What a service config says about one method. */
export interface ServiceConfigRules {
  /** Calls in all, the first included: 2 to 5; 1 without a retry policy, as gRPC never retries on top of hedging. */
  readonly attempts: number
  /** The waits between attempts. */
  readonly backoff: BackoffData
  /** From `retryThrottling`; one for all methods of a server. */
  readonly budget?: BudgetData
  /** From `hedgingPolicy`. */
  readonly hedge?: HedgeData
  /** Numbers of the gRPC statuses that are repeated. */
  readonly retryableStatusCodes: readonly number[]
}

type Fields = Readonly<Record<string, unknown>>

// By number (grpc/doc/statuscodes.md).
const statusNames = (
  'OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED ' +
  'RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED'
).split(' ')

/**
 * The rules for a method, named `package.Service/Method` as on the wire (a leading slash may be there). The most exact
 * name in the config wins: service and method, then service, then the default; of equals, the first. What is wrong is
 * refused with `POLICY_INVALID` and its place in the config as `details.path`.
 */
export function rulesFromServiceConfig(config: unknown, method: string): ServiceConfigRules {
  const { methodConfig = [], retryThrottling } = fields(config, 'config')
  const byName = new Map<string, ServiceConfigRules>()
  for (const [entry, path] of list(methodConfig, 'methodConfig')) {
    const { name = [], retryPolicy, hedgingPolicy } = fields(entry, path)
    demand(retryPolicy === undefined || hedgingPolicy === undefined, `${path}.hedgingPolicy`)
    let rules = single
    if (retryPolicy !== undefined) rules = retrying(retryPolicy, `${path}.retryPolicy`)
    if (hedgingPolicy !== undefined) rules = hedging(hedgingPolicy, `${path}.hedgingPolicy`)
    for (const [value, place] of list(name, `${path}.name`)) {
      const { service = '', method: called = '' } = fields(value, place)
      demand(typeof service === 'string' && typeof called === 'string' && (service !== '' || called === ''), place)
      const full = `${service}/${called}`
      if (!byName.has(full)) byName.set(full, rules)
    }
  }
  const full = method.replace(/^\//, '')
  const rules = byName.get(full) ?? byName.get(full.replace(/[^/]*$/, '')) ?? byName.get('/') ?? single
  return retryThrottling === undefined ? rules : { ...rules, budget: throttling(retryThrottling) }
}

const single: ServiceConfigRules = {
  attempts: 1,
  backoff: { kind: 'constant', baseMs: 0, capMs: 0 },
  retryableStatusCodes: [],
}

function retrying(value: unknown, path: string): ServiceConfigRules {
  const policy = fields(value, path)
  const attempts = attemptsOf(policy, path)
  const { data: backoff } = backoffFrom({
    kind: 'grpc',
    baseMs: durationOf(policy, 'initialBackoff', path, aboveZero),
    capMs: durationOf(policy, 'maxBackoff', path, aboveZero),
    multiplier: numberOf(policy, 'backoffMultiplier', path, aboveZero),
  })
  const retryableStatusCodes = statusCodes(policy['retryableStatusCodes'], `${path}.retryableStatusCodes`)
  demand(retryableStatusCodes.length > 0, `${path}.retryableStatusCodes`)
  return { attempts, backoff, retryableStatusCodes }
}

function hedging(value: unknown, path: string): ServiceConfigRules {
  const policy = { hedgingDelay: '0s', nonFatalStatusCodes: [], ...fields(value, path) }
  const attempts = attemptsOf(policy, path)
  const delayMs = durationOf(policy, 'hedgingDelay', path, 0)
  const nonFatalStatusCodes = statusCodes(policy.nonFatalStatusCodes, `${path}.nonFatalStatusCodes`)
  return { ...single, hedge: { attempts, delayMs, nonFatalStatusCodes } }
}

function throttling(value: unknown): BudgetData {
  const policy = fields(value, 'retryThrottling')
  const maxTokens = numberOf(policy, 'maxTokens', 'retryThrottling', 1, 1000)
  demand(Number.isInteger(maxTokens), 'retryThrottling.maxTokens')
  return tokenBudget({ maxTokens, tokenRatio: numberOf(policy, 'tokenRatio', 'retryThrottling', 0.001) }).data
}

function attemptsOf(policy: Fields, path: string): number {
  const attempts = numberOf(policy, 'maxAttempts', path, 2)
  demand(Number.isInteger(attempts), `${path}.maxAttempts`)
  return Math.min(attempts, 5)
}

// The JSON form of a proto3 Duration: decimal seconds with at most nine decimals, and an s. The exponent moves the
// point in the text, so that 0.1s is exactly 100.
function durationOf(policy: Fields, name: string, path: string, leastMs: number): number {
  const text = policy[name]
  const [, seconds] = (typeof text === 'string' && /^(\d{1,8}(?:\.\d{1,9})?)s$/.exec(text)) || []
  const ms = Number(`${seconds}e3`)
  demand(ms >= leastMs, `${path}.${name}`)
  return ms
}

const aboveZero = Number.MIN_VALUE

function numberOf(policy: Fields, name: string, path: string, least: number, most = Number.MAX_VALUE): number {
  const value = policy[name]
  demand(typeof value === 'number' && value >= least && value <= most, `${path}.${name}`)
  return value
}

function statusCodes(value: unknown, path: string): readonly number[] {
  return list(value, path).map(([code, place]) => {
    const status = typeof code === 'string' ? statusNames.indexOf(code.toUpperCase()) : code
    demand(Number.isInteger(status) && statusNames[status as number] !== undefined, place)
    return status as number
  })
}

function fields(value: unknown, path: string): Fields {
  demand(typeof value === 'object' && value !== null && !Array.isArray(value), path)
  return value as Fields
}

// Each member with its place.
function list(value: unknown, path: string): [unknown, string][] {
  demand(Array.isArray(value), path)
  return value.map((member, index) => [member, `${path}[${index}]`])
}

function demand(holds: boolean, path: string): asserts holds {
  if (!holds) throw new RepriseError('POLICY_INVALID', `Not valid: ${path}.`, { details: { path } })
}
