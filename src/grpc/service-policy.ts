// A policy made of a gRPC service config: its retry or hedging policy, its throttle, and the statuses it names.

import {
  type Budget,
  backoffFrom,
  budgetFrom,
  type Classifier,
  firstOf,
  hedging,
  permanent,
  type RetryPolicy,
  type RetryPolicyOptions,
  retryPolicy,
  transient,
  type Verdict,
} from '../retry/index.js'
import { rulesFromServiceConfig } from './service-config.js'

/** What a service config does not say. */
export interface ServicePolicyOptions extends Omit<RetryPolicyOptions, 'attempts' | 'backoff' | 'budget' | 'hedge'> {
  /** The throttle of the server, shared by the policies of all its methods. Default: one of this policy's own. */
  readonly budget?: Budget
}

/**
 * The policy that a gRPC service config describes for a method (`package.Service/Method`), validated as proposal A6
 * says. Failures are errors with a numeric `code`, as gRPC clients throw them, and `metadata` for the server's
 * pushback.
 */
export function policyFromServiceConfig(
  config: unknown,
  method: string,
  options: ServicePolicyOptions = {},
): RetryPolicy {
  const { attempts, backoff, budget, hedge, retryableStatusCodes } = rulesFromServiceConfig(config, method)
  return retryPolicy({
    name: method,
    ...options,
    attempts: hedge?.attempts ?? attempts,
    backoff: backoffFrom(backoff),
    budget: options.budget ?? (budget === undefined ? false : budgetFrom(budget)),
    // A delay of 0 sends all attempts in one turn.
    ...(hedge && { hedge: hedging({ after: Math.max(1, Math.ceil(hedge.delayMs)) }) }),
    classify: statusClassifier(hedge?.nonFatalStatusCodes ?? retryableStatusCodes, options.classify),
  })
}

function statusClassifier(again: readonly number[], own: Classifier | undefined): Classifier {
  const byStatus: Classifier = (error) => statusVerdict(error, again)
  return own === undefined ? byStatus : firstOf(own, byStatus)
}

const maxPushbackMs = 2 ** 31 - 1

function statusVerdict(error: unknown, again: readonly number[]): Verdict | undefined {
  const { code, metadata } = Object(error) as { code?: unknown; metadata?: { get?: (name: string) => unknown[] } }
  if (typeof code !== 'number') return undefined
  const why = `grpc-${code}`
  const pushback = metadata?.get?.('grpc-retry-pushback-ms')[0]
  // A6: negative or unreadable as an int32 means no, and counts against the throttle whatever the status.
  const isReadable = /^(?:0|[1-9]\d{0,9})$/.test(String(pushback)) && Number(pushback) <= maxPushbackMs
  const refused = pushback !== undefined && !isReadable
  if (!again.includes(code)) return refused ? { ...permanent(why), doNotRepeat: true } : permanent(why)
  if (refused) return transient(why, 'maybe', { doNotRepeat: true })
  if (pushback === undefined) return transient(why, 'maybe')
  return transient(why, 'maybe', { retryAfterMs: Number(pushback), exactly: true })
}
