// The connections of a store: one that writes, a few that read, all opened by Reprise, so that no stranger's statement
// can enter.

import { type Turn, type Turns, turnsOf } from '../../../atomicity/index.js'
import { type Clock, defined, type Random, RepriseError } from '../../../kernel/index.js'
import { type BusyLimits, whileBusy } from '../../sql/index.js'
import { isBusy, isOpen, rowsOf, type SqliteHandle } from './driver.js'
import { LoopTurns } from './loop-turns.js'
import { SharedCommit } from './shared-commit.js'
import { forgetStatements } from './statements.js'

/** What the connections are made of. */
export interface ConnectionsOptions {
  /** The name of the store, in events. */
  readonly domain: string
  /** Opens a connection. */
  readonly open: () => SqliteHandle
  /** How many read at once. */
  readonly readers: number
  /** How many may wait for a writer's turn, and how many for a reader's. */
  readonly queue: number
  /** The quoted name of the table that is written to after a commit that failed. */
  readonly metaTable: string
  readonly clock: Clock
  readonly random: Random
}

/** A connection that is out, with the turn that came with it. */
export interface Taken {
  readonly handle: SqliteHandle
  /** Gives it back: `keep` it, `drop` it, or `condemn` all: a COMMIT failed in a way that leaves frames in the log. */
  giveBack(fate: 'keep' | 'drop' | 'condemn'): void
  /** How its transaction can share a COMMIT with those of others. Undefined: it reads. */
  readonly sharing?: Sharing
}

/** What whoever writes can do with a transaction beside ending it. */
export interface Sharing {
  /** The transaction that is open on the connection already, and that it joins. Undefined: none is. */
  readonly joined: SharedCommit | undefined
  /** Whether somebody waits for the turn who could join. */
  readonly wanted: boolean
  /** How often the event loop was seen to turn. */
  readonly loopTurns: number
  /**
   * In place of `giveBack`: the transaction stays open for who has the next turn, or is committed where nobody waits or
   * enough have joined.
   *
   * @param wrote Whether it has a part in the transaction that is to be committed.
   * @returns Settled by COMMIT.
   */
  handOver(wrote: boolean): Promise<void>
}

/** Who may have a connection, and for how long to wait. */
export interface TakeLimits {
  /** The longest wait, in ms. */
  readonly waitMs: number
  /** Whether a connection that only reads will do. */
  readonly readOnly: boolean
  /** Whether it goes before those who are not urgent. Default false. */
  readonly urgent?: boolean
  /** Ends the wait. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Asked when its turn has come, and a transaction is open on the connection: whether to join it. Default: never. */
  readonly joins?: () => boolean
}

