// Reads a user's own policy from a file: its data as JSON, a gRPC service config, or a module that exports it.

import { isRepriseError } from '../../kernel/index.js'
import { type PolicyData, policyFrom } from '../../retry/index.js'
import type { Io } from '../io.js'
import { type GivenOptions, UsageError } from '../option-table.js'
import { said } from './outputs.js'
import { usualPolicy } from './policy-options.js'
import { isServiceConfig, policyOfService } from './service-file.js'

/** The policy that `--policy` and `--method` name; undefined where none is given. */
export async function givenPolicy(given: GivenOptions, io: Io): Promise<PolicyData | undefined> {
  const [file, method] = [given.text('policy'), given.text('method')]
  if (file !== undefined) return readPolicyFile(file, io, method)
  if (method !== undefined) throw new UsageError('--method needs --policy')
  return undefined
}

/**
 * Reads a policy's data; refuses invalid values as `policyFrom` does. Members that are missing in JSON have the
 * defaults of `retryPolicy`; a budget of null or false means none. A policy from a module or a gRPC service config is
 * complete and taken as it is. Of a service config, `method` chooses the method; default: the first one with a policy.
 */
export async function readPolicyFile(path: string, io: Io, method?: string): Promise<PolicyData> {
  const isModule = /\.[cm]?js$/.test(path)
  const data = isModule ? await fromModule(path, io) : await fromJson(path, io)
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new UsageError(`${path}: a policy is an object`, 'POLICY_INVALID')
  }
  const isService = !isModule && isServiceConfig(data)
  if (method !== undefined && !isService) throw new UsageError(`${path}: --method needs a gRPC service config`)
  try {
    const policy = isService ? policyOfService(data, method) : isModule ? (data as PolicyData) : completed(data)
    return policyFrom({ ...policy, attemptTimeoutMs: policy.attemptTimeoutMs ?? 1000 }).toJSON()
  } catch (error) {
    if (isRepriseError(error) || error instanceof UsageError)
      throw new UsageError(`${path}: ${error.message}`, error.code)
    throw error
  }
}

const members: readonly string[] = [...Object.keys(usualPolicy), 'breaker', 'limit', 'deadlineMs', 'hedgeAfterMs']

/** The data of a policy, completed with the defaults. Refuses unknown members, since they would change nothing. */
function completed(data: object): PolicyData {
  const stray = Object.keys(data).find((name) => !members.includes(name))
  if (stray !== undefined) throw new UsageError(`a policy has no ${stray}`, 'POLICY_INVALID')
  const { budget: usualBudget, ...usual } = usualPolicy
  const { budget = usualBudget, ...rest } = data as { readonly budget?: unknown }
  return { ...usual, ...rest, ...(budget !== null && budget !== false && { budget }) } as PolicyData
}

async function fromModule(path: string, io: Io): Promise<unknown> {
  try {
    const policy = ((await io.importModule(path)) as { readonly default?: { toJSON?: unknown } }).default
    if (typeof policy?.toJSON === 'function') return policy.toJSON()
  } catch (error) {
    throw new UsageError(`${path}: cannot be loaded: ${said(error)}`)
  }
  throw new UsageError(`${path}: the default export is not a policy`, 'POLICY_INVALID')
}

async function fromJson(path: string, io: Io): Promise<unknown> {
  let text: string
  try {
    text = await io.readText(path)
  } catch (error) {
    throw new UsageError(`${path}: cannot be read: ${said(error)}`)
  }
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`${path}: not JSON`, 'JSON_SYNTAX')
  }
}
