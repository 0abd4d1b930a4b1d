// SQL that stores share: dialects, reading statements, quoting names, repeatable writes, records, migrations. For
// stores only; it has no entry point of its own.

export type { SqlDialect } from './dialect.js'
export { postgresDialect } from './dialects/postgres.js'
export { sqliteDialect } from './dialects/sqlite.js'
export { type BusyLimits, BusyWait, isBusySign, whileBusy } from './dialects/sqlite-lock.js'
export { type FindingRow, found, postgresFindings, sharedFindings, sqliteFindings } from './doctor/findings.js'
export { migrationFindings } from './doctor/patient.js'
export { examinePostgres, type PostgresPatient, postgresPatience } from './doctor/postgres.js'
export { examineSqlite, fileFinding } from './doctor/sqlite.js'
export { endedElsewhere, LockTimeoutError, notClaimed } from './errors.js'
export type { SqlAnswer, SqlExecutor } from './executor.js'
export { checkPrefix, checkSchema, quoteName, quoteTable } from './identifier.js'
export { EmitStatements, emitError } from './messages/emit.js'
export {
  memoryMigrationName,
  memoryStatements,
  messageMigrationName,
  messageStatements,
  messageTables,
} from './messages/migration.js'
export { sqlMessages } from './messages/store.js'
export {
  applyMigrations,
  type MigrationOptions,
  type MigrationPlan,
  type MigrationResult,
  type MigrationTarget,
  migrationMissing,
  printMigrations,
  type SchemaState,
  schemaState,
} from './migrations.js'
export {
  addedColumns,
  auditColumns,
  type ColumnTypes,
  hasDue,
  hasEnd,
  recordMigrationName,
} from './records/migration.js'
export { claimed, type Procedure, perform, performAsync, reclaimed } from './records/procedures.js'
export { leftMs, type RecordRunner, SqlRecords, tooLate, type WrittenRecord } from './records/records.js'
export {
  isOurFormat,
  type RecordRow,
  recordColumns,
  recordValues,
  seenIn,
  storableMs,
} from './records/rows.js'
export {
  type Condition,
  forgettable,
  outcomePlaces,
  type Query,
  RecordStatements,
  type RecordTables,
  recordTables,
} from './records/statements.js'
export { sqlRows } from './rows.js'
export { type InnerStatement, innerStatementIn } from './savepoints/inner-statement.js'
export { InnerTransactions } from './savepoints/inner-transactions.js'
export { type SavepointTurns, savepointTurns } from './savepoints/turns.js'
export { type QueryHandle, sequenceColumns, sequenceMigrationName, sqlSequences } from './sequences.js'
export {
  listOfValues,
  refuseTransactionStatements,
  statementsOf,
  transactionRefusal,
  transactionStatementIn,
  writeIn,
} from './statements.js'
export { again, lost, never, type PhaseWords } from './table-words.js'
export { windowMigrationName, windowStatements } from './windows/migration.js'
export { SqlSeen } from './windows/seen.js'
