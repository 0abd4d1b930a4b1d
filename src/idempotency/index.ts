// Idempotency: an intent is carried out once. Marker, effect and outcome commit together, or the marker is an honest
// lease; a repeat gets the stored outcome.

export type { RecordStore } from '../atomicity/index.js'

export { type OperationFaultPoint, operationFaultPoints } from './atomic/fault-points.js'
export type { AtomicOptions, FailureCodeOf, Registered, ResultOf } from './atomic/options.js'
export { operationId } from './call-identity.js'
export {
  type EncryptionOptions,
  encrypted,
  encryptedMessages,
  type MessageEncryptionOptions,
} from './codecs/encrypted.js'
export { parseJson, printJson } from './codecs/json.js'
export type {
  AnyOperation,
  CallOptions,
  LeasedOperation,
  Operation,
  OperationAnswers,
  OperationOptions,
  Reversibility,
} from './definition.js'
export { type DomainTime, drillOfRecords, operations, timeOfRecords } from './domain.js'
export { type DrillStyle, drillAs } from './drill/calls.js'
export { InProcessQueue, insideOperation, refuseReentry, type Visitor } from './in-process.js'
export { type LeasedFaultPoint, leasedFaultPoints } from './leased/fault-points.js'
export type { EffectCall, Lease } from './leased/lease.js'
export { leased } from './leased/leased.js'
export type { LeasedOptions } from './leased/plan.js'
export {
  didNotHappen,
  type Found,
  failedFinally,
  happened,
  hold,
  type Recover,
  type ResolveCall,
  type ResolveFunction,
  rerunKeyed,
  resolve,
  stillUnknown,
} from './leased/recovery.js'
export {
  persistently,
  provesUnwritten,
  type StatementOptions,
  type StoreAnswer,
  type TimeAndChance,
} from './leased/store-calls.js'
export {
  type BeginOptions,
  type Begun,
  begin,
  type WhichWork,
  type WorkState,
  workState,
} from './leased/work.js'
export type { Recovery } from './machine.js'
export { type Operations, operationsOf } from './operations.js'
export {
  type CodecContext,
  type Failure,
  fail,
  isFailure,
  OperationFailedError,
  type Outcome,
  type ValueCodec,
} from './outcome.js'
export type { JsonOf, Keepable, Recoverable, Storable } from './storable.js'
export {
  type BatchCounts,
  type BatchOptions,
  batchOptionNames,
  forgetInBatches,
  type KindCounts,
} from './upkeep/batches.js'
export { leasedOperationsOf, leasedStoreOf } from './upkeep/known-operations.js'
export type { Looked } from './upkeep/look.js'
export { type Known, lookup } from './upkeep/lookup.js'
export { type LoopEnd, type LoopOptions, paused } from './upkeep/loop.js'
export { type PurgeCounts, type PurgeOptions, type PurgeReport, purge } from './upkeep/purge.js'
export { type Settlement, type SettlementOf, type SettleOptions, settle } from './upkeep/settle.js'
export { type SweepCounts, type SweepOptions, type SweepReport, sweep } from './upkeep/sweep.js'
export { type Turn, takeTurn } from './upkeep/turn.js'
export type { NameOfRecord, UpkeepCall, Which, WhichByName, WhichHere, WhichStored } from './upkeep/which.js'
