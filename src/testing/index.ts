// What tests need: a clock and randomness under their control, real races, faults at exact points, and a checker that
// compares promised outcomes with actual effects.

export { type Random, seededRandom } from '../kernel/index.js'
export { type Barrier, type BarrierOptions, barrier } from './barrier.js'
export {
  type CallVerdict,
  type CheckedRun,
  type CheckFinding,
  type CheckReport,
  checkEffects,
  type FindingKind,
  type IntentRecord,
  type LedgerEffect,
} from './checker.js'
export {
  type BrokerCase,
  type BrokerWorld,
  brokerCases,
  type CaseOutcome,
  type ConformanceCase,
  type ConformanceDomain,
  ConformanceFailure,
  type ConformanceHandle,
  type ConformanceItem,
  type ConformanceStore,
  type ControlledHttpCase,
  controlledHttpCases,
  emitCases,
  type HttpCase,
  type HttpCaseClient,
  type HttpCaseClientOptions,
  type HttpCaseFacts,
  type HttpCaseOutcome,
  type HttpCaseRunner,
  type HttpCheck,
  type HttpControl,
  httpCaseClient,
  httpCaseRunner,
  httpCases,
  keyCases,
  leasedOperationCases,
  leasedRecordCases,
  messageCases,
  type OutboxRow,
  type OutboxTable,
  type OutboxWorld,
  operationCases,
  type RecordCase,
  type RecordWorld,
  recordCases,
  rowCases,
  runBrokerCase,
  runConformanceCase,
  type StoreWorld,
  type SubjectAnswer,
  type SubjectRequest,
  type SubjectUser,
  sequenceCases,
  transactionCases,
} from './conformance/index.js'
export {
  type AtOptions,
  armFromEnvironment,
  type ChildFault,
  type FaultPoints,
  faultEnvironment,
  faultPoints,
  InjectedFault,
  killAt,
  type StoppedAt,
} from './fault-points.js'
export { type ManualClock, type ManualClockOptions, manualClock } from './manual-clock.js'
export type { ConnectionState } from './postgres-proxy/connection.js'
export type { ArmedFault, FaultActionName, FaultMoment, Fired, ProxyFault } from './postgres-proxy/faults.js'
export {
  type PostgresProxy,
  type PostgresProxyOptions,
  type ProxyConnection,
  postgresProxy,
} from './postgres-proxy/proxy.js'
export { commits, statementsOf } from './postgres-proxy/statements.js'
export { type ProveOptions, prove } from './prove/prove.js'
export { type ProofDraw, ProofFailed, type ProofFinding, type ProofLine, type ProofReport } from './prove/report.js'
export type { ProofPlace, ProofSubject } from './prove/subject.js'
