// The scene of a retry storm: a service, its load, a trigger, and clients that repeat. All with limits.

import { RepriseError } from '../kernel/index.js'
import { backoffFrom, breakerFrom, budgetFrom, type PolicyData, Slots } from '../retry/index.js'
import { type QuotaBudgetData, type QuotaBudgetOptions, quotaData } from './peer-quota.js'

/** What a full queue means to the client it turns away. `overload`: a 503. `unsent`: the connection was refused. */
export type Refusal = 'overload' | 'unsent'

/** Settings of the storm model. The defaults are a service at 70 % of its capacity that loses 70 % of it for 10 s. */
export interface StormOptions {
  /** The policy that every client follows, each with a budget, a breaker and a limit of its own. */
  readonly policy: PolicyData
  /** Intents that arrive per second (a Poisson process), above 0 and up to 100,000. Default 700. */
  readonly load?: number
  /** Requests the service completes per second when it is well, 1 to 100,000. Default 1,000. */
  readonly capacity?: number
  /** Mean time of one request in a worker when the service is well, in ms (exponential), 0.1 to 10,000. Default 10. */
  readonly serviceMs?: number
  /** Size of the fleet; each intent comes from one client by chance. 1 to 10,000. Default 10. */
  readonly clients?: number
  /** How long a client waits for an answer, in ms, if its policy has no time-out for attempts. Default 1,000. */
  readonly timeoutMs?: number
  /** When the trigger begins, in seconds. Default 20. */
  readonly triggerAtSeconds?: number
  /** How long the trigger lasts, in seconds; 0 is none. Default 10. */
  readonly triggerSeconds?: number
  /** The share of the capacity that is left during the trigger, 0.01 to 1. Default 0.3. */
  readonly triggerCapacity?: number
  /** How long the run is, in seconds, 1 to 3,600. Default 150. */
  readonly seconds?: number
  /** The most requests that wait at the service; the next one is refused at once. Default Infinity. */
  readonly queueLimit?: number
  /** What a refused client sees. Default `'overload'`. */
  readonly refusal?: Refusal
  /** A scheme of other clients' in place of the policy's budget, to compare with. Default `'none'`. */
  readonly peerBudget?: QuotaBudgetOptions | 'none'
  /** Whether the service recognises a repeat of the same intent. If not, each completion is an effect. Default true. */
  readonly idempotent?: boolean
  /** Whether the clients hold a guard, so that a time-out may be repeated. False is `policy.once`. Default true. */
  readonly guarded?: boolean
  /** Same seed, same run. Default 1. */
  readonly seed?: number | string
}

/** The options with nothing left open. */
export interface StormSettings extends Required<Omit<StormOptions, 'peerBudget'>> {
  /** In place of the policy's budget, if not `'none'`. */
  readonly peerBudget: QuotaBudgetData | 'none'
}

type Range = readonly [least: number, most: number, whole?: 'whole']

const ranges: Readonly<Record<string, Range>> = {
  load: [0.001, 100_000],
  capacity: [1, 100_000],
  serviceMs: [0.1, 10_000],
  clients: [1, 10_000, 'whole'],
  timeoutMs: [1, 3_600_000],
  triggerAtSeconds: [0, 3600],
  triggerSeconds: [0, 3600],
  triggerCapacity: [0.01, 1],
  seconds: [1, 3600, 'whole'],
  queueLimit: [0, Number.POSITIVE_INFINITY],
}

// Beyond it the memory of a browser tab ends before the run does.
const maxIntents = 5_000_000

/**
 * Fills in the defaults, and refuses with `ARGUMENT_INVALID` what lies outside its limits, with `POLICY_INVALID` what
 * is no policy, and with `SIMULATION_UNSUPPORTED` one that would hedge: the model has one attempt of an intent out at a
 * time.
 */
