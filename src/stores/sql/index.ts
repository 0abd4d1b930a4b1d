// SQL that stores share: reading it, quoting names, repeatable writes, migrations. For stores only; it has no door of its own.

export { placeholder, type SqlDialect, storeNowMs } from './dialect.js'
export type { SqlAnswer, SqlExecutor } from './executor.js'
export { checkPrefix, checkSchema, quoteName, quoteTable } from './identifier.js'
export { LockTimeoutError } from './lock-timeout.js'
export {
  appliedNumber,
  applyMigrations,
  type MigrationPlan,
  type MigrationResult,
  type MigrationTarget,
  migrationMissing,
  printMigrations,
  refuseNewer,
} from './migrations.js'
export { type Forgettable, finishedRecords, oldMarkers, unknownRecords } from './records/forgetting.js'
export {
  addedColumns,
  auditColumns,
  type ColumnTypes,
  hasDue,
  hasEnd,
  recordMigrationName,
} from './records/migration.js'
export { ReadableRecords } from './records/readable-records.js'
export {
  auditSelection,
  checkRows,
  isOurFormat,
  namedRecords,
  recordCell,
  recordColumns,
  recordIn,
  recordOf,
  recordSelection,
  recordValues,
  wholeMs,
} from './records/rows.js'
export { sqlRows } from './rows.js'
export { type SavepointTurns, savepointTurns } from './savepoint-turns.js'
export { refuseTransactionStatements, statementsOf, transactionStatementIn } from './statements.js'
export { listOfValues, Values } from './values.js'
