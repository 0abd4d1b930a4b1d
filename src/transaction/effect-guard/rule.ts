// What a domain says about effects in its transactions, checked when the domain is made.

import { RepriseError } from '../../kernel/index.js'
import type { EffectRule } from '../open-transaction.js'
import type { TransactionDefaults } from '../options.js'

/** The rule of a domain. Refuses with ARGUMENT_INVALID. */
export function effectRuleOf({ effects = 'report', allowOrigins = [] }: TransactionDefaults): EffectRule {
  if (effects !== 'poison' && effects !== 'report' && effects !== 'ignore') {
    throw new RepriseError('ARGUMENT_INVALID', 'The option effects must be poison, report or ignore.')
  }
  return { mode: effects, allowOrigins: new Set(allowOrigins.map(plainOrigin)) }
}

// A path would suggest that it is compared.
function plainOrigin(text: string, position: number): string {
  if (typeof text === 'string' && text.startsWith('unix:/')) return text
  const url = URL.canParse(text) ? new URL(text) : undefined
  const plain = url?.protocol === 'http:' || url?.protocol === 'https:' ? url.origin : undefined
  if (plain !== undefined && url?.href === `${plain}/`) return plain
  throw new RepriseError(
    'ARGUMENT_INVALID',
    `Origin ${position} of allowOrigins is not a scheme, host and port alone.`,
    {
      details: { position },
    },
  )
}
