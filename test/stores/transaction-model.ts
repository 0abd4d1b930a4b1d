// A plain model of transactions with savepoints on a table of rows (id, team), ids unique, and the same as bodies of a
// store: drawn cases run on both.

import fc from 'fast-check'
import { isRepriseError } from '../../src/kernel/index.js'

/** One step of a body. */
type Step =
  | { readonly kind: 'insert'; readonly id: number; readonly team: number }
  | { readonly kind: 'move'; readonly id: number; readonly to: number }
  | { readonly kind: 'reteam'; readonly team: number; readonly to: number }
  | { readonly kind: 'savepoint'; readonly steps: readonly Step[]; readonly fails: boolean }

/** A body. */
export interface Case {
  readonly steps: readonly Step[]
  /** Whether it throws in the end. */
  readonly fails: boolean
}

/** What a body needs of a store. */
export interface ModelTransaction {
  insertOnce(table: string, row: Record<string, number>, unique: readonly string[]): Promise<unknown>
  updateRows(table: string, where: Record<string, number>, set: Record<string, number>): Promise<unknown>
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** The rows, as a map from id to team. */
export type Model = Map<number, number>

const number = fc.integer({ min: 0, max: 4 })
const { step } = fc.letrec<{ step: Step }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ kind: fc.constant('insert' as const), id: number, team: number }),
    fc.record({ kind: fc.constant('move' as const), id: number, to: number }),
    fc.record({ kind: fc.constant('reteam' as const), team: number, to: number }),
    fc.record({
      kind: fc.constant('savepoint' as const),
      steps: fc.array(tie('step'), { maxLength: 4 }),
      fails: fc.boolean(),
    }),
  ),
}))

/** Draws a body. */
export const drawnCase: fc.Arbitrary<Case> = fc.record({ steps: fc.array(step, { maxLength: 6 }), fails: fc.boolean() })

class Failure extends Error {}
const unique = new Error('unique')

// An id is unique, and moving a row onto one that is taken ends everything around it.
function applyTo(model: Model, step: Step): void {
  if (step.kind === 'insert') {
    if (!model.has(step.id)) model.set(step.id, step.team)
  } else if (step.kind === 'move') {
    const team = model.get(step.id)
    if (team === undefined) return
    if (step.to !== step.id && model.has(step.to)) throw unique
    model.delete(step.id)
    model.set(step.to, team)
  } else if (step.kind === 'reteam') {
    for (const [id, team] of model) if (team === step.team) model.set(id, step.to)
  } else inModel(model, step)
}

/** Runs a body on the model; false: it was rolled back. */
export function inModel(model: Model, { steps, fails }: Case): boolean {
  const before = new Map(model)
  try {
    for (const step of steps) applyTo(model, step)
    if (fails) throw new Failure()
    return true
  } catch {
    model.clear()
    for (const [id, team] of before) model.set(id, team)
    return false
  }
}

async function act(tx: ModelTransaction, step: Step): Promise<void> {
  if (step.kind === 'insert') await tx.insertOnce('player', { id: step.id, team: step.team }, ['id'])
  else if (step.kind === 'move') await tx.updateRows('player', { id: step.id }, { id: step.to })
  else if (step.kind === 'reteam') await tx.updateRows('player', { team: step.team }, { team: step.to })
  else await unlessExpected(tx.savepoint(() => inStore(tx, step)))
}

/** Runs a body in a store. */
export async function inStore(tx: ModelTransaction, { steps, fails }: Case): Promise<void> {
  for (const step of steps) await act(tx, step)
  if (fails) throw new Failure()
}

/** What work came to; undefined: it failed as bodies of the model do. Other errors are thrown. */
export async function unlessExpected<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    // SQLite's own error is thrown as it is.
    const isUnique = isRepriseError(error, 'UNIQUE_VIOLATION') || /^SQLITE_CONSTRAINT_/.test(codeOf(error))
    if (error instanceof Failure || isUnique) return undefined
    throw error
  })
}

const codeOf = (error: unknown): string => String((error as { readonly code?: unknown } | undefined)?.code)

/** The rows of the model in the order of their ids. */
export function rowsOf(model: Model): (readonly [id: number, team: number])[] {
  return [...model].sort(([a], [b]) => a - b)
}
