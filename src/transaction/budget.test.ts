import { expect, it } from 'vitest'
import { rejection, settled, transient, world } from '../../test/transaction/scripted-world.js'
import { ratioBudget, tokenBudget } from '../retry/index.js'
import { memory } from '../stores/memory/index.js'
import { budgetFindings, withBudget } from './budget.js'
import { transactionHistoryOf } from './index.js'

it('is one for each engine, however often it is asked for, and another one for another engine', () => {
  const [first, second] = [world().engine, world().engine]
  const { budget } = withBudget(first, {})
  expect(withBudget(first, { attempts: 2 })).toEqual({ attempts: 2, budget })
  expect(withBudget(first, {}).budget).toBe(budget)
  expect(withBudget(second, {}).budget).not.toBe(budget)
})

it('is the one that was given, or none', () => {
  const { engine } = world()
  const budget = tokenBudget()
  expect(withBudget(engine, { budget }).budget).toBe(budget)
  expect(withBudget(engine, { budget: false }).budget).toBe(false)
  expect(memory({ name: 'own', budget }).budget).toBe(budget)
  expect(memory({ name: 'none', budget: false }).budget).toBeUndefined()
})

it('is taken from by bodies that failed, and by nothing that failed before', async () => {
  const failing = world({ statement: transient })
  const error = await rejection(
    settled(
      failing,
      failing.db.transact((tx) => tx.statement()),
    ),
  )
  expect(transactionHistoryOf(error)).toMatchObject({ because: 'attempts' })
  expect(failing.db.budget?.level(0)).toBe(992)
  const blocked = world({ begin: (attempt) => attempt < 3 && transient() })
  await settled(
    blocked,
    blocked.db.transact(() => 1),
  )
  expect(blocked.db.budget?.full).toBe(true)
})

it('is found to be missing or spent', () => {
  const codes = (budget: Parameters<typeof budgetFindings>[0]): readonly string[] =>
    budgetFindings(budget, 0).map(({ code }) => code)
  const tokens = tokenBudget({ maxTokens: 4 })
  expect([codes(undefined), codes(tokens), codes(ratioBudget())]).toEqual([['BUDGET_NONE'], [], []])
  for (const budget of [tokens, ratioBudget({ initial: 0 })]) {
    budget.failed(0)
    budget.failed(0)
    expect(codes(budget)).toEqual(['BUDGET_SPENT'])
  }
  const plain = { succeeded: () => undefined, failed: () => undefined, tryRepeat: () => true }
  expect(codes(plain as never)).toEqual([])
})
