// A transaction function turned inside out: its work hands out what it was called with, and then waits to be told how
// to end.

import { errorsIn } from '../../atomicity/index.js'
import { type Clock, inTime, RepriseError } from '../../kernel/index.js'

/**
 * What the work is rejected with when the transaction is to be rolled back. It is nobody's failure, and is swallowed
 * where it comes out again.
 */
export class RolledBack extends Error {
  override readonly name: string = 'RolledBack'

  constructor() {
    super('Rolled back on purpose: this is no failure, and nobody gets to see it.')
  }
}

/** How a call of the transaction function ended. */
export type TransactionEnd = { readonly well: true } | { readonly well: false; readonly error: unknown }

/** One call of a transaction function. */
export class InvertedTransaction<Tx> {
  /** How the function ended. Never rejected. */
  readonly settled: Promise<TransactionEnd>
  // What the work was called with. Rejected when the function ends without having called it.
  readonly #begun: Promise<Tx>
  #called = false
  #endedWell = false
  #decided: 'commit' | 'rollback' | undefined
  #decide: () => void = () => undefined

  /** @param lost Called when the function ends before it was told to. */
  constructor(start: (work: (tx: Tx) => Promise<void>) => PromiseLike<unknown>, lost: (error: unknown) => void) {
    const decision = new Promise<void>((resolve) => {
      this.#decide = resolve
    })
    let begin: (tx: Tx) => void = () => undefined
    let fail: (error: unknown) => void = () => undefined
    this.#begun = new Promise((resolve, reject) => {
      begin = resolve
      fail = reject
    })
    // Whoever has given up on it does not wait for it any more.
    this.#begun.catch(() => undefined)
    const work = async (tx: Tx): Promise<void> => {
      if (this.#called) throw calledAgain()
      this.#called = true
      begin(tx)
      await decision
      if (this.#decided !== 'commit') throw new RolledBack()
    }
    this.settled = settlementOf(start, work).then((settlement) => {
      if (this.#decided === undefined) {
        const error = settlement.well ? endedEarly(this.#called) : settlement.error
        fail(error)
        lost(error)
        this.#end('rollback')
      }
      return settlement
    })
  }

  /** Whether the function ended well although its work threw. */
  get endedWell(): boolean {
    return this.#endedWell
  }

  /** Whether the work was called. */
  get called(): boolean {
    return this.#called
  }

  /** Waits until the work is called, at most `waitMs`; gives it up after that with POOL_EXHAUSTED. */
  begunWithin(waitMs: number, clock: Clock): Promise<Tx> {
    const expired = (): RepriseError => {
      this.abandon()
      const message = `The transaction function did not call its work within ${Math.ceil(waitMs)} ms.`
      return new RepriseError('POOL_EXHAUSTED', message, { details: { waitMs } })
    }
    return inTime({ clock, limitMs: Math.max(1, waitMs), expired }, this.#begun)
  }

  /** Lets the work return, and waits for what the function makes of it. Rejected with the function's error. */
  async commit(): Promise<void> {
    this.#end('commit')
    const settlement = await this.settled
    if (!settlement.well) throw settlement.error
  }

  /**
   * Makes the work throw, and waits until the function has rolled back. One that has not called its work yet is not
   * waited for.
   */
  async rollback(): Promise<void> {
    this.#end('rollback')
    if (!this.#called) return
    const settlement = await this.settled
    this.#endedWell = settlement.well
    if (settlement.well) throw endedWell()
    if (!holdsRolledBack(settlement.error)) throw settlement.error
  }

  /** Makes the work throw, also where it is called later, unless it was allowed to return. */
  abandon(): void {
    this.#end('rollback')
  }

  #end(how: 'commit' | 'rollback'): void {
    if (this.#decided !== undefined) return
    this.#decided = how
    this.#decide()
  }
}

async function settlementOf<Tx>(
  start: (work: (tx: Tx) => Promise<void>) => PromiseLike<unknown>,
  work: (tx: Tx) => Promise<void>,
): Promise<TransactionEnd> {
  try {
    await start(work)
    return { well: true }
  } catch (error) {
    return { well: false, error }
  }
}

/** Whether an error is, or was caused by, a rollback on purpose. */
export function holdsRolledBack(error: unknown): boolean {
  for (const found of errorsIn(error)) if (found instanceof RolledBack) return true
  return false
}

function calledAgain(): RepriseError {
  const message = 'The transaction function called its work a second time. It must not repeat on its own: Reprise does.'
  return new RepriseError('TRANSACTION_OVER', message)
}

function endedEarly(called: boolean): RepriseError {
  return called
    ? new RepriseError(
        'TRANSACTION_ENDED_ELSEWHERE',
        'The transaction function ended while its work was still open: it has to wait for it.',
      )
    : new RepriseError('ARGUMENT_INVALID', 'The transaction function ended without having called its work.')
}

function endedWell(): RepriseError {
  const message =
    'The transaction function ended well although its work threw: it must roll back then, and it may have committed.'
  return new RepriseError('TRANSACTION_ENDED_ELSEWHERE', message)
}
