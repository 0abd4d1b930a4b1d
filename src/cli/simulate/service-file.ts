// A gRPC service config as a policy file: which of its methods is meant, and what it says about it.

import { policyFromServiceConfig } from '../../grpc/index.js'
import type { PolicyData } from '../../retry/index.js'
import { UsageError } from '../option-table.js'

/** The parts of a service config that are read here, once it has been found valid. */
interface ServiceConfig {
  readonly methodConfig?: readonly MethodConfig[]
}

interface MethodConfig {
  readonly name?: readonly { readonly service?: string; readonly method?: string }[]
  readonly timeout?: unknown
  readonly retryPolicy?: unknown
  readonly hedgingPolicy?: unknown
}

/** Whether the data is a gRPC service config and not that of a policy. */
export function isServiceConfig(data: object): boolean {
  return 'methodConfig' in data || 'retryThrottling' in data
}

/**
 * The policy of a method, `package.Service/Method`; the first that has a retry or hedging policy if none is named. The
 * `timeout` of a method is the deadline of its calls, as in gRPC; without `retryThrottling` there is no budget, as there.
 */
export function policyOfService(config: object, method: string | undefined): PolicyData {
  // Finds it valid as a whole, or refuses it.
  policyFromServiceConfig(config, method ?? '/')
  const entries = (config as ServiceConfig).methodConfig ?? []
  const full = method?.replace(/^\//, '') ?? firstWithPolicy(entries)
  if (full === undefined) throw new UsageError('no method has a retry policy', 'POLICY_INVALID')
  const entry = entryOf(entries, full)
  if (entry === undefined) throw new UsageError('the method is not in the service config', 'POLICY_INVALID')
  const name = full === '/' ? 'every method' : full.replace(/\/$/, '')
  const deadlineMs = deadlineOf(entry)
  return policyFromServiceConfig(config, full, {
    name,
    ...(deadlineMs !== undefined && { deadline: deadlineMs }),
  }).toJSON()
}

function namesOf({ name = [] }: MethodConfig): string[] {
  return name.map(({ service = '', method = '' }) => `${service}/${method}`)
}

function firstWithPolicy(entries: readonly MethodConfig[]): string | undefined {
  const named = entries.find((entry) => (entry.retryPolicy ?? entry.hedgingPolicy) && namesOf(entry).length > 0)
  return named === undefined ? undefined : namesOf(named)[0]
}

/** The most exact name wins, and of equals the first. */
function entryOf(entries: readonly MethodConfig[], full: string): MethodConfig | undefined {
  const candidates = [full, full.replace(/[^/]*$/, ''), '/']
  return candidates
    .map((name) => entries.find((entry) => namesOf(entry).includes(name)))
    .find((entry) => entry !== undefined)
}

// The JSON form of a proto3 Duration: decimal seconds and an s.
function deadlineOf({ timeout }: MethodConfig): number | undefined {
  if (timeout === undefined) return undefined
  const [, seconds] = (typeof timeout === 'string' && /^(\d{1,8}(?:\.\d{1,9})?)s$/.exec(timeout)) || []
  const deadlineMs = Number(`${seconds}e3`)
  if (!(deadlineMs >= 1))
    throw new UsageError('the timeout of the method is no duration such as 1.5s', 'POLICY_INVALID')
  return deadlineMs
}
