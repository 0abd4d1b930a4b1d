// Who is inside which savepoint. A savepoint belongs to all statements of its connection, so what is not part of its
// work has to wait until it is over: else it would be undone with it.

import type { HandleLife } from '../../../atomicity/index.js'
import { type OpenScope, RepriseError, type ScopeKind, scopeKind } from '../../../kernel/index.js'

interface OpenSavepoint {
  /** The transaction it belongs to. */
  readonly turns: object
  /** The savepoint around it, or around the transaction that is open around this one's body. */
  readonly around: OpenSavepoint | undefined
  /** Resolves when it is over. */
  readonly ended: Promise<void>
  open: boolean
}

const places: ScopeKind<OpenSavepoint> = /* @__PURE__ */ scopeKind<OpenSavepoint>('reprise.savepoint')

/** The savepoints of one transaction, one inside the other, never side by side. */
export interface SavepointTurns {
  /**
   * Undefined: a statement from here may be sent now. Else what to wait for before asking again, since others may have
   * waited for the same. Refuses one that comes out of a savepoint that is over.
   */
  turn(): Promise<void> | undefined
  /**
   * Runs `work` as the only one that may send statements, after every savepoint that is not around the caller has
   * ended.
   */
  enter<Result>(work: () => Promise<Result>): Promise<Result>
}

/** The turns of a new transaction, whose handle lives as `life` says. */
export function savepointTurns(life: Pick<HandleLife, 'over' | 'whenOver'>): SavepointTurns {
  return new Turns(life)
}

class Turns implements SavepointTurns {
  readonly #life: Pick<HandleLife, 'over' | 'whenOver'>
  readonly #open: OpenSavepoint[] = []
  #used = false

  constructor(life: Pick<HandleLife, 'over' | 'whenOver'>) {
    this.#life = life
  }

  turn(): Promise<void> | undefined {
    // After the end nobody is kept waiting: the handle refuses what comes.
    if (!this.#used || this.#life.over) return undefined
    const here = this.#here()
    const top = this.#open.at(-1)
    return top === here ? undefined : top?.ended
  }

  async enter<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#used = true
    for (let wait = this.turn(); wait !== undefined; wait = this.turn()) await wait
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const place: OpenSavepoint = { turns: this, around: places.current(), ended, open: true }
    // The scope ends with the transaction and not with the savepoint: what the work left behind is still known to come
    // out of it, and refused.
    const scope: OpenScope = places.open(place)
    this.#life.whenOver(() => scope.end())
    this.#open.push(place)
    try {
      return await scope.call(work)
    } finally {
      place.open = false
      this.#open.splice(this.#open.indexOf(place), 1)
      end()
    }
  }

  // The innermost savepoint of this transaction that the caller's code runs in.
  #here(): OpenSavepoint | undefined {
    let place = places.current()
    while (place !== undefined && place.turns !== this) place = place.around
    if (place === undefined || place.open) return place
    throw new RepriseError('TRANSACTION_OVER', 'The savepoint that this statement belonged to has ended.')
  }
}
