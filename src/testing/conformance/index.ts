// The conformance suite of stores: the cases as data, for our own stores and for those that others write.

export {
  type CaseOutcome,
  type ConformanceCase,
  type ConformanceDomain,
  type ConformanceHandle,
  type ConformanceItem,
  runConformanceCase,
  type StoreWorld,
} from './conformance-case.js'
export { ConformanceFailure } from './expectations.js'
export { keyCases } from './key-cases.js'
export { operationCases } from './operations/operation-cases.js'
export { recordCases } from './record-cases.js'
export { rowCases } from './row-cases.js'
export { transactionCases } from './transaction-cases.js'
