// The life of a handle: usable, poisoned by its first error, over. Savepoints scope an error, so that the transaction
// goes on after it.

import { eventLoopTurn, RepriseError } from '../kernel/index.js'
import type { Emission } from './outbox/message.js'

/** What an engine does for a savepoint. */
export interface SavepointSteps {
  open(name: string): void | PromiseLike<void>
  /** Forgets it and keeps what was done since. */
  release(name: string): void | PromiseLike<void>
  /** Undoes what was done since it was opened, and forgets it. */
  undo(name: string): void | PromiseLike<void>
}

/** The same for an engine that answers at once. */
export interface SynchronousSavepointSteps extends SavepointSteps {
  open(name: string): void
  /** Forgets it and keeps what was done since. */
  release(name: string): void
  /** Undoes what was done since it was opened, and forgets it. */
  undo(name: string): void
}

/**
 * A savepoint that one call opens and another one ends, as the inner transactions of query builders are. Its methods
 * answer at once where the engine does.
 */
export interface SavepointMark {
  /** Forgets it and keeps what was done since. Refuses with an error of the engine since then, and stays open. */
  release(): void | Promise<void>
  /**
   * Undoes what was done since it was opened, and the marks that were opened in it. In a transaction that is poisoned
   * there is nothing to do: it is undone as a whole.
   *
   * @param fate Whether it is forgotten, or stays open.
   */
  undo(fate: 'forget' | 'keep'): void | Promise<void>
}

/** Whether a handle can be used, and what ended it. */
export interface HandleLife {
  /** The first thing that poisoned the whole transaction. */
  readonly poisoned: { readonly error: unknown } | undefined
  /**
   * Refuses with what ended the handle: TRANSACTION_OVER, or the error that poisoned the transaction or the savepoint
   * that is open.
   */
  check(): void
  /** Poisons the transaction; the first error stays. */
  poison(error: unknown): void
  /** Notes an error of the engine: it poisons the innermost savepoint, or the transaction where none is open. */
  failed(error: unknown): void
  /** Notes an error of the engine whose statement was undone alone: the transaction goes on. */
  undone(error: unknown): void
  /**
   * The body threw. Where that is an error of the engine, or was caused by one, the transaction fails with that one: a
   * serialization failure is one also where a savepoint was around it.
   */
  threw(error: unknown): void
  /** From here on every call is refused. */
  end(): void
  /** Whether `end` was called. */
  readonly over: boolean
  /** Whether every call is refused: `end` was called, or the body has returned and nothing of it is under way. */
  readonly closed: boolean
  /** What the body has emitted so far, in order; what was emitted in a savepoint goes when that is undone. */
  readonly emissions: readonly Emission[] | undefined
  /** Keeps what the body emits until the end of the transaction. Refuses as `check` does, and where it is too much. */
  emit(emissions: readonly Emission[]): void
  /** Calls `work` when `end` is called, or now where it was. */
  whenOver(work: () => void): void
  /**
   * Runs a call of the body, which may not wait for it; one that answers at once saves its promises. A failure that
   * keeps the transaction from committing is told by the transaction, and raises no `unhandledRejection`; any other one
   * is left to whoever made the call.
   *
   * @param told What tells it beside the call: `'noted'`, it was handed to `failed` or `poison`; `'poisoned'`, the
   *   whole transaction is poisoned; `'alone'`, the same, and a failure poisons nothing by itself: the call stands for
   *   itself, also when the body has returned. Default `'noted'`.
   */
  call<Result>(work: () => Promise<Result> | Result, told?: 'noted' | 'poisoned' | 'alone'): Promise<Result>
  /**
   * The body has returned: waits for the calls that it did not wait for, any failure of which poisons the transaction
   * now. After that further calls are refused. Undefined: there are none.
   */
  settle(): Promise<void> | undefined
  /**
   * Refuses to commit while a savepoint is open, with SAVEPOINT_ORDER: the body did not await it, so half of its work
   * would be stored. Otherwise the same as `check`.
   */
  checkBeforeCommit(): void
  /**
   * Runs the work inside a savepoint, and undoes it where the work fails or an error of the engine was swallowed in it.
   */
  savepoint<Result>(steps: SavepointSteps, work: () => PromiseLike<Result> | Result): Promise<Result>
  /** Opens a savepoint that another call ends. One that is open when the body has returned keeps it from committing. */
  mark(steps: SynchronousSavepointSteps): SavepointMark
  mark(steps: SavepointSteps): SavepointMark | Promise<SavepointMark>
}

interface Level {
  readonly name: string
  /** How many messages were emitted before it. */
  readonly emitted: number
  failure: { readonly error: unknown } | undefined
}