/** All connections of one store in this process. */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #writing: Turns
  readonly #reading: Turns
  readonly #loopTurns: LoopTurns
  readonly #idleReaders: SqliteHandle[] = []
  #writer: SqliteHandle | undefined
  // The transaction that was left open on the writer. Who has the turn joins it, or ends it before all else.
  #shared: SharedCommit | undefined
  #condemned = 0
  #healed = 0

  constructor(options: ConnectionsOptions) {
    const { readers, queue, clock } = options
    this.#options = options
    this.#writing = turnsOf({ places: 1, queue, clock })
    this.#reading = turnsOf({ places: readers, queue, clock })
    this.#loopTurns = new LoopTurns(clock)
  }

  /**
   * A connection that can be had without waiting for anything, or undefined: for those who can do without the promise.
   */
  takeAtOnce({ readOnly, signal }: Pick<TakeLimits, 'readOnly' | 'signal'>): Taken | undefined {
    if (this.#healed !== this.#condemned || this.#loopTurns.due() !== undefined) return undefined
    signal?.throwIfAborted()
    const handle = readOnly ? this.#idleReaders.at(-1) : this.#shared === undefined ? this.#writer : undefined
    const turn = handle === undefined ? undefined : (readOnly ? this.#reading : this.#writing).tryTake()
    if (handle === undefined || turn === undefined) return undefined
    if (!readOnly) return this.#takenWriter(turn, handle)
    this.#idleReaders.pop()
    return this.#takenReader(turn, handle)
  }

  /** Waits for a turn and a connection. */
  async take(limits: TakeLimits): Promise<Taken> {
    const free = this.takeAtOnce(limits)
    if (free !== undefined) return free
    const { clock, random } = this.#options
    const endMs = clock.monotonicMs() + limits.waitMs
    const loopTurn = this.#loopTurns.due()
    if (loopTurn !== undefined) await loopTurn
    const turn = await (limits.readOnly ? this.#reading : this.#writing).take(limits)
    const busy: BusyLimits = { waitMs: endMs - clock.monotonicMs(), clock, random, signal: limits.signal }
    try {
      return limits.readOnly ? await this.#takeReader(turn, busy) : await this.#takeWriter(turn, busy, limits.joins)
    } catch (error) {
      turn.done()
      throw error
    }
  }

  /**
   * Lets the next one who takes a connection write to the log first: somebody else may have left a COMMIT in it that
   * failed.
   */
  distrustLog(): void {
    this.#condemned += 1
  }

  /** Refuses who comes and who waits, waits for those at work, and closes everything. */
  async close(): Promise<void> {
    await Promise.all([this.#writing.close(), this.#reading.close()])
    await this.#shared?.end()
    this.#closeAll()
  }

  async #takeWriter(turn: Turn, busy: BusyLimits, joins: TakeLimits['joins']): Promise<Taken> {
    // Its work begins now, however long ago it asked: from here on the event loop is watched.
    void this.#loopTurns.due()
    const shared = this.#shared
    if (shared?.grows && this.#healed === this.#condemned && joins?.() && this.#writer !== undefined) {
      return this.#takenWriter(turn, this.#writer, shared)
    }
    if (shared !== undefined) await shared.end()
    return this.#takenWriter(turn, await this.#healedWriter(busy))
  }

  #takenWriter(turn: Turn, handle: SqliteHandle, joined?: SharedCommit): Taken {
    return {
      handle,
      giveBack: (fate) => {
        this.#end(fate)
        turn.done()
      },
      sharing: new WriterSharing(joined, this.#writing, this.#loopTurns, (wrote) => {
        const shared = joined ?? this.#share(handle)
        const told = shared.add(wrote)
        if (this.#writing.waiting > 0 && shared.grows) shared.passOn()
        else void shared.end()
        turn.done()
        return told
      }),
    }
  }

  #share(handle: SqliteHandle): SharedCommit {
    const { domain, clock, random } = this.#options
    const over = (fate: 'keep' | 'drop' | 'condemn'): void => {
      this.#shared = undefined
      this.#end(fate)
    }
    this.#shared = new SharedCommit({ handle, domain, clock, random, over })
    return this.#shared
  }

  #end(fate: 'keep' | 'drop' | 'condemn'): void {
    if (fate === 'condemn') this.#condemn()
    else if (fate === 'drop') this.#dropWriter()
  }

  async #takeReader(turn: Turn, busy: BusyLimits): Promise<Taken> {
    if (this.#healed < this.#condemned) await this.#healFirst(busy)
    const handle = this.#idleReaders.pop() ?? (await whileBusy(busy, isBusy, () => this.#open(true)))
    return this.#takenReader(turn, handle)
  }

  #takenReader(turn: Turn, handle: SqliteHandle): Taken {
    const born = this.#condemned
    return {
      handle,
      giveBack: (fate) => {
        // A reader from before a failed COMMIT would keep the old index of the log alive.
        if (fate === 'keep' && born === this.#condemned) this.#idleReaders.push(handle)
        else closeQuietly(handle)
        turn.done()
      },
    }
  }

  async #healFirst(busy: BusyLimits): Promise<void> {
    const { waitMs, signal } = busy
    const turn = await this.#writing.take(defined({ waitMs, signal }))
    try {
      await this.#shared?.end()
      await this.#healedWriter(busy)
    } finally {
      turn.done()
    }
  }

  // Only whoever has the writer's turn comes here.
  async #healedWriter(busy: BusyLimits): Promise<SqliteHandle> {
    this.#writer ??= await whileBusy(busy, isBusy, () => this.#open(false))
    const writer = this.#writer
    const wanted = this.#condemned
    if (this.#healed === wanted) return writer
    try {
      await whileBusy(busy, isBusy, () => writer.exec('BEGIN IMMEDIATE'))
      heal(writer, this.#options.metaTable)
    } catch (error) {
      // Another ambiguous COMMIT, or none at all: what is in the log is as uncertain as before.
      this.#closeAll()
      throw error
    }
    this.#healed = wanted
    return writer
  }

  #condemn(): void {
    this.#condemned += 1
    this.#closeAll()
  }

  #closeAll(): void {
    this.#dropWriter()
    for (const handle of this.#idleReaders.splice(0)) closeQuietly(handle)
  }

  #dropWriter(): void {
    if (this.#writer !== undefined) closeQuietly(this.#writer)
    this.#writer = undefined
  }

  #open(readOnly: boolean): SqliteHandle {
    const handle = this.#options.open()
    try {
      prepareConnection(handle, readOnly)
      return handle
    } catch (error) {
      closeQuietly(handle)
      throw error
    }
  }
}

