// The budget that all transactions of a domain share: one for each engine, whoever asks first.

import type { Engine, Finding, TransactionControls } from '../atomicity/index.js'
import { type Budget, tokenBudget } from '../retry/index.js'
import type { TransactionDefaults } from './options.js'

const budgets = new WeakMap<object, Budget>()

/**
 * The options of a domain with its budget filled in: the one it was given, or the default, of which its engine has one.
 */
export function withBudget<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  defaults: TransactionDefaults,
): TransactionDefaults & Required<Pick<TransactionDefaults, 'budget'>> {
  if (defaults.budget !== undefined) return { ...defaults, budget: defaults.budget }
  const budget = budgets.get(engine) ?? usualBudget()
  budgets.set(engine, budget)
  return { ...defaults, budget }
}

// 500 bodies may fail before anything commits: the first rounds of some dozens of callers that meet on one row, each of
// whom fails until the waits have spread them. A commit gives back three: where more bodies fail for each that commits,
// a tenth of all calls would use up its 8 attempts anyway.
function usualBudget(): Budget {
  return tokenBudget({ maxTokens: 1000, tokenRatio: 3 })
}

/** What a doctor says of the budget of a domain: that there is none, or that it is spent. */
export function budgetFindings(budget: Budget | undefined, nowMs: number): readonly Finding[] {
  if (budget === undefined) {
    return [
      {
        code: 'BUDGET_NONE',
        severity: 'risk',
        what: 'The transactions of the domain share no budget: in an outage each call of each process makes all of its attempts.',
        fix: 'Leave out budget: false, or give a budget of your own.',
      },
    ]
  }
  // One of the caller's own making need not say how it stands.
  const { data } = budget as Partial<Budget>
  if (data === undefined) return []
  const level = budget.level(nowMs)
  const spent = data.kind === 'token' ? level * 2 <= data.maxTokens : level < 1
  if (!spent) return []
  return [
    {
      code: 'BUDGET_SPENT',
      severity: 'risk',
      what: 'The budget that transactions share is spent: those that fail are not repeated until others have committed.',
      fix: 'Find out why they fail: each event of reprise.transaction.attempt names the sign.',
    },
  ]
}
