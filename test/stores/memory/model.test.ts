// The store in memory against a plain model: drawn transactions with savepoints, some of which fail.

import fc from 'fast-check'
import { expect } from 'vitest'
import { isRepriseError } from '../../../src/kernel/index.js'
import { type MemoryDomain, type MemoryTransaction, memory } from '../../../src/stores/memory/index.js'
import { property } from '../../property.js'

type Step =
  | { readonly kind: 'insert'; readonly id: number; readonly group: number }
  | { readonly kind: 'move'; readonly id: number; readonly to: number }
  | { readonly kind: 'regroup'; readonly group: number; readonly to: number }
  | { readonly kind: 'savepoint'; readonly steps: readonly Step[]; readonly fails: boolean }

interface Case {
  readonly steps: readonly Step[]
  readonly fails: boolean
}

const number = fc.integer({ min: 0, max: 4 })
const { step } = fc.letrec<{ step: Step }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ kind: fc.constant('insert' as const), id: number, group: number }),
    fc.record({ kind: fc.constant('move' as const), id: number, to: number }),
    fc.record({ kind: fc.constant('regroup' as const), group: number, to: number }),
    fc.record({
      kind: fc.constant('savepoint' as const),
      steps: fc.array(tie('step'), { maxLength: 4 }),
      fails: fc.boolean(),
    }),
  ),
}))
const transactions = fc.array(fc.record({ steps: fc.array(step, { maxLength: 6 }), fails: fc.boolean() }), {
  maxLength: 5,
})

class Failure extends Error {}
const unique = new Error('unique')
type Model = Map<number, number>

// The same rules on a map from id to group: an id is unique, moving a row onto one that is taken ends everything around
// it.
function applyTo(model: Model, step: Step): void {
  if (step.kind === 'insert') {
    if (!model.has(step.id)) model.set(step.id, step.group)
  } else if (step.kind === 'move') {
    const group = model.get(step.id)
    if (group === undefined) return
    if (step.to !== step.id && model.has(step.to)) throw unique
    model.delete(step.id)
    model.set(step.to, group)
  } else if (step.kind === 'regroup') {
    for (const [id, group] of model) if (group === step.group) model.set(id, step.to)
  } else inModel(model, step)
}

function inModel(model: Model, { steps, fails }: Case): void {
  const before = new Map(model)
  try {
    for (const step of steps) applyTo(model, step)
    if (fails) throw new Failure()
  } catch {
    model.clear()
    for (const [id, group] of before) model.set(id, group)
  }
}

async function act(tx: MemoryTransaction, step: Step): Promise<void> {
  if (step.kind === 'insert') await tx.insertOnce('row', { id: step.id, group: step.group }, ['id'])
  else if (step.kind === 'move') await tx.updateRows('row', { id: step.id }, { id: step.to })
  else if (step.kind === 'regroup') await tx.updateRows('row', { group: step.group }, { group: step.to })
  else await expected(tx.savepoint(() => run(tx, step)))
}

async function run(tx: MemoryTransaction, { steps, fails }: Case): Promise<void> {
  for (const step of steps) await act(tx, step)
  if (fails) throw new Failure()
}

async function expected(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Failure || isRepriseError(error, 'UNIQUE_VIOLATION'))) throw error
  })
}

async function contents(db: MemoryDomain): Promise<(readonly [number, unknown])[]> {
  const found: (readonly [number, unknown])[] = []
  for (const id of [0, 1, 2, 3, 4]) {
    const row = await db.transact((tx) => tx.readRow('row', { id }), { readOnly: true })
    if (row !== undefined) found.push([id, row['group']])
  }
  return found
}

property(
  'commits, rolls back and undoes exactly as the model does',
  [transactions],
  async (cases) => {
    const db = memory({ name: 'model' })
    db.table('row', { unique: [['id']] })
    const model: Model = new Map()
    for (const drawn of cases) {
      await expected(db.transact((tx) => run(tx, drawn)))
      inModel(model, drawn)
      expect(await contents(db)).toEqual([...model].sort(([a], [b]) => a - b))
    }
  },
  { cases: 2_000 },
)