// A class: an accessor in an object literal would give each object a shape of its own.
class WriterSharing implements Sharing {
  readonly joined: SharedCommit | undefined
  readonly handOver: (wrote: boolean) => Promise<void>
  readonly #writing: Turns
  readonly #loopTurns: LoopTurns

  constructor(joined: SharedCommit | undefined, writing: Turns, loopTurns: LoopTurns, handOver: Sharing['handOver']) {
    this.joined = joined
    this.handOver = handOver
    this.#writing = writing
    this.#loopTurns = loopTurns
  }

  get wanted(): boolean {
    return this.#writing.waiting > 0
  }

  get loopTurns(): number {
    return this.#loopTurns.seen
  }
}

/** What Reprise sets on every connection that it opens. */
function prepareConnection(handle: SqliteHandle, readOnly: boolean): void {
  // The driver's own wait would stop the event loop; ours does not.
  handle.exec('PRAGMA busy_timeout = 0')
  const files = rowsOf(handle.prepare('PRAGMA database_list'), [])
  if (!files.some((row) => row['name'] === 'main' && String(row['file'] ?? '') !== '')) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'Reprise opens several connections, which a database in memory cannot have. Open a file, or use the store in memory.',
    )
  }
  if (pragma(handle, 'journal_mode') !== 'wal') handle.exec('PRAGMA journal_mode = WAL')
  // Some drivers are built to sync once in a while only; a commit must be on disk when it is answered.
  handle.exec('PRAGMA synchronous = FULL')
  if (readOnly) handle.exec('PRAGMA query_only = 1')
}

function pragma(handle: SqliteHandle, name: string): unknown {
  const [row] = rowsOf(handle.prepare(`PRAGMA ${name}`), [])
  return row === undefined ? undefined : Object.values(row)[0]
}

// Frames of a COMMIT whose sync failed stay in the log, complete with checksums, although nobody sees them: the next
// recovery would take them for committed. A commit of our own goes over them and breaks the chain of checksums that
// makes the rest valid. Emptying the log after it gets rid of pages which the system may have given up writing; readers
// can stand in its way, and then the next checkpoint does it.
function heal(writer: SqliteHandle, metaTable: string): void {
  writer.exec(`CREATE TABLE IF NOT EXISTS ${metaTable} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`)
  writer.exec(
    `INSERT INTO ${metaTable} (name, value) VALUES ('heals', '1')
     ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)`,
  )
  writer.exec('COMMIT')
  try {
    writer.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // A reader is in the way.
  }
}

function closeQuietly(handle: SqliteHandle): void {
  forgetStatements(handle)
  try {
    if (isOpen(handle)) handle.exec('ROLLBACK')
  } catch {
    // Closing rolls back too.
  }
  try {
    handle.close()
  } catch {
    // It is closed already.
  }
}
