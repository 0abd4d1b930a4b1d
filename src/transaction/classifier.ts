// What the failure of a transaction means to a retry policy around it.

import { type Classifier, permanent, transient } from '../retry/index.js'
import { transactionHistoryOf } from './history.js'

/**
 * Classifies what `transact` threw, for a policy around it: `retryPolicy({ classify: transactionClassifier })`. A
 * transaction that is known to be dead did not happen, whatever its error looks like, so even an unguarded call may be
 * repeated if that can help. Undefined for every other error.
 */
export const transactionClassifier: Classifier = (error) => {
  const history = transactionHistoryOf(error)
  const last = history?.attempts.at(-1)
  if (last === undefined) return undefined
  const { ruling, resolved } = last
  if (ruling.outcome !== 'aborted' && resolved !== 'aborted') return permanent(ruling.sign, 'maybe')
  return ruling.help === 'transient' ? transient(ruling.sign, 'no') : permanent(ruling.sign, 'no')
}
