// Everything that a doctor of a SQL store can find: one row each, by its code. The documentation is made of these rows.

import type { Finding } from '../../../atomicity/index.js'

/** What is said of a finding wherever it is found. */
export interface FindingRow {
  readonly severity: Finding['severity']
  /** What is wrong, and what comes of it. */
  readonly what: string
  readonly fix: string
}

/** A finding, with what was seen in this case. */
export function found<Code extends string>(
  rows: Readonly<Record<Code, FindingRow>>,
  code: Code,
  seen?: string,
): Finding {
  const { severity, what, fix } = rows[code]
  return { code, severity, what: seen === undefined ? what : `${what} ${seen}`, fix }
}

/** What can be found in either. */
export const sharedFindings = {
  MIGRATIONS_MISSING: {
    severity: 'broken',
    what: 'Reprise’s tables are not there, or older than this version.',
    fix: 'Call migrate(), run what migrationSql() prints, or run reprise migrate.',
  },
  MIGRATIONS_NEWER: {
    severity: 'broken',
    what: 'A newer version has migrated Reprise’s tables, and they do not work with this one.',
    fix: 'Deploy a version that knows their migration or a later one: migrations only go forward.',
  },
  MIGRATIONS_AHEAD: {
    severity: 'note',
    what: 'A newer version has migrated Reprise’s tables, and they work with this one.',
    fix: 'Nothing: a deployment can be rolled back to this version.',
  },
  PEPPER_MISMATCH: {
    severity: 'broken',
    what: 'The records are under another pepper than the one given, or under none.',
    fix: 'Give the pepper of the records, or bring them under this one with migrate({ rename: true }).',
  },
  TABLES_INCOMPLETE: {
    severity: 'broken',
    what: 'Of what the migrations made, something was dropped.',
    fix: 'Make it again as migrationSql() prints it; a fence has to go on above the highest one in the table of markers.',
  },
  PRIMARY_KEY_MISSING: {
    severity: 'broken',
    what: 'The table of markers has no valid primary key on id: nothing keeps two calls with one key from running.',
    fix: 'Remove duplicates, then add PRIMARY KEY (id).',
  },
  FENCE_BEHIND: {
    severity: 'broken',
    what: 'The fence is below a number that it has given out: an owner that was replaced could pass for the present one.',
    fix: 'Set it above the highest fence in the table of markers.',
  },
  TRIGGERS_PRESENT: {
    severity: 'risk',
    what: 'A trigger, a rule or a row policy works on a table of Reprise, and may change or hide what is stored there.',
    fix: 'Remove it, or make sure that it leaves rows as they are.',
  },
  DISK_FULL: {
    severity: 'broken',
    what: 'There is no room for what is written: the store refuses it.',
    fix: 'Free some space on the disk of the store, or give it a larger one.',
  },
  PURGE_OVERDUE: {
    severity: 'risk',
    what: 'Records are there whose window ended over a day ago, or processed messages that nobody has to remember any more: nobody forgets them, and the tables grow.',
    fix: 'Call db.upkeep({ signal }) in the service, or run reprise purge every hour.',
  },
  SWEEP_OVERDUE: {
    severity: 'risk',
    what: 'Claims or unknown outcomes are there that a sweep should have looked at over an hour ago: they stay undecided until somebody repeats them.',
    fix: 'Call db.upkeep({ signal }) in a process that defines their operations, or run reprise sweep.',
  },
  WRITE_REFUSED: {
    severity: 'broken',
    what: 'A row like those that Reprise writes was refused by the table of markers: so are calls with a key.',
    fix: 'Remove what was added to the table: a trigger or a constraint that refuses, a column that must not be empty.',
  },
} as const

