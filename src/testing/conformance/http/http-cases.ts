// All HTTP cases that need only an address, in the order of their groups.

import { comparisonCases } from './cases/comparison-cases.js'
import { concurrencyCases } from './cases/concurrency-cases.js'
import { headerCases } from './cases/header-cases.js'
import { isolationCases } from './cases/isolation-cases.js'
import { mismatchCases } from './cases/mismatch-cases.js'
import { outcomeCases } from './cases/outcome-cases.js'
import { replayCases } from './cases/replay-cases.js'
import type { HttpCase } from './http-case.js'

/** Every HTTP case that can be run against any address. */
export const httpCases: readonly HttpCase[] = [
  ...headerCases,
  ...replayCases,
  ...mismatchCases,
  ...comparisonCases,
  ...outcomeCases,
  ...concurrencyCases,
  ...isolationCases,
]
