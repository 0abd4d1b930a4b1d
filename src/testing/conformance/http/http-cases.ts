// All HTTP cases that anybody can run, in the order of their groups.

import { comparisonCases } from './cases/comparison-cases.js'
import { concurrencyCases } from './cases/concurrency-cases.js'
import { headerCases } from './cases/header-cases.js'
import { isolationCases } from './cases/isolation-cases.js'
import { keyFormCases } from './cases/key-form-cases.js'
import { mismatchCases } from './cases/mismatch-cases.js'
import { outcomeCases } from './cases/outcome-cases.js'
import { replayCases } from './cases/replay-cases.js'
import type { HttpCase } from './http-case.js'

/** Every HTTP case that needs no more than an address. */
export const httpCases: readonly HttpCase[] = [
  ...headerCases,
  ...keyFormCases,
  ...replayCases,
  ...mismatchCases,
  ...comparisonCases,
  ...outcomeCases,
  ...concurrencyCases,
  ...isolationCases,
]
