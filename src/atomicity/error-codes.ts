// What an error of a database says of itself, through everything that wraps it.

import { defined, isRepriseError } from '../kernel/index.js'
import type { LockEvidence } from './rows/rows.js'

/** An error and those inside it, outermost first. A cycle ends it. */
export function* errorsIn(error: unknown): Generator<Readonly<Record<string, unknown>>> {
  const waiting: unknown[] = [error]
  for (let looked = 0; looked < mostInside && waiting.length > 0; looked++) {
    const next = waiting.shift()
    if (typeof next !== 'object' || next === null) continue
    const found = next as Readonly<Record<string, unknown>>
    yield found
    waiting.push(...wrappers.map((name) => found[name]))
  }
}

const mostInside = 24
// TypeORM, Sequelize, the language itself, and Prisma: there `meta` tells of the database's own error, by its code, or
// since version 7 by what the driver adapter threw.
const wrappers = ['driverError', 'original', 'parent', 'cause', 'meta', 'driverAdapterError'] as const

/** The codes of an error, for people and reports; what decides is the sign of its store's table. */
export interface ErrorCodes {
  /** What the server answered with, in the terms of standard SQL: five letters and digits. Absent: nothing. */
  readonly sqlState?: string
  /** The code of the driver, of the engine or of the network. Absent: there is none beside the SQLSTATE. */
  readonly driverCode?: string
}

const shapeOfState = /^[0-9A-Z]{5}$/
// Whatever is longer, or looks different, might be input.
const shapeOfCode = /^[A-Z][A-Z0-9_]{1,63}$/

/**
 * The SQLSTATE and the driver's own code of an error, each from the outermost error that has one. pg puts the SQLSTATE
 * into `code`, with a severity beside it; others have a member for it. Reprise's own codes are neither. Pure.
 */
export function codesIn(error: unknown): ErrorCodes {
  let [sqlState, driverCode]: (string | undefined)[] = []
  for (const found of errorsIn(error)) {
    if (isRepriseError(found)) continue
    const { code, severity } = found
    const told = typeof severity === 'string' ? code : (found['sqlState'] ?? found['sqlstate'])
    // Prisma has the code of the database in `meta`, under its own, or as the original one of a driver adapter.
    const inner = (found['meta'] as { readonly code?: unknown } | null | undefined)?.code
    sqlState ??= [told, inner, found['originalCode']].find(
      (text) => typeof text === 'string' && shapeOfState.test(text),
    ) as string | undefined
    if (typeof code === 'string' && code !== sqlState && shapeOfCode.test(code)) driverCode ??= code
  }
  return defined({ sqlState, driverCode })
}

/** What a lock time-out says of its causes, through what wraps it; undefined: nothing. Pure. */
export function lockEvidenceIn(error: unknown): readonly LockEvidence[] | undefined {
  for (const found of errorsIn(error)) {
    const { evidence } = found as { readonly evidence?: readonly LockEvidence[] }
    if (isRepriseError(found, 'LOCK_TIMEOUT') && evidence !== undefined && evidence.length > 0) return evidence
  }
  return undefined
}
