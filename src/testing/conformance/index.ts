// The conformance suites, of stores and of servers: the cases as data, for our own and for those that others write.

export { type BrokerCase, type BrokerWorld, runBrokerCase } from './brokers/broker-case.js'
export { brokerCases } from './brokers/broker-cases.js'
export {
  type CaseOutcome,
  type ConformanceCase,
  type ConformanceDomain,
  type ConformanceHandle,
  type ConformanceItem,
  type ConformanceStore,
  type RecordCase,
  type RecordWorld,
  runConformanceCase,
  type StoreWorld,
} from './conformance-case.js'
export { ConformanceFailure } from './expectations.js'
export { controlledHttpCases } from './http/cases/controlled-cases.js'
export {
  type ControlledHttpCase,
  type HttpCase,
  type HttpCaseFacts,
  type HttpCaseOutcome,
  type HttpCaseRunner,
  type HttpControl,
  httpCaseRunner,
} from './http/http-case.js'
export {
  type HttpCaseClient,
  type HttpCaseClientOptions,
  httpCaseClient,
  type SubjectAnswer,
  type SubjectRequest,
  type SubjectUser,
} from './http/http-case-client.js'
export { httpCases } from './http/http-cases.js'
export type { HttpCheck } from './http/http-check.js'
export { keyCases } from './key-cases.js'
export { emitCases } from './messages/emit-cases.js'
export { messageCases } from './messages/message-cases.js'
export type { OutboxRow, OutboxTable, OutboxWorld } from './messages/outbox-world.js'
export { leasedOperationCases, operationCases } from './operations/operation-cases.js'
export { leasedRecordCases, recordCases } from './record-cases.js'
export { rowCases } from './rows/row-cases.js'
export { sequenceCases } from './sequences/sequence-cases.js'
export { transactionCases } from './transaction-cases.js'
