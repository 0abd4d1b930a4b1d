// Who is inside which savepoint. A savepoint belongs to all statements of its connection, so what is not part of its work has to wait
// until it is over: else it would be undone with it.

import { AsyncLocalStorage } from 'node:async_hooks'
import { RepriseError } from '../../kernel/index.js'

interface Place {
  /** The transaction it belongs to. */
  readonly turns: object
  /** The savepoint around it, or around the transaction that is open around this one's body. */
  readonly around: Place | undefined
  /** Resolves when it is over. */
  readonly ended: Promise<void>
  open: boolean
}

// One for all transactions: each instance of its own would make every await of the process dearer.
let places: AsyncLocalStorage<Place> | undefined

/** The savepoints of one transaction, one inside the other, never side by side. */
export interface SavepointTurns {
  /**
   * Undefined: a statement from here may be sent now. Else what to wait for before asking again, since others may have waited for the same. Refuses one that
   * comes out of a savepoint that is over.
   */
  turn(): Promise<void> | undefined
  /** Runs `work` as the only one that may send statements, after every savepoint that is not around the caller has ended. */
  enter<Result>(work: () => Promise<Result>): Promise<Result>
}

/** The turns of a new transaction. */
export function savepointTurns(): SavepointTurns {
  return new Turns()
}

class Turns implements SavepointTurns {
  readonly #open: Place[] = []
  #used = false

  turn(): Promise<void> | undefined {
    if (!this.#used) return undefined
    const here = this.#here()
    const top = this.#open.at(-1)
    return top === here ? undefined : top?.ended
  }

  async enter<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#used = true
    places ??= new AsyncLocalStorage()
    for (let wait = this.turn(); wait !== undefined; wait = this.turn()) await wait
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const place: Place = { turns: this, around: places.getStore(), ended, open: true }
    this.#open.push(place)
    try {
      return await places.run(place, work)
    } finally {
      place.open = false
      this.#open.splice(this.#open.indexOf(place), 1)
      end()
    }
  }

  // The innermost savepoint of this transaction that the caller's code runs in.
  #here(): Place | undefined {
    let place = places?.getStore()
    while (place !== undefined && place.turns !== this) place = place.around
    if (place === undefined || place.open) return place
    throw new RepriseError('TRANSACTION_OVER', 'The savepoint that this statement belonged to has ended.')
  }
}
