// Transactions that a query builder begins and ends inside the open one: savepoints, one inner transaction at a time.
// Who began one is told by its client, since its statements come without a function around them.

import type { HandleLife, SavepointMark, SavepointSteps, SynchronousSavepointSteps } from '../../../atomicity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import { transactionRefusal } from '../statements.js'
import type { EndOrSavepoint, InnerStatement } from './inner-statement.js'

/** Refuses words of BEGIN or SET TRANSACTION that ask for something else than what the open transaction is. */
type ModeCheck = (modes: readonly string[]) => void

interface Inner {
  /** The client it was begun on. */
  readonly by: object
  /** The savepoint that it is, and those in it with the names that they were given. Empty while it is being begun. */
  readonly marks: { readonly name: string | undefined; readonly mark: SavepointMark }[]
  /** Whether it ends with a function, and not by a statement. */
  readonly isCall: boolean
}

/** The inner transactions of one transaction. */
export class InnerTransactions<Steps extends SavepointSteps | SynchronousSavepointSteps> {
  readonly #life: Pick<HandleLife, 'mark'>
  readonly #steps: Steps
  readonly #checkModes: ModeCheck
  #inner: Inner | undefined
  #waiting: (() => void)[] = []

  constructor(life: Pick<HandleLife, 'mark'>, steps: Steps, checkModes: ModeCheck) {
    this.#life = life
    this.#steps = steps
    this.#checkModes = checkModes
  }

  /** Refuses with SAVEPOINT_ORDER what does not come from the client of the inner transaction that is open. */
  demand(by: object | undefined): void {
    if (this.#inner === undefined || this.#inner.by === by) return
    throw outOfOrder('An inner transaction is open that this statement is not part of')
  }

  /** Whether one is open that was begun on this client. */
  isOf(by: object): boolean {
    return this.#inner?.by === by
  }

  /**
   * Resolves when the one that is open has ended, for clients that wait for one another; others may have waited for the
   * same. Undefined: none is open, or it is the client's own.
   */
  otherEnds(by: object): Promise<void> | undefined {
    if (this.#inner === undefined || this.#inner.by === by) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #ended(): void {
    this.#inner = undefined
    for (const go of this.#waiting.splice(0)) go()
  }

  /**
   * Does what a statement says, in savepoints. At once where the engine answers at once.
   *
   * @returns False: it concerns no inner transaction, and may be sent.
   */
  perform(statement: InnerStatement, by: object): boolean | Promise<boolean> {
    if (statement.does === 'begin') return this.#begin(statement.modes, by)
    this.demand(by)
    const inner = this.#inner
    if (statement.does === 'set') {
      if (inner === undefined) return false
      this.#checkModes(statement.modes)
      return true
    }
    if (inner === undefined) throw transactionRefusal(statement.does)
    return this.#inside(inner, statement)
  }

  /**
   * Runs work that does not await as an inner transaction, or as a savepoint of the one that is open. A promise as its
   * result is refused with ARGUMENT_INVALID, and the work undone. Savepoints that are left open in it end with it.
   */
  call<Result>(this: InnerTransactions<SynchronousSavepointSteps>, work: () => Result, by: object): Result {
    this.demand(by)
    const around = this.#inner
    const mark = this.#life.mark(this.#steps)
    this.#inner = { by, marks: [{ name: undefined, mark }], isCall: true }
    try {
      const result = work()
      refusePromise(result)
      // An error of the engine that the work swallowed is told here.
      mark.release()
      return result
    } catch (error) {
      mark.undo('forget')
      throw error
    } finally {
      this.#inner = around
    }
  }

  #begin(modes: readonly string[], by: object): boolean | Promise<boolean> {
    if (this.#inner !== undefined) throw outOfOrder('An inner transaction is open already')
    this.#checkModes(modes)
    const inner: Inner = { by, marks: [], isCall: false }
    this.#inner = inner
    return this.#open(inner, undefined)
  }

  #inside(inner: Inner, statement: EndOrSavepoint): true | Promise<true> {
    const [outermost] = inner.marks
    if (outermost === undefined) throw outOfOrder('The inner transaction is still being begun')
    const ended = (): void => this.#ended()
    if (inner.isCall && (statement.does === 'commit' || statement.does === 'rollback')) {
      throw transactionRefusal(statement.does)
    }
    switch (statement.does) {
      case 'commit':
        // What failed in it is told here, and it stays open: a query builder answers with ROLLBACK.
        return done(outermost.mark.release(), ended)
      case 'rollback':
        return done(outermost.mark.undo('forget'), ended)
      case 'savepoint':
        return this.#open(inner, statement.name)
      default: {
        const { does, name } = statement
        const place = inner.marks.findLastIndex((mark) => mark.name === name)
        const found = inner.marks[place]
        if (found === undefined) {
          const message = `${does.toUpperCase()} names a savepoint that is not open in this inner transaction.`
          throw new RepriseError('TRANSACTION_STATEMENT', message, { details: { statement: does } })
        }
        return does === 'release'
          ? done(found.mark.release(), () => inner.marks.splice(place))
          : done(found.mark.undo('keep'), () => inner.marks.splice(place + 1))
      }
    }
  }

  #open(inner: Inner, name: string | undefined): true | Promise<true> {
    const opened = (mark: SavepointMark): true => {
      inner.marks.push({ name, mark })
      return true
    }
    const failed = (error: unknown): never => {
      if (name === undefined) this.#ended()
      throw error
    }
    try {
      const mark = this.#life.mark(this.#steps)
      return mark instanceof Promise ? mark.then(opened, failed) : opened(mark)
    } catch (error) {
      return failed(error)
    }
  }
}

function done(waiting: void | Promise<void>, then: () => unknown): true | Promise<true> {
  const finish = (): true => {
    then()
    return true
  }
  return waiting === undefined ? finish() : waiting.then(finish)
}

function outOfOrder(what: string): RepriseError {
  const message = `${what}. They share one connection: use the handle that the inner one gave to its callback, or await it first.`
  return new RepriseError('SAVEPOINT_ORDER', message)
}

function refusePromise(result: unknown): void {
  if (typeof (result as { readonly then?: unknown } | null | undefined)?.then !== 'function') return
  throw new RepriseError('ARGUMENT_INVALID', 'This work cannot await; use tx.savepoint for work that does.')
}
