// One COMMIT for several writers. Whoever is through while others wait leaves the transaction open; who has the next
// turn works in it behind a savepoint, and all are answered by the one COMMIT at the end. Nobody waits: COMMIT at once.

import { ruleBy } from '../../../atomicity/index.js'
import {
  type Clock,
  eventLoopTurn,
  faultPoint,
  isRepriseError,
  type Random,
  RepriseError,
} from '../../../kernel/index.js'
import { transactionShared } from '../../../telemetry/index.js'
import { whileBusy } from '../../sql/index.js'
import { sqliteClassification } from '../classification.js'
import { mayDeferForeignKeys } from '../client/refusals.js'
import { isBusy, isOpen, rowsOf, type SqliteHandle, signsOf } from './driver.js'
import { writesIn } from './statements.js'

/** More members than this do not wait for one COMMIT. */
const mostMembers = 64
/** Nobody joins a transaction that was first left open longer ago than this, in ms. */
const longestMs = 5
/** The longest that COMMIT waits for a lock, in ms, as a transaction's own does by default. */
const commitWaitMs = 2_000
const part = 'reprise_part'

// The places at which a test can stop, fail or kill the process: before COMMIT, and before anybody is told of it.
type SharedCommitFaultPoint = 'sqlite.sharing' | 'sqlite.shared'

const reach: (point: SharedCommitFaultPoint) => PromiseLike<void> | undefined = faultPoint

/** What a shared COMMIT needs of the connections. */
export interface SharedCommitParts {
  /** The connection on which the transaction is open. */
  readonly handle: SqliteHandle
  readonly domain: string
  readonly clock: Clock
  readonly random: Random
  /** Told that it is over: the connection can be used again, is to be closed, or has left a COMMIT in the log. */
  over(fate: 'keep' | 'drop' | 'condemn'): void
}

/** Who works in the transaction at the moment. */
export interface PartHolder {
  /** Told that the others do not wait any longer: its part is undone. */
  leave(): void
}

interface Member {
  /** Whether its part is in the transaction; one that was undone waits only since it has read what others wrote. */
  readonly wrote: boolean
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A transaction that is open for those who wait, and those who are through with it. */
export class SharedCommit {
  /** Whether somebody can join it. */
  open = true
  /** Present: COMMIT takes its time. */
  ending: Promise<void> | undefined
  readonly #parts: SharedCommitParts
  readonly #members: Member[] = []
  readonly #sinceMs: number
  #holder: PartHolder | undefined
  #handovers = 0
  #watched = false
  #undoneBy: unknown

  constructor(parts: SharedCommitParts) {
    this.#parts = parts
    this.#sinceMs = parts.clock.monotonicMs()
  }

