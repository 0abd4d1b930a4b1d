// A user's own policy from a file: JSON of its data, or a module that exports it.

import type { PolicyData } from '../../retry/index.js'
import type { Io } from '../io.js'
import { UsageError } from '../option-table.js'
import { usualPolicy } from './policy-options.js'

/** Reads a policy's data. What is missing in JSON has its usual value, but for a budget: none there is none. */
export async function readPolicyFile(path: string, io: Io): Promise<PolicyData> {
  const data = /\.[cm]?js$/.test(path) ? await fromModule(path, io) : await fromJson(path, io)
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new UsageError(`${path}: a policy is an object`)
  }
  const { budget: _, ...usual } = usualPolicy
  const policy = { ...usual, ...(data as Partial<PolicyData>) }
  if (policy.attemptTimeoutMs === undefined) return { ...policy, attemptTimeoutMs: 1000 }
  return policy
}

async function fromModule(path: string, io: Io): Promise<unknown> {
  let loaded: unknown
  try {
    loaded = await io.importModule(path)
  } catch (error) {
    throw new UsageError(`${path}: cannot be loaded: ${said(error)}`)
  }
  const policy = (loaded as { readonly default?: { toJSON?: unknown } }).default
  if (typeof policy?.toJSON !== 'function') throw new UsageError(`${path}: the default export is not a policy`)
  return policy.toJSON()
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

function said(error: unknown): string {
  return error instanceof Error ? ((error as { code?: string }).code ?? error.message) : 'it threw'
}