/** What can be found in a PostgreSQL database. */
export const postgresFindings = {
  FSYNC_OFF: {
    severity: 'broken',
    what: 'fsync is off: a crash of the machine can lose or corrupt what was committed.',
    fix: 'Set fsync = on.',
  },
  SYNCHRONOUS_COMMIT_OFF: {
    severity: 'broken',
    what: 'synchronous_commit is off: COMMIT is answered before it is on the disk, and a crash loses it.',
    fix: 'Set synchronous_commit = on, for this role or database at least.',
  },
  SYNCHRONOUS_COMMIT_LOCAL: {
    severity: 'risk',
    what: 'There are synchronous standbys, and COMMIT does not wait until one has it on its disk.',
    fix: 'Set synchronous_commit = on if a failover must not lose commits.',
  },
  STANDBY_ABSENT: {
    severity: 'broken',
    what: 'synchronous_standby_names waits for more standbys than are connected: no COMMIT that writes is answered.',
    fix: 'Start the standby under its name, or take the name out of synchronous_standby_names.',
  },
  STANDBYS_UNREADABLE: {
    severity: 'note',
    what: 'The role may not see whether the synchronous standbys are connected.',
    fix: 'GRANT pg_read_all_stats (or pg_monitor) to the role.',
  },
  TIMELINE_UNREADABLE: {
    severity: 'risk',
    what: 'The role may not ask for the timeline of the server: after a failover, connections to the old primary are not refused, and a commit without a key whose answer is lost stays unknown.',
    fix: 'GRANT EXECUTE ON FUNCTION pg_control_system(), pg_current_wal_lsn(), pg_walfile_name(pg_lsn) to the role.',
  },
  CLOCKS_APART: {
    severity: 'risk',
    what: 'The clocks of this process and of the server differ: ages of keys, ends of windows and times in events are wrong by as much.',
    fix: 'Keep the clocks of both machines by NTP.',
  },
  FULL_PAGE_WRITES_OFF: {
    severity: 'risk',
    what: 'full_page_writes is off: a crash can tear pages.',
    fix: 'Set full_page_writes = on, unless the file system prevents torn pages.',
  },
  IN_RECOVERY: {
    severity: 'broken',
    what: 'The server is a standby and cannot write.',
    fix: 'Connect to the primary: target_session_attrs, or the right host.',
  },
  READ_ONLY_BY_DEFAULT: {
    severity: 'broken',
    what: 'default_transaction_read_only is on: writes are refused.',
    fix: 'Set default_transaction_read_only = off for this role.',
  },
  IDLE_IN_TRANSACTION_UNLIMITED: {
    severity: 'note',
    what: 'idle_in_transaction_session_timeout is off: transactions of others that lost their client keep their locks. Reprise sets it for its own.',
    fix: 'Set idle_in_transaction_session_timeout for the database.',
  },
  KEEPALIVES_LATE: {
    severity: 'risk',
    what: 'A client that vanished is noticed late: the server probes idle connections after the system’s time, two hours by default on Linux.',
    fix: 'Set tcp_keepalives_idle = 60, tcp_keepalives_interval = 10, tcp_keepalives_count = 6.',
  },
  STATEMENT_TIMEOUT_SET: {
    severity: 'note',
    what: 'statement_timeout is set. It does not bound COMMIT, and Reprise sets it anew for each of its transactions.',
    fix: 'Limit bodies with bodyLimit and deadline, or set it inside the body, above lockWait: a cancelled statement is not repeated.',
  },
  TRANSACTION_TIMEOUT_SET: {
    severity: 'note',
    what: 'transaction_timeout is set: a longer transaction is ended by the server, and not repeated.',
    fix: 'Keep it above the deadline of the domain.',
  },
  SERVER_OLD: {
    severity: 'broken',
    what: 'The server is older than PostgreSQL 13 and lacks pg_current_xact_id.',
    fix: 'Upgrade the server.',
  },
  POOL_OF_ONE: {
    severity: 'risk',
    what: 'The pool has one connection: nothing can be resolved or reported while it is in use.',
    fix: 'Give the pool at least two connections.',
  },
  POOL_OVER_SERVER: {
    severity: 'risk',
    what: 'The pool may open more connections than the server takes.',
    fix: 'Lower max of the pool, or raise max_connections.',
  },
  POOLING_BY_STATEMENT: {
    severity: 'broken',
    what: 'A pooler hands out connections by the statement, so no transaction can hold.',
    fix: 'Set the pooler to transaction or session pooling.',
  },
  MIGRATIONS_UNREADABLE: {
    severity: 'broken',
    what: 'The role may not read Reprise’s tables.',
    fix: 'Grant the role rights on them.',
  },
  RIGHTS_MISSING: {
    severity: 'broken',
    what: 'The role may not select, insert, update and delete in all of Reprise’s tables, or not use the fence.',
    fix: 'Grant it SELECT, INSERT, UPDATE, DELETE on the tables, and USAGE on the sequence.',
  },
  TABLES_LOCKED: {
    severity: 'risk',
    what: 'Somebody holds a lock on a table of Reprise: calls that need the table wait, at most lockWait each, and fail then.',
    fix: 'Nothing, if it passes. If it stays, find the transaction in pg_locks and pg_stat_activity, and end it.',
  },
  TABLES_UNLOGGED: {
    severity: 'broken',
    what: 'A table or the sequence of Reprise is UNLOGGED: a crash empties it, and keys are forgotten.',
    fix: 'ALTER TABLE … SET LOGGED, for each of them.',
  },
  AUTOVACUUM_OFF: {
    severity: 'risk',
    what: 'Autovacuum is off for the table of markers: it grows with each claim, and its indexes with it.',
    fix: 'Set autovacuum = on, and RESET (autovacuum_enabled).',
  },
} as const

