// What a client can be told, and what is refused when it is made.

import { demandKnown, type ErrorCode, RepriseError } from '../../kernel/index.js'
import type { Breaker, Budget, ConcurrencyLimit, RetryPolicyOptions } from '../../retry/index.js'
import type { Origins } from './origins.js'

/** Everything a client can be told. All of it has a default. */
export interface HttpClientOptions {
  /** The fetch that sends. Default: the global one. */
  readonly fetch?: typeof fetch
  /**
   * How often, how long, and when to stop. Budget, breaker and limit are refused in it, since they are made per origin,
   * by the options below. Default: those of `retryPolicy`.
   */
  readonly policy?: Omit<RetryPolicyOptions, 'budget' | 'breaker' | 'limit'>
  /** Makes the budget of an origin. Default `tokenBudget()`; false: none, and 429 and 503 are not repeated. */
  readonly budget?: ((origin: string) => Budget) | false
  /** Makes the breaker of an origin. Default: none. */
  readonly breaker?: (origin: string) => Breaker
  /**
   * Makes the limit of an origin on attempts that are out at a time. An attempt is out until the head of its answer is
   * there, with `read` until its body is. Default: none.
   */
  readonly limit?: (origin: string) => ConcurrencyLimit
  /**
   * How many origins have a budget, a breaker and a limit of their own. The least recently used leaves first, of those
   * whose budget is full, whose breaker has seen no failure and of whose attempts none is out; while there is none, all
   * further origins share one budget and one limit, and have no breaker. 1 to 100,000, default 100.
   */
  readonly maxOrigins?: number
  /** Origins that carry out an intent once for all requests with its key. Default: none; a key alone is no guard. */
  readonly honoursKeys?: Origins
  /**
   * Reprise servers that may know attempt, deadline and ownership, and whose problems are believed: 409 and 503 that
   * say `retryable` were refused before the handler ran. Default: none.
   */
  readonly trusts?: Origins
  /** Origins that answer 408 and 503 only to what they have not begun to process. Default: none. */
  readonly refusesBeforeProcessing?: Origins
  /** The largest form that is kept for a repeat, in bytes; a larger one is sent once. Default 16 MiB. */
  readonly maxBodyBytes?: number
  /** The largest answer that `read` takes, in bytes. Default 16 MiB. */
  readonly maxReadBytes?: number
}

type Demand = readonly [holds: (option: unknown) => boolean, must: string]

const isFunction = (option: unknown): boolean => typeof option === 'function'
const origins: Demand = [(option) => isFunction(option) || Array.isArray(option), 'an array of origins or a function']
// Infinity is a limit that nothing reaches.
const bytes: Demand = [(option) => typeof option === 'number' && option >= 0, 'a number of bytes from 0']
const wholeTo = (most: number) => (option: unknown) =>
  Number.isInteger(option) && (option as number) >= 1 && (option as number) <= most

const demands: Readonly<Record<keyof HttpClientOptions, Demand>> = {
  fetch: [isFunction, 'a function'],
  policy: [(option) => typeof option === 'object' && option !== null, 'an object'],
  budget: [
    (option) => option === false || isFunction(option),
    'a function that makes the budget of an origin, or false',
  ],
  breaker: [isFunction, 'a function that makes the breaker of an origin'],
  limit: [isFunction, 'a function that makes the limit of an origin'],
  maxOrigins: [wholeTo(100_000), 'a whole number from 1 to 100000'],
  honoursKeys: origins,
  trusts: origins,
  refusesBeforeProcessing: origins,
  maxBodyBytes: bytes,
  maxReadBytes: bytes,
}

/** Refuses what cannot be, by the option's name, and what is not known. Callers without types may give anything. */
export function demandClientOptions(options: HttpClientOptions): void {
  if (typeof options !== 'object' || options === null) throw refusal('ARGUMENT_INVALID', 'options', 'must be an object')
  for (const [name, [holds, must]] of Object.entries(demands)) {
    const option = options[name as keyof HttpClientOptions]
    if (option !== undefined && !holds(option)) throw refusal('ARGUMENT_INVALID', name, `must be ${must}`)
  }
  demandKnown(options, Object.keys(demands), 'options')
  const policy: RetryPolicyOptions = options.policy ?? {}
  for (const part of ['budget', 'breaker', 'limit'] as const) {
    if (policy[part] === undefined) continue
    const why = `is not for a client, which makes one for each origin: give it the option ${part}`
    throw refusal('POLICY_INVALID', `policy.${part}`, why)
  }
}

function refusal(code: ErrorCode, path: string, why: string): RepriseError {
  return new RepriseError(code, `${path} ${why}.`, { details: { path } })
}
