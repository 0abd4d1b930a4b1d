// Atomicity: one store in which marker and effect can commit together, as a port, with a manifest of what it can do.

export type {
  AcquireLimits,
  BeginSettings,
  Engine,
  OpeningLimits,
  Receipt,
  RecordOutcome,
  Session,
  SharesCommit,
  Stored,
  Trace,
  TransactionControls,
} from './engine.js'
export { codesIn, type ErrorCodes, errorsIn, lockEvidenceIn } from './error-codes.js'
export type { Finding } from './finding.js'
export { TransactionHandle } from './handle.js'
export {
  type HandleLife,
  handleLife,
  type SavepointMark,
  type SavepointSteps,
  type SynchronousSavepointSteps,
} from './handle-life.js'
export type { Capability, Isolation, Manifest, RecordManifest } from './manifest.js'
export type { EncodedText, MessageCodec, MessageIdentity } from './outbox/codec.js'
export { ownKeyOf } from './outbox/draft.js'
export {
  type Emission,
  isBehind,
  type Message,
  type MessageDraft,
  type MessagePlace,
  type StoredMessage,
  versionTaken,
} from './outbox/message.js'
export {
  type EmissionSink,
  type Emits,
  type EmitsSoon,
  type Emitted,
  type MessageOptions,
  Outbox,
  type OutboxReading,
} from './outbox/outbox.js'
export {
  type ClassificationRow,
  type Evidence,
  type Phase,
  type Ruling,
  type RulingWord,
  ruleBy,
  ruleByFirst,
  rulingOf,
  type TableWord,
} from './phase.js'
export {
  type AuditEntry,
  type AuditNote,
  type BoundContent,
  type Expected,
  isFinished,
  isForgotten,
  isSameContent,
  type RecordChange,
  type RecordDraft,
  type RecordMode,
  type RecordState,
  recordFormat,
  type StoredRecord,
} from './record.js'
export {
  changedRecord,
  draftedRecord,
  droppedNote,
  type Forgettable,
  forgettableAs,
  forgettableSince,
  isDue,
  isLive,
  isOurFormat,
  isStill,
  lookDelayMs,
  lookedAt,
} from './record-writes.js'
export {
  type DueQuery,
  inspectionOf,
  type NamedRecord,
  type Purged,
  type PurgeQuery,
  type RecentQuery,
  type RecordInspection,
  type RecordLimits,
  type RecordQuery,
  type RecordStore,
  type Records,
  type Seen,
  type Written,
} from './records.js'
export { type CommandMemory, checkedRows, type SoundRows, type SoundTransition } from './rows/checked-rows.js'
export { anyColumns, type ColumnDemands, oneRow, someRows, soundColumns } from './rows/column-values.js'
export { checkName, tableParts } from './rows/names.js'
export type {
  AddedToSet,
  Blocker,
  ColumnValue,
  InsertedOnce,
  LockEvidence,
  LockOptions,
  Match,
  Row,
  Rows,
  TableName,
  Transition,
  Transitioned,
  Upserted,
} from './rows/rows.js'
export { type Turn, type TurnLimits, type Turns, type TurnsOptions, turnsOf } from './turns.js'
