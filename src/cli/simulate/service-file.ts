// Reads a policy out of a gRPC service config: chooses the method and takes its settings.

import { policyFromServiceConfig } from '../../grpc/index.js'
import type { PolicyData } from '../../retry/index.js'
import { UsageError } from '../option-table.js'

/** The parts of a valid service config that are read here. */
interface ServiceConfig {
  readonly methodConfig?: readonly MethodConfig[]
}

interface MethodConfig {
  readonly name?: readonly { readonly service?: string; readonly method?: string }[]
  readonly timeout?: unknown
  readonly retryPolicy?: unknown
  readonly hedgingPolicy?: unknown
}

/** Whether the data is a gRPC service config rather than the data of a policy. */
export function isServiceConfig(data: object): boolean {
  return 'methodConfig' in data || 'retryThrottling' in data
}

/**
 * The policy of a method, `package.Service/Method`. Default: the first method with a retry or hedging policy. As in
 * gRPC, the `timeout` of a method is the deadline of its calls, and without `retryThrottling` there is no budget.
 */
export function policyOfService(config: object, method: string | undefined): PolicyData {
  // Refuses the config if any part of it is invalid.
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

/** The most exact name wins; among equals, the first. */
function entryOf(entries: readonly MethodConfig[], full: string): MethodConfig | undefined {
  const candidates = [full, full.replace(/[^/]*$/, ''), '/']
  return candidates
    .map((name) => entries.find((entry) => namesOf(entry).includes(name)))
    .find((entry) => entry !== undefined)
}

// A proto3 Duration in JSON: decimal seconds followed by an s.
function deadlineOf({ timeout }: MethodConfig): number | undefined {
  if (timeout === undefined) return undefined
  const [, seconds] = (typeof timeout === 'string' && /^(\d{1,8}(?:\.\d{1,9})?)s$/.exec(timeout)) || []
  const deadlineMs = Number(`${seconds}e3`)
  if (!(deadlineMs >= 1))
    throw new UsageError('the timeout of the method is no duration such as 1.5s', 'POLICY_INVALID')
  return deadlineMs
}
