// Retry budgets of other libraries as options, to compare with ours.

import type { QuotaBudgetOptions } from '../../simulator/index.js'
import { type GivenOptions, type OptionGroup, UsageError } from '../option-table.js'

const names = { 'quota-capacity': 'capacity', 'quota-cost': 'cost', 'quota-gain': 'gain' } as const

/** Options for the retry budgets of other libraries. */
export const peerOptions: readonly OptionGroup[] = [
  {
    title: 'Budget of other clients, in place of the policy\u2019s',
    options: [
      {
        name: 'peer-budget',
        kind: 'choice',
        choices: ['quota', 'none'],
        text: 'quota: that of the AWS SDKs, a price for each repeat (none)',
      },
      { name: 'quota-capacity', kind: 'number', text: 'tokens at the start and at most (500)' },
      { name: 'quota-cost', kind: 'number', text: 'tokens for a repeat; back if it succeeds (14)' },
      { name: 'quota-gain', kind: 'number', text: 'tokens for a success without repeats (1)' },
    ],
  },
]

/** The budget that replaces the policy's, or `none`. */
export function peerBudgetOf(given: GivenOptions): QuotaBudgetOptions | 'none' {
  const kind = given.text('peer-budget') ?? 'none'
  if (kind !== 'none') {
    if (given.has('budget')) throw new UsageError('--peer-budget stands in place of --budget; give one of them')
    return { kind: 'quota', ...given.numbers(names) }
  }
  const stray = Object.keys(names).find((name) => given.has(name))
  if (stray !== undefined) throw new UsageError(`--${stray} needs --peer-budget quota; it is none here`)
  return 'none'
}
