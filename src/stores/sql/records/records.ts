// The records of an SQL store: the port, on statements that all of them share and a runner that each brings along.

import type {
  AuditEntry,
  AuditNote,
  DueQuery,
  Expected,
  NamedRecord,
  Purged,
  PurgeQuery,
  RecentQuery,
  RecordChange,
  RecordDraft,
  RecordInspection,
  RecordLimits,
  RecordQuery,
  Records,
  Seen,
  StoredRecord,
  Written,
} from '../../../atomicity/index.js'
import type { Pepper, StoredKey } from '../../../identity/index.js'
import { type Clock, defined, RepriseError } from '../../../kernel/index.js'
import type { SqlAnswer } from '../executor.js'
import { type Procedure, proceduresOf, type RecordProcedures } from './procedures.js'
import { auditOf, namedRecords, type RecordRow, seenIn } from './rows.js'
import type { Query, RecordStatements } from './statements.js'

/** The record that a write is about, for what is told where it fails. */
export interface WrittenRecord {
  readonly id: StoredKey
  /** Undefined: a transaction with a key, which has none, or it is not known. */
  readonly operation: string | undefined
}

/** How a store runs statements on its records. Each call ends with its limits, and is a commit of its own. */
export interface RecordRunner {
  /** Runs one statement that reads. */
  read(query: Query, limits: RecordLimits): Promise<readonly RecordRow[]>
  /**
   * Performs a procedure. Where the dialect cannot write inside WITH, all of it is one transaction, which reads what is
   * committed or has the lock of the whole store.
   *
   * @param about Undefined: it writes to many records.
   */
  write<Result>(procedure: () => Procedure<Result>, limits: RecordLimits, about?: WrittenRecord): Promise<Result>
}

/** All records of a store. */
export class SqlRecords implements Records {
  readonly inspection: RecordInspection
  readonly pepper: Pepper | undefined
  readonly #statements: RecordStatements
  readonly #procedures: RecordProcedures
  readonly #runner: RecordRunner

  constructor(statements: RecordStatements, runner: RecordRunner, pepper?: Pepper) {
    this.inspection = new SqlInspection(statements, runner)
    this.pepper = pepper
    this.#statements = statements
    this.#procedures = proceduresOf(statements)
    this.#runner = runner
  }

  async read(id: StoredKey, limits: RecordLimits): Promise<Seen> {
    const [row] = await this.#runner.read(this.#statements.read(id), limits)
    return seenIn(row)
  }

  insert(id: StoredKey, draft: RecordDraft, limits: RecordLimits): Promise<Written> {
    return this.#runner.write(() => this.#procedures.insert(id, draft), limits, { id, operation: draft.operation })
  }

  swap(
    id: StoredKey,
    // Whoever has read the record gives all of it.
    over: Expected & Partial<Pick<StoredRecord, 'operation'>>,
    change: RecordChange | null,
    limits: RecordLimits,
    note?: AuditNote,
  ): Promise<Written> {
    return this.#runner.write(() => this.#procedures.swap(id, over, change, note), limits, {
      id,
      operation: over.operation,
    })
  }

  due(query: DueQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    return this.#runner.write(() => this.#procedures.due(query), limits)
  }

  purge(query: PurgeQuery, limits: RecordLimits): Promise<Purged> {
    return this.#runner.write(() => this.#procedures.purge(query), limits)
  }
}

class SqlInspection implements RecordInspection {
  readonly #statements: RecordStatements
  readonly #runner: RecordRunner

  constructor(statements: RecordStatements, runner: RecordRunner) {
    this.#statements = statements
    this.#runner = runner
  }

  async list(query: RecordQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    return namedRecords(await this.#rows(this.#statements.list(query), limits))
  }

  async recent(query: RecentQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    return namedRecords(await this.#rows(this.#statements.recent(query), limits))
  }

  async live(scope: string, most: number, limits: RecordLimits): Promise<number> {
    const [row] = await this.#rows(this.#statements.live(scope, most), limits)
    return Number(row?.['live'])
  }

  async notes(id: StoredKey, limits: RecordLimits): Promise<readonly AuditEntry[]> {
    return (await this.#rows(this.#statements.notes(id), limits)).map(auditOf)
  }

  async #rows(query: Query, limits: RecordLimits): Promise<SqlAnswer['rows']> {
    return (await this.#runner.read(query, limits)) as SqlAnswer['rows']
  }
}

/** How much of a call's time is left, in ms; negative when it is over. */
export function leftMs({ deadline }: RecordLimits, clock: Clock): number {
  return deadline.expiresAtMs - clock.monotonicMs()
}

/** The error of a call whose time is over. */
export function tooLate(cause?: unknown): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the store answered.', defined({ cause }))
}
