// What every store must do for operations: all groups, in the order in which an operation meets them.

import type { ConformanceCase, RecordCase } from '../conformance-case.js'
import { claimCases } from './claim-cases.js'
import { fenceCases } from './fence-cases.js'
import { leaseCases } from './lease-cases.js'
import { replayCases } from './replay-cases.js'
import { leasedUpkeepCases, purgeCases, settleCases, sweepCases } from './upkeep-cases.js'

/** Cases of the groups `store.operation.claim`, `.replay`, `.lease`, `.fence`, `.sweep`, `.purge` and `.settle`. */
export const operationCases: readonly ConformanceCase[] = [
  ...claimCases,
  ...replayCases,
  ...leaseCases,
  ...fenceCases,
  ...sweepCases,
  ...purgeCases,
  ...settleCases,
]

/** Those of them for which a store of records is enough, without transactions. */
export const leasedOperationCases: readonly RecordCase[] = [...leaseCases, ...fenceCases, ...leasedUpkeepCases]