export function stormSettings(options: StormOptions): StormSettings {
  if (!isObject(options)) throw new RepriseError('ARGUMENT_INVALID', 'The options are an object.')
  demandPolicy(options.policy)
  const { policy, peerBudget = 'none', ...rest } = options
  const settings: StormSettings = {
    policy,
    load: 700,
    capacity: 1000,
    serviceMs: 10,
    clients: 10,
    timeoutMs: 1000,
    triggerAtSeconds: 20,
    triggerSeconds: 10,
    triggerCapacity: 0.3,
    seconds: 150,
    queueLimit: Number.POSITIVE_INFINITY,
    refusal: 'overload',
    peerBudget: peerBudget === 'none' ? peerBudget : quotaData(peerBudget),
    idempotent: true,
    guarded: true,
    seed: 1,
    ...rest,
    ...(policy.attemptTimeoutMs !== undefined && { timeoutMs: policy.attemptTimeoutMs }),
  }
  for (const [name, [least, most, whole]] of Object.entries(ranges)) {
    const value = settings[name as keyof StormSettings] as number
    if (
      typeof value === 'number' &&
      value >= least &&
      value <= most &&
      (whole === undefined || Number.isInteger(value))
    )
      continue
    const kind = whole === undefined ? 'a number' : 'a whole number'
    throw new RepriseError('ARGUMENT_INVALID', `${name} is ${kind} from ${least} to ${most}.`, {
      details: { name, least, most },
    })
  }
  if (settings.refusal !== 'overload' && settings.refusal !== 'unsent') {
    throw new RepriseError('ARGUMENT_INVALID', 'refusal is overload or unsent.', { details: { name: 'refusal' } })
  }
  if (settings.load * settings.seconds > maxIntents) {
    throw new RepriseError('ARGUMENT_INVALID', `load times seconds is at most ${maxIntents} intents.`)
  }
  // Without a guard, or with one attempt, a policy never hedges either.
  if (policy.hedgeAfterMs !== undefined && policy.attempts > 1 && settings.guarded) {
    const message = 'Hedging is not simulated; leave it out of the policy to see the rest of it.'
    throw new RepriseError('SIMULATION_UNSUPPORTED', message, { details: { path: 'hedgeAfterMs' } })
  }
  return settings
}

const isObject = (part: unknown): boolean => typeof part === 'object' && part !== null

// A policy as data is whole: where a part is missing, nobody knows what the default of its writer was.
function demandPolicy(policy: PolicyData): void {
  const missing = (path: string): never => {
    throw new RepriseError('POLICY_INVALID', `Not valid: ${path}.`, { details: { path } })
  }
  if (!isObject(policy)) missing('policy')
  for (const name of ['attempts', 'minimumRemainderMs', 'maxRetryAfterMs'] as const) {
    if (typeof policy[name] !== 'number') missing(`policy.${name}`)
  }
  if (!Number.isInteger(policy.attempts) || policy.attempts < 1) missing('policy.attempts')
  // The parts are judged as for real calls. The runner of calls is not needed for that, and a page need not load it.
  backoffFrom(policy.backoff)
  if (policy.budget !== undefined) budgetFrom(policy.budget)
  if (policy.breaker !== undefined) breakerFrom(policy.breaker)
  if (policy.limit !== undefined) new Slots(policy.limit)
}

/** When the trigger is over, in seconds. */
export function triggerEndSeconds({ triggerAtSeconds, triggerSeconds }: StormSettings): number {
  return triggerAtSeconds + triggerSeconds
}

/** The share of the capacity that the service has at a time, in ms. */
export function capacityShareAt(settings: StormSettings, nowMs: number): number {
  const { triggerAtSeconds, triggerCapacity } = settings
  return nowMs >= triggerAtSeconds * 1000 && nowMs < triggerEndSeconds(settings) * 1000 ? triggerCapacity : 1
}

/**
 * The load below which the service heals by itself, in intents per second, in closed form: `capacity` divided by the
 * calls that each intent makes while all of them fail (Bronson et al., "Metastable Failures in Distributed Systems",
 * HotOS 2021, call it the hidden capacity). A token budget or a peer's quota is exhausted then and repeats nothing; a
 * concurrency limit sends as many as it has slots in each time-out; a breaker is not considered.
 */
export function hiddenCapacity(settings: StormSettings): number {
  const { policy, capacity, clients, timeoutMs, guarded, peerBudget } = settings
  const { attempts, budget, limit } = policy
  if (limit !== undefined && (clients * limit.most * 1000) / timeoutMs < capacity) return capacity
  if (attempts === 1 || !guarded || peerBudget !== 'none' || budget?.kind === 'token') return capacity
  if (budget === undefined) return capacity / attempts
  const repeats = clients * (budget.floorPerSecond + budget.refillPerSecond)
  return Math.max(capacity / attempts, (capacity - repeats) / (1 + budget.ratio))
}
