// A user's own policy from a file: JSON of its data, or a module that exports it.

import { isRepriseError } from '../../kernel/index.js'
import { type PolicyData, policyFrom } from '../../retry/index.js'
import type { Io } from '../io.js'
import { UsageError } from '../option-table.js'
import { said } from './outputs.js'
import { usualPolicy } from './policy-options.js'

/**
 * Reads a policy's data, and refuses what cannot be as `policyFrom` does. What is missing in JSON has its usual value, as in
 * the options of `retryPolicy`; a budget that is null or false is none. A module's policy is whole, and taken as it is.
 */
export async function readPolicyFile(path: string, io: Io): Promise<PolicyData> {
  const isModule = /\.[cm]?js$/.test(path)
  const data = isModule ? await fromModule(path, io) : await fromJson(path, io)
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new UsageError(`${path}: a policy is an object`)
  }
  const { budget: usualBudget, ...usual } = usualPolicy
  const { budget = isModule ? null : usualBudget, ...rest } = data as { readonly budget?: unknown }
  const policy = { ...usual, ...rest, ...(budget !== null && budget !== false && { budget }) } as PolicyData
  try {
    return policyFrom({ ...policy, attemptTimeoutMs: policy.attemptTimeoutMs ?? 1000 }).toJSON()
  } catch (error) {
    throw isRepriseError(error) ? new UsageError(`${path}: ${error.message}`) : error
  }
}

async function fromModule(path: string, io: Io): Promise<unknown> {
  try {
    const policy = ((await io.importModule(path)) as { readonly default?: { toJSON?: unknown } }).default
    if (typeof policy?.toJSON === 'function') return policy.toJSON()
  } catch (error) {
    throw new UsageError(`${path}: cannot be loaded: ${said(error)}`)
  }
  throw new UsageError(`${path}: the default export is not a policy`)
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
    throw new UsageError(`${path}: not JSON`)
  }
}
