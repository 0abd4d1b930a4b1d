// Work of one call on a connection: a read on a reader, or a transaction on the writer that begins, works and commits without waiting for anything in between.

import type { RecordLimits, Ruling } from '../../../atomicity/index.js'
import { type Clock, earlier, isRepriseError, type Random, RepriseError } from '../../../kernel/index.js'
import { LockTimeoutError } from '../../sql/index.js'
import { whileBusy } from '../connection/busy.js'
import type { Connections, Taken } from '../connection/connections.js'
import { isBusy, isOpen, type SqliteHandle } from '../connection/driver.js'

/** What they need. */
export interface ShortTransactionParts {
  /** All connections. */
  readonly connections: Connections
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
  /** The longest wait for the writer's turn, in ms, where somebody is told when to give up a lock. */
  readonly connectionWaitMs: number
  /** What an answer to COMMIT means. */
  readonly classify: (error: unknown, phase: 'committing') => Ruling
}

/** Short transactions of a store. */
export class ShortTransactions {
  readonly #parts: ShortTransactionParts

  constructor(parts: ShortTransactionParts) {
    this.#parts = parts
  }

  /** Reads on a reader; the work is one statement, so it sees one commit. */
  async reading<Result>(limits: RecordLimits, work: (handle: SqliteHandle) => Result): Promise<Result> {
    const read = this.#readAtOnce(limits, work)
    if (read !== undefined) return read.result
    return this.#inTime(limits, async (waitMs) => {
      const taken = await this.#take(limits, waitMs, true)
      let fate: 'keep' | 'drop' = 'drop'
      try {
        const result = await whileBusy(this.#busy(limits), () => work(taken.handle))
        fate = 'keep'
        return result
      } finally {
        taken.giveBack(fate)
      }
    })
  }

  // The usual way, in which nobody waits, without a promise. Undefined: somebody is in the way, or it is too late.
  #readAtOnce<Result>(
    { deadline, signal }: RecordLimits,
    work: (handle: SqliteHandle) => Result,
  ): { readonly result: Result } | undefined {
    const { clock, connections } = this.#parts
    if (deadline.expiresAtMs <= clock.monotonicMs()) return undefined
    const taken = connections.takeAtOnce(signal === undefined ? { readOnly: true } : { readOnly: true, signal })
    if (taken === undefined) return undefined
    let fate: 'keep' | 'drop' = 'drop'
    try {
      const result = work(taken.handle)
      fate = 'keep'
      return { result }
    } catch (error) {
      if (isBusy(error)) return undefined
      throw error
    } finally {
      taken.giveBack(fate)
    }
  }

  /** Works on the writer, and commits. Work that throws leaves nothing behind. */
  async writing<Result>(limits: RecordLimits, work: (handle: SqliteHandle) => Result): Promise<Result> {
    return this.#inTime(limits, async (leftMs) => {
      const taken = await this.#take(limits, this.#turnWaitMs(limits, leftMs), false)
      const { handle } = taken
      let fate: 'keep' | 'drop' | 'condemn' = 'drop'
      try {
        await whileBusy(this.#lock(limits), () => handle.exec('BEGIN IMMEDIATE'))
        const result = work(handle)
        await this.#commit(handle, limits, () => {
          fate = 'condemn'
        })
        fate = 'keep'
        return result
      } catch (error) {
        if ((fate as string) === 'drop' && isRolledBack(handle)) fate = 'keep'
        throw error
      } finally {
        taken.giveBack(fate)
      }
    })
  }

  // BUSY in answer to COMMIT leaves the transaction open and whole: COMMIT alone is sent again.
  async #commit(handle: SqliteHandle, limits: RecordLimits, condemn: () => void): Promise<void> {
    try {
      await whileBusy(this.#busy(limits), () => handle.exec('COMMIT'))
    } catch (error) {
      if (this.#parts.classify(error, 'committing').outcome !== 'aborted') condemn()
      throw error
    }
  }

  #take({ signal, urgent = false }: RecordLimits, waitMs: number, readOnly: boolean): Promise<Taken> {
    const limits = { waitMs, readOnly, urgent }
    return this.#parts.connections.take(signal === undefined ? limits : { ...limits, signal })
  }

  #busy({ deadline }: RecordLimits): Parameters<typeof whileBusy>[0] {
    const { clock, random } = this.#parts
    return { waitMs: deadline.expiresAtMs - clock.monotonicMs(), clock, random }
  }

  #lock({ deadline, lockDeadline = deadline }: RecordLimits): Parameters<typeof whileBusy>[0] {
    return this.#busy({ deadline: earlier(deadline, lockDeadline) })
  }

  // Who has the turn has the lock, or waits for it: it is worth waiting for both equally long, and for the turn as long as a transaction does.
  #turnWaitMs({ lockDeadline }: RecordLimits, leftMs: number): number {
    const { clock, connectionWaitMs } = this.#parts
    if (lockDeadline === undefined) return leftMs
    return Math.min(leftMs, Math.max(connectionWaitMs, lockDeadline.expiresAtMs - clock.monotonicMs()))
  }

  async #inTime<Result>({ deadline }: RecordLimits, work: (leftMs: number) => Promise<Result>): Promise<Result> {
    const { clock } = this.#parts
    const leftMs = deadline.expiresAtMs - clock.monotonicMs()
    if (leftMs <= 0) throw tooLate()
    try {
      return await work(leftMs)
    } catch (error) {
      const shown = isBusy(error) ? new LockTimeoutError(error, []) : error
      const waited = shown !== error || isRepriseError(error, 'POOL_EXHAUSTED')
      throw waited && clock.monotonicMs() >= deadline.expiresAtMs ? tooLate(shown) : shown
    }
  }
}

function isRolledBack(handle: SqliteHandle): boolean {
  try {
    if (isOpen(handle)) handle.exec('ROLLBACK')
    return !isOpen(handle)
  } catch {
    return false
  }
}

function tooLate(cause?: unknown): RepriseError {
  const message = 'The deadline passed before the store answered.'
  return new RepriseError('DEADLINE_EXCEEDED', message, cause === undefined ? {} : { cause })
}