  /** Whether one more may join. */
  get grows(): boolean {
    if (!this.open || this.#members.length >= mostMembers) return false
    if (this.#parts.clock.monotonicMs() - this.#sinceMs >= longestMs) return false
    return !mayDeferForeignKeys() || !defersForeignKeys(this.#parts.handle)
  }

  /** Somebody has the turn, and is to begin a part. */
  heldBy(holder: PartHolder): void {
    this.#holder = holder
  }

  /** Begins a part. */
  beginPart(): void {
    writesIn(this.#parts.handle, `SAVEPOINT ${part}`)
  }

  /** Keeps what the part has done. */
  keepPart(): void {
    writesIn(this.#parts.handle, `RELEASE ${part}`)
  }

  /** Undoes what the part has done; where that fails, all parts are undone. */
  undoPart(): void {
    try {
      writesIn(this.#parts.handle, `ROLLBACK TO ${part}`)
      writesIn(this.#parts.handle, `RELEASE ${part}`)
    } catch (error) {
      this.undo(error)
    }
  }

  /** Somebody is through with a part: settled by COMMIT. */
  add(wrote: boolean): Promise<void> {
    if (!this.open) return Promise.reject(undone(this.#undoneBy))
    return new Promise((resolve, reject) => {
      this.#members.push({ wrote, resolve, reject })
    })
  }

  /** The turn goes to the next one, who joins or ends it; it has a turn of the event loop for that. */
  passOn(): void {
    this.#holder = undefined
    this.#handovers += 1
    if (!this.#watched) this.#watch()
  }

  /** COMMIT, for all. A promise where it takes its time; never rejected, since the members are told. */
  end(): Promise<void> | undefined {
    if (!this.open) return this.ending
    this.open = false
    this.#holder = undefined
    const fault = reach('sqlite.sharing')
    if (fault === undefined) {
      try {
        this.#commit()
        this.#committed()
        return undefined
      } catch (error) {
        if (!isBusy(error)) {
          this.#failed(error)
          return undefined
        }
      }
    }
    this.ending = this.#endLater(fault)
    return this.ending
  }

  /**
   * The transaction is gone, or has to go, and every part with it: an error of the engine has rolled it back, or its
   * connection cannot be trusted any more.
   */
  undo(error: unknown): void {
    if (!this.open) return
    this.open = false
    this.#holder = undefined
    this.#rolledBack(error)
  }

  #watch(): void {
    this.#watched = true
    const seen = this.#handovers
    void eventLoopTurn().then(() => {
      if (!this.open) return
      // Somebody else works in it by now, and has a whole turn too.
      if (this.#handovers !== seen) return this.#watch()
      this.#holder?.leave()
      this.end()
    })
  }

  async #endLater(fault: PromiseLike<void> | undefined): Promise<void> {
    const { clock, random } = this.#parts
    try {
      if (fault !== undefined) await fault
      // BUSY in answer to COMMIT leaves the transaction open and whole: COMMIT alone is sent again.
      await whileBusy({ waitMs: commitWaitMs, clock, random }, isBusy, () => this.#commit())
      const told = reach('sqlite.shared')
      if (told !== undefined) await told
    } catch (error) {
      this.#failed(error)
      return
    }
    this.#committed()
  }

  #commit(): void {
    const { handle } = this.#parts
    if (!isOpen(handle)) throw endedElsewhere()
    // Not prepared: in libsql a prepared COMMIT that fails stays active and holds its snapshot, also after ROLLBACK.
    handle.exec('COMMIT')
  }

  #committed(): void {
    this.#tell('committed')
    this.#parts.over('keep')
    for (const { resolve } of this.#members) resolve()
  }

  #failed(error: unknown): void {
    const unknown = ruleBy(sqliteClassification, signsOf(error), 'committing').outcome !== 'aborted'
    // Whoever ended it from elsewhere may have done so by COMMIT: nothing is run again on a guess.
    if (!unknown && !isRepriseError(error, 'TRANSACTION_ENDED_ELSEWHERE')) {
      this.#rolledBack(error)
      return
    }
    this.#tell('unknown')
    this.#parts.over(unknown ? 'condemn' : 'drop')
    for (const { wrote, reject } of this.#members) reject(wrote ? ownError(error) : undone(error))
  }

  #rolledBack(error: unknown): void {
    const { handle, over } = this.#parts
    this.#undoneBy = error
    let fate: 'keep' | 'drop' = 'drop'
    try {
      if (isOpen(handle)) handle.exec('ROLLBACK')
      fate = 'keep'
    } catch {
      // Closing the connection rolls back too.
    }
    this.#tell('undone')
    over(fate)
    for (const { reject } of this.#members) reject(undone(error))
  }

  #tell(outcome: 'committed' | 'undone' | 'unknown'): void {
    if (!transactionShared.hasSubscribers) return
    transactionShared.publish({ domain: this.#parts.domain, members: this.#members.length, outcome })
  }
}

/** The error of a body that was still pending when the others had waited for it long enough. */
export function leftBehind(): RepriseError {
  const message =
    'The body was still pending after a turn of the event loop, while others waited for the COMMIT they share with it; it runs again in a transaction of its own.'
  return new RepriseError('SHARED_COMMIT_LEFT', message)
}

/** The error of a transaction that somebody else has ended. */
export function endedElsewhere(): RepriseError {
  return new RepriseError('TRANSACTION_ENDED_ELSEWHERE', 'The transaction was no longer open before COMMIT.')
}

function undone(cause: unknown): RepriseError {
  const message =
    'The COMMIT that the transaction shared with others did not come about; nothing of it happened, and it runs again in a transaction of its own.'
  return new RepriseError('SHARED_COMMIT_UNDONE', message, cause === undefined ? {} : { cause })
}

// What is remembered of an error belongs to one call: each member gets one of its own, with the codes of the first.
function ownError(error: unknown): unknown {
  if (isRepriseError(error)) return new RepriseError(error.code, error.message, { cause: error })
  if (!(error instanceof Error)) return error
  return Object.assign(new Error(error.message, { cause: error }), error)
}

// It ends with the transaction, so that whoever joined would have it too.
function defersForeignKeys(handle: SqliteHandle): boolean {
  const [row] = rowsOf(handle.prepare('PRAGMA defer_foreign_keys'), [])
  return row === undefined || Number(Object.values(row)[0]) !== 0
}
