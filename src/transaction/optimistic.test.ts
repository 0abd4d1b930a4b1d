import { describe, expect, it } from 'vitest'
import type { ColumnValue, Match, Row, Rows, TransactionControls } from '../atomicity/index.js'
import { type OptimisticUpdate, updateOptimistically } from './optimistic.js'
import { UnknownCommitError } from './unknown-commit.js'

/** One row, and a transact that runs bodies on it at once; `commits` says what becomes of each. */
function oneRow(row: Record<string, ColumnValue>, commits: ((count: number) => void) | undefined = undefined) {
  let stored = { ...row }
  let count = 0
  const matches = (where: Match): boolean => Object.entries(where).every(([column, value]) => stored[column] === value)
  const rows = (view: { row: typeof stored; written: boolean }) => ({
    readRow: async (_: string, where: Match) => (matches(where) ? ({ ...view.row } as Row) : undefined),
    lockRow: async (_: string, where: Match) => (matches(where) ? ({ ...view.row } as Row) : undefined),
    updateRows: async (_: string, where: Match, set: Match) => {
      if (!matches(where)) return 0
      view.row = { ...stored, ...set }
      view.written = true
      return 1
    },
  })
  return {
    get row() {
      return stored
    },
    change: (set: Match) => {
      stored = { ...stored, ...set }
    },
    async transact<Result>(body: (tx: TransactionControls & Rows) => PromiseLike<Result> | Result): Promise<Result> {
      const view = { row: stored, written: false }
      const result = await body(rows(view) as unknown as TransactionControls & Rows)
      if (view.written) stored = view.row
      commits?.(++count)
      return result
    },
  }
}

const addOne: OptimisticUpdate = {
  table: 'items',
  where: { id: 'x' },
  tokenColumn: 'token',
  decide: (row) => ({ amount: Number(row['amount']) + 1 }),
}
const lost = (): never => {
  throw new UnknownCommitError(undefined, [], [])
}

describe('an optimistic update', () => {
  it('writes once, counts the version, and leaves its token', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 })
    await expect(updateOptimistically(world.transact, addOne)).resolves.toMatchObject({ result: 'written', rounds: 1 })
    expect(world.row).toMatchObject({ amount: 6, version: 2, token: expect.any(String) })
  })

  it('recognises its own write whose answer was lost, and does not decide again', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 }, (count) => count === 1 && lost())
    await expect(updateOptimistically(world.transact, addOne)).resolves.toMatchObject({ result: 'written' })
    expect(world.row).toMatchObject({ amount: 6, version: 2 })
  })

  it('decides again where its write did not happen', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 }, (count) => {
      if (count > 1) return
      world.change({ amount: 5, version: 1, token: 'before' })
      lost()
    })
    await expect(updateOptimistically(world.transact, addOne)).resolves.toMatchObject({ result: 'written', rounds: 2 })
    expect(world.row).toMatchObject({ amount: 6, version: 2 })
  })

  it('never applies a change twice: where somebody else wrote after the lost answer, the outcome stays unknown', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 }, (count) => {
      if (count > 1) return
      world.change({ amount: 106, version: 3, token: 'of another' })
      lost()
    })
    await expect(updateOptimistically(world.transact, addOne)).rejects.toBeInstanceOf(UnknownCommitError)
    expect(world.row).toMatchObject({ amount: 106, version: 3 })
  })

  it('stays unknown where the row is gone after the lost answer', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 }, (count) => {
      if (count > 1) return
      world.change({ id: 'gone' })
      lost()
    })
    await expect(updateOptimistically(world.transact, addOne)).rejects.toBeInstanceOf(UnknownCommitError)
  })

  it('stays unknown, with its token and history, where nobody can look', async () => {
    const unknown = new UnknownCommitError('rt1.x', [], [])
    const away = new Error('away')
    const world = oneRow({ id: 'x', amount: 5, version: 1 }, (count) => {
      throw count === 1 ? unknown : away
    })
    await expect(updateOptimistically(world.transact, addOne)).rejects.toMatchObject({
      code: 'UNKNOWN_OUTCOME',
      resolveToken: 'rt1.x',
      suppressed: [away],
    })
  })

  it('without a token column hands on that the outcome is unknown', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 }, lost)
    const { tokenColumn: _, ...blind } = addOne
    await expect(updateOptimistically(world.transact, blind)).rejects.toBeInstanceOf(UnknownCommitError)
    expect(world.row).toMatchObject({ amount: 6 })
  })

  it('decides again when somebody else was quicker, and gives up after its rounds', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 1 })
    let disturbed = 0
    const decide = (row: Row): Match => {
      if (disturbed < 2) world.change({ amount: 100 + ++disturbed, version: Number(row['version']) + 1 })
      return { amount: Number(row['amount']) + 1 }
    }
    const disturbing = { ...addOne, decide }
    await expect(updateOptimistically(world.transact, disturbing)).resolves.toMatchObject({ rounds: 3 })
    expect(world.row).toMatchObject({ amount: 103 })
    disturbed = 0
    await expect(updateOptimistically(world.transact, { ...disturbing, rounds: 2 })).rejects.toMatchObject({
      code: 'UPDATE_CONFLICT',
    })
  })

  it('refuses rounds and versions that are no numbers, before anything is written', async () => {
    const world = oneRow({ id: 'x', amount: 5, version: 'first' })
    await expect(updateOptimistically(world.transact, { ...addOne, rounds: 0 })).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    await expect(updateOptimistically(world.transact, addOne)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(world.row['amount']).toBe(5)
  })
})