/** What can be found in a file of SQLite. */
export const sqliteFindings = {
  FILE_UNOPENED: {
    severity: 'broken',
    what: 'The file, its log or its folder cannot be opened.',
    fix: 'Make the folder, and give the user of this process the rights to read and write in it.',
  },
  FILE_READ_ONLY: {
    severity: 'broken',
    what: 'The file can be read, and not written to.',
    fix: 'Open it to be written to, on a disk that allows it, and give the user of this process the right to write to the file and in its folder.',
  },
  FILE_CORRUPT: {
    severity: 'broken',
    what: 'The file is damaged, or no database.',
    fix: 'Stop all processes that use it, and restore it from a backup.',
  },
  FILE_UNCHECKED: {
    severity: 'note',
    what: 'The file is too large to be checked for damage while others wait.',
    fix: 'Run PRAGMA quick_check on a copy of it from time to time.',
  },
  FILE_LOCKED: {
    severity: 'note',
    what: 'Somebody outside of this store holds the lock of the file at this moment.',
    fix: 'Nothing, if it passes. If it stays, find the other process: writers wait for it, at most lockWait each.',
  },
  JOURNAL_NOT_WAL: {
    severity: 'risk',
    what: 'The journal mode is not wal: readers hold up COMMIT, and writers hold up readers.',
    fix: 'Open a file on a local disk, with a driver that has WAL, and do not change journal_mode.',
  },
  SYNCHRONOUS_NOT_FULL: {
    severity: 'broken',
    what: 'synchronous is less than FULL: a commit that was answered can be lost with the power.',
    fix: 'Let synchronous be FULL, with a driver that allows it.',
  },
  BUSY_TIMEOUT_SET: {
    severity: 'risk',
    what: 'busy_timeout is not 0: while the driver waits for a lock, the event loop stands still.',
    fix: 'Leave busy_timeout at 0; Reprise waits without holding up the event loop.',
  },
  SQLITE_OLD: {
    severity: 'broken',
    what: 'SQLite is older than 3.35 and has no RETURNING.',
    fix: 'Use a driver with a newer SQLite.',
  },
  NETWORK_FILE_SYSTEM: {
    severity: 'broken',
    what: 'The file lies on a network file system: WAL needs memory shared by one machine, and locks there are not reliable.',
    fix: 'Move the file to a local disk, or use a database with a server.',
  },
  LOG_LARGE: {
    severity: 'risk',
    what: 'The log is over 64 MiB: something keeps it from being written back.',
    fix: 'End transactions that read for long, here and in other processes.',
  },
  DISK_NEARLY_FULL: {
    severity: 'risk',
    what: 'The disk, or what max_page_count allows the file, is nearly used up.',
    fix: 'Free some space, purge records, or raise max_page_count.',
  },
} as const