/** More messages are not emitted by one transaction: all of them are in memory, and leave together. */
const mostEmissions = 10_000

type Told = 'noted' | 'poisoned' | 'alone'

/** The life of a new handle. */
export function handleLife(): HandleLife {
  return new Life()
}

class Life implements HandleLife {
  // Plain members and no accessors: they are asked for several times by each transaction.
  poisoned: { readonly error: unknown } | undefined
  over = false
  emissions: Emission[] | undefined
  readonly #levels: Level[] = []
  #opened = 0
  // From the call on until its promise settles: one that is being opened or released is not over either.
  #underway = 0
  #whenOver: (() => void)[] | undefined
  #noted: Set<unknown> | undefined
  #calls = 0
  #body: 'running' | 'returned' | 'settled' = 'running'
  #whenQuiet: (() => void)[] | undefined

  check(): void {
    // What poisoned it says more than that it is over, but only while it is not: a late caller must not see an old
    // error as its own.
    if (this.over) throw handleOver()
    if (this.poisoned !== undefined) throw this.poisoned.error
    for (const { failure } of this.#levels) if (failure !== undefined) throw failure.error
  }

  checkBeforeCommit(): void {
    if ((this.#underway > 0 || this.#levels.length > 0) && !this.over && this.poisoned === undefined) {
      throw new RepriseError('SAVEPOINT_ORDER', 'A savepoint is still open: the body ended without awaiting it.')
    }
    this.check()
  }

  poison(error: unknown): void {
    this.poisoned ??= { error }
  }

  get closed(): boolean {
    return this.over || this.#body === 'settled'
  }

  undone(error: unknown): void {
    this.#noted ??= new Set()
    this.#noted.add(error)
  }

  failed(error: unknown): void {
    this.undone(error)
    const level = this.#levels.at(-1)
    if (level === undefined) this.poison(error)
    else level.failure ??= { error }
  }

  emit(emissions: readonly Emission[]): void {
    this.check()
    const before = this.emissions?.length ?? 0
    if (before + emissions.length > mostEmissions) {
      const message = `A transaction emits at most ${mostEmissions} messages.`
      throw new RepriseError('MESSAGE_TOO_LARGE', message, {
        details: { messages: before + emissions.length, most: mostEmissions },
      })
    }
    if (this.emissions === undefined) this.emissions = [...emissions]
    else this.emissions.push(...emissions)
  }

  threw(error: unknown): void {
    let cause = error
    for (let depth = 0; depth < mostCauses && this.#noted !== undefined && cause instanceof Error; depth++) {
      if (this.#noted.has(cause)) this.poison(cause)
      cause = cause.cause
    }
  }

  end(): void {
    this.over = true
    if (this.#whenOver !== undefined) for (const work of this.#whenOver.splice(0)) work()
    if (this.#whenQuiet !== undefined) this.#quiet()
  }

  whenOver(work: () => void): void {
    if (this.over) work()
    else if (this.#whenOver === undefined) this.#whenOver = [work]
    else this.#whenOver.push(work)
  }

  call<Result>(work: () => Promise<Result> | Result, told: Told = 'noted'): Promise<Result> {
    if (this.#body === 'settled') return Promise.reject(handleOver())
    // One that is refused because all is over was a mistake of whoever made it, and nobody else would tell.
    const inTime = !this.over
    let answer: Promise<Result> | Result
    try {
      answer = work()
    } catch (error) {
      answer = Promise.reject<Result>(error)
    }
    if (!(answer instanceof Promise)) return Promise.resolve(answer)
    this.#calls += 1
    const called: Promise<Result> = answer.then(
      (result) => {
        this.#calls -= 1
        if (this.#whenQuiet !== undefined) this.#quiet()
        return result
      },
      (error: unknown) => {
        if (inTime && this.#tells(error, told)) called.catch(ignore)
        this.#calls -= 1
        if (this.#whenQuiet !== undefined) this.#quiet()
        throw error
      },
    )
    return called
  }

  settle(): Promise<void> | undefined {
    this.#body = 'returned'
    if (this.#calls > 0) return this.#settled()
    this.#body = 'settled'
    return undefined
  }

  async #settled(): Promise<void> {
    while (this.#calls > 0 && !this.over) {
      await new Promise<void>((resolve) => {
        this.#whenQuiet ??= []
        this.#whenQuiet.push(resolve)
      })
      // What waited for the last call may make the next one.
      await eventLoopTurn()
    }
    this.#body = 'settled'
  }

  #tells(error: unknown, told: Told): boolean {
    if (this.over) return true
    if (this.#body === 'returned' && told !== 'alone') this.poison(error)
    return this.poisoned !== undefined || (told === 'noted' && this.#noted?.has(error) === true)
  }

  // Tells those who wait, once no call is under way or the handle is over.
  #quiet(): void {
    if (this.#calls > 0 && !this.over) return
    for (const resolve of this.#whenQuiet?.splice(0) ?? []) resolve()
  }

  async savepoint<Result>(steps: SavepointSteps, work: () => PromiseLike<Result> | Result): Promise<Result> {
    this.#underway += 1
    try {
      return await this.#inSavepoint(steps, work)
    } finally {
      this.#underway -= 1
    }
  }

  async #inSavepoint<Result>(steps: SavepointSteps, work: () => PromiseLike<Result> | Result): Promise<Result> {
    const level = this.#newLevel()
    await this.#step(() => steps.open(level.name))
    this.#levels.push(level)
    let result: Result
    try {
      result = await work()
    } catch (error) {
      // It stays the innermost one until it is undone: statements that were started beside the one that failed are
      // still answered, with errors of their own, and what comes now is refused.
      level.failure ??= { error }
      if (this.#isSound(level)) await this.#step(() => steps.undo(level.name))
      this.#dropEmitted(level)
      this.#leave(level)
      throw error
    }
    const { failure } = level
    if (this.#isSound(level)) {
      await this.#step(() => (failure === undefined ? steps.release(level.name) : steps.undo(level.name)))
    }
    if (failure !== undefined) this.#dropEmitted(level)
    this.#leave(level)
    return this.#resultOf(failure, result)
  }

  mark(steps: SynchronousSavepointSteps): SavepointMark
  mark(steps: SavepointSteps): SavepointMark | Promise<SavepointMark>
  mark(steps: SavepointSteps): SavepointMark | Promise<SavepointMark> {
    const level = this.#newLevel()
    const leave = (from: number): void => {
      const place = this.#levels.indexOf(level)
      if (place >= 0) this.#levels.splice(place + from)
    }
    const mark: SavepointMark = {
      release: () => {
        this.check()
        return this.#stepped(
          () => steps.release(level.name),
          () => leave(0),
        )
      },
      undo: (fate) => {
        if (this.over) throw handleOver()
        if (this.poisoned !== undefined) return
        const forgotten = (): void => {
          this.#dropEmitted(level)
          leave(0)
        }
        const reopened = (): void => {
          leave(1)
          level.failure = undefined
        }
        const again = (): void | Promise<void> => {
          this.#dropEmitted(level)
          return this.#stepped(() => steps.open(level.name), reopened)
        }
        return this.#stepped(() => steps.undo(level.name), fate === 'forget' ? forgotten : again)
      },
    }
    return this.#stepped(
      () => steps.open(level.name),
      () => {
        this.#levels.push(level)
        return mark
      },
    )
  }

  #newLevel(): Level {
    this.check()
    this.#opened += 1
    return { name: `reprise_${this.#opened}`, emitted: this.emissions?.length ?? 0, failure: undefined }
  }

  // The level was undone, and what was emitted in it never happened.
  #dropEmitted({ emitted }: Level): void {
    if (emitted === 0) this.emissions = undefined
    else this.emissions?.splice(emitted)
  }

  // An error of the engine that the work swallowed is not swallowed here: what came after it was refused.
  #resultOf<Result>(failure: Level['failure'], result: Result): Result {
    if (this.over) this.check()
    const first = this.poisoned ?? failure
    if (first !== undefined) throw first.error
    return result
  }

  // Savepoints form a stack: releasing one that is not on top would release what others still use. True: it can be
  // ended in the engine.
  #isSound(level: Level): boolean {
    if (this.#levels.at(-1) !== level) {
      this.poison(new RepriseError('SAVEPOINT_ORDER', 'A savepoint was ended while one begun after it was still open.'))
    }
    return !this.over && this.poisoned === undefined
  }

  #leave(level: Level): void {
    const place = this.#levels.indexOf(level)
    if (place >= 0) this.#levels.splice(place, 1)
  }

  async #step(work: () => void | PromiseLike<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.poison(error)
      throw error
    }
  }

  #stepSync(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.poison(error)
      throw error
    }
  }

  // At once where the engine answers at once.
  #stepped<Result>(
    work: () => void | PromiseLike<void>,
    done: () => Result | Promise<Result>,
  ): Result | Promise<Result> {
    let waiting: PromiseLike<void> | undefined
    this.#stepSync(() => {
      waiting = work() ?? undefined
    })
    return waiting === undefined ? done() : this.#step(() => waiting).then(done)
  }
}

const ignore = (): void => undefined
const mostCauses = 10

function handleOver(): RepriseError {
  return new RepriseError('TRANSACTION_OVER', 'The transaction has ended; its handle cannot be used.')
}
