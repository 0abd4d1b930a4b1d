// The second migration, as far as it is the same for all: what a marker of format 1 lacks to be a record, and the
// indexes that sweeps and purges go by.

/** The types of an engine. */
export interface ColumnTypes {
  readonly text: string
  /** A whole number of 32 bits. */
  readonly integer: string
  /** A whole number of 64 bits. */
  readonly bigint: string
}

/**
 * The columns that are added to the markers, each as its definition. Rows that are there become records of version 1
 * that succeeded in a transaction and never expire, and so do rows of a process that does not know the new columns yet:
 * nothing is rewritten, and both can work side by side.
 */
export function addedColumns({ text, integer, bigint }: ColumnTypes): readonly string[] {
  return [
    `version ${integer} NOT NULL DEFAULT 1`,
    `mode ${text} NOT NULL DEFAULT 'atomic'`,
    `operation ${text}`,
    `scope ${text}`,
    `fingerprint ${text}`,
    `state ${text} NOT NULL DEFAULT 'succeeded'`,
    `token ${text}`,
    `fence ${bigint}`,
    `first_claimed_at_ms ${bigint}`,
    `due_at_ms ${bigint}`,
    `completed_at_ms ${bigint}`,
    `expires_at_ms ${bigint}`,
    `claims ${integer} NOT NULL DEFAULT 1`,
    `looks ${integer} NOT NULL DEFAULT 0`,
    `codec ${text}`,
    `input ${text}`,
    `because ${text}`,
  ]
}

/** The columns of an audit note beside its own number. */
export function auditColumns({ text, bigint }: ColumnTypes): readonly string[] {
  return [
    `id ${text} NOT NULL`,
    `at_ms ${bigint} NOT NULL`,
    `action ${text} NOT NULL`,
    `actor ${text} NOT NULL`,
    `reason ${text} NOT NULL`,
    `from_state ${text} NOT NULL`,
    `to_state ${text} NOT NULL`,
  ]
}

/**
 * Which rows the index of what is due holds. Not by state: the outcome of a transaction changes it, and would have to
 * be written into every index then.
 */
export const hasDue: string = 'due_at_ms IS NOT NULL'

/** Which rows the index of what expires holds. */
export const hasEnd: string = 'expires_at_ms IS NOT NULL'

/** What the second migration is for. */
export const recordMigrationName: string = 'records of operations, audit notes, fences'
