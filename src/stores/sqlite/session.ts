// One transaction on one connection: BEGIN, the marker, COMMIT with its answer checked, and the connection's fate afterwards.

import {
  type BeginSettings,
  handleLife,
  type Receipt,
  type Ruling,
  type Session,
  type Stored,
  type TransactionControls,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, type Random, RepriseError } from '../../kernel/index.js'
import { migrationMissing } from '../sql/index.js'
import { whileBusy } from './connection/busy.js'
import type { Taken } from './connection/connections.js'
import { isOpen, rowsOf, type SqliteHandle } from './connection/driver.js'
import { runKept } from './connection/writes.js'
import { type Bind, type SqliteTransaction, sqliteHandle } from './handle.js'
import { nowMs, type SqliteTables } from './migrations.js'

/** What all sessions of a store share. */
export interface SessionSurroundings<Bound> {
  /** Makes what the body works with. */
  readonly bind: Bind<Bound>
  /** Reprise's tables. */
  readonly tables: SqliteTables
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
  /** What an answer to COMMIT means. */
  readonly classify: (error: unknown, phase: 'committing') => Ruling
}

/** One transaction in SQLite. */
export class SqliteSession<Bound> implements Session<SqliteTransaction<Bound>> {
  readonly trace: undefined = undefined
  readonly #taken: Taken
  readonly #surroundings: SessionSurroundings<Bound>
  readonly #life = handleLife()
  #lockWaitMs = 0
  // True from the first COMMIT until its outcome is certain.
  #uncertain = false
  #released = false

  constructor(taken: Taken, surroundings: SessionSurroundings<Bound>) {
    this.#taken = taken
    this.#surroundings = surroundings
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.#life.poisoned
  }

  async begin(settings: BeginSettings, controls: TransactionControls): Promise<SqliteTransaction<Bound>> {
    const { readOnly, lockWaitMs } = settings
    this.#lockWaitMs = lockWaitMs
    // IMMEDIATE: a transaction that reads first and takes the lock later can lose its snapshot and never get it.
    const text = readOnly ? 'BEGIN DEFERRED' : 'BEGIN IMMEDIATE'
    await this.#whileBusy(() => this.#handle.exec(text), controls)
    return sqliteHandle({ handle: this.#handle, readOnly }, this.#life, controls, this.#surroundings.bind)
  }

  async claim(id: StoredKey): Promise<'claimed' | Stored> {
    const { marker } = this.#surroundings.tables
    const insert = `INSERT INTO ${marker} (id, claimed_at_ms) VALUES (?, ${nowMs}) ON CONFLICT (id) DO NOTHING`
    if (this.#claimed(insert, id)) return 'claimed'
    const [row] = this.#act(() => rowsOf(this.#handle.prepare(`SELECT value FROM ${marker} WHERE id = ?`), [id]))
    const value = row?.['value']
    if (typeof value === 'string') return { value }
    throw new RepriseError('MARKER_INVALID', 'The marker of the key is committed and has no outcome.')
  }

  async record(id: StoredKey, value: string): Promise<void> {
    const update = `UPDATE ${this.#surroundings.tables.marker} SET value = ? WHERE id = ?`
    if (this.#write(update, [value, id]) === 1) return
    const error = new RepriseError('MARKER_INVALID', 'The marker of the key was not claimed by this transaction.')
    this.#life.poison(error)
    throw error
  }

  async commit(): Promise<Receipt> {
    this.#life.checkBeforeCommit()
    if (!isOpen(this.#handle)) {
      throw new RepriseError('TRANSACTION_ENDED_ELSEWHERE', 'The transaction was no longer open before COMMIT.')
    }
    this.#uncertain = true
    try {
      // BUSY in answer to COMMIT leaves the transaction open and whole: COMMIT alone is sent again.
      await this.#whileBusy(() => this.#handle.exec('COMMIT'), undefined)
    } catch (error) {
      this.#uncertain = this.#surroundings.classify(error, 'committing').outcome !== 'aborted'
      throw error
    }
    this.#uncertain = false
    return { durability: 'promised' }
  }

  async rollback(): Promise<void> {
    // Some errors have rolled back already, and a BEGIN that never came through leaves nothing to undo.
    if (isOpen(this.#handle)) this.#handle.exec('ROLLBACK')
  }

  release(fate: 'keep' | 'discard'): void {
    if (this.#released) return
    this.#released = true
    this.#life.end()
    if (fate === 'keep' && !this.#uncertain && this.#isClean()) this.#taken.giveBack('keep')
    else this.#taken.giveBack(this.#uncertain ? 'condemn' : 'drop')
  }

  poison(error: unknown): void {
    this.#life.poison(error)
  }

  get #handle(): SqliteHandle {
    return this.#taken.handle
  }

  #isClean(): boolean {
    try {
      if (isOpen(this.#handle)) this.#handle.exec('ROLLBACK')
      return !isOpen(this.#handle)
    } catch {
      return false
    }
  }

  #claimed(insert: string, id: StoredKey): boolean {
    try {
      return this.#write(insert, [id]) === 1
    } catch (error) {
      const absent = `no such table: ${this.#surroundings.tables.marker.slice(1, -1)}`
      throw error instanceof Error && error.message.includes(absent) ? migrationMissing(error) : error
    }
  }

  #write(text: string, values: readonly string[]): number {
    return this.#act(() => runKept(this.#handle, text, values, () => 0))
  }

  #act<Result>(work: () => Result): Result {
    this.#life.check()
    try {
      return work()
    } catch (error) {
      this.#life.poison(error)
      throw error
    }
  }

  // Somebody may have given up on the session meanwhile: then nothing may be begun or committed on its connection.
  #whileBusy(work: () => unknown, controls: TransactionControls | undefined): Promise<unknown> {
    const { clock, random } = this.#surroundings
    return whileBusy({ waitMs: this.#lockWaitMs, clock, random, controls }, () => {
      this.#life.check()
      return work()
    })
  }
}
