// Faults as data: which statement, at which moment of its exchange, and what happens to the connection.

import { demandKnown, RepriseError } from '../../kernel/index.js'

/**
 * A moment in the exchange of one statement.
 *
 * - `before-forward`: the client has sent it, the server has received none of it;
 * - `after-forward`: all of it was sent to the server, no answer has been read;
 * - `before-answer`: the server's answer (apart from notices) begins to arrive, the client has received none of it;
 * - `between-answers`: everything up to CommandComplete, or an error, was passed on, but not ReadyForQuery;
 * - `after-answers`: ReadyForQuery was passed on too.
 */
export type FaultMoment = 'before-forward' | 'after-forward' | 'before-answer' | 'between-answers' | 'after-answers'

/**
 * What happens to the connection.
 *
 * - `fin`: the client's side is closed in the regular way, after what was passed on; `server` says what happens to the
 *   server's side;
 * - `rst`: the client's side is reset; `server` says what happens to the server's side;
 * - `half-open`: `fin` for the client, while the server's session stays open until `heal` or `close`;
 * - `black-hole`: nothing passes any more in either direction, and nothing is closed until `heal` or `close`;
 * - `delay`: nothing passes for `delayMs`, then everything does;
 * - `late`, only `before-forward`: the client's side is closed (`fin`) now, the statement is delivered `delayMs` later,
 *   and the server's side is closed once it has answered.
 */
export type FaultActionName = 'fin' | 'rst' | 'black-hole' | 'delay' | 'late' | 'half-open'

/** A fault: which statement, when, and what happens. */
export interface ProxyFault {
  /**
   * Which statement: a predicate on its text; its number since the fault was armed, the first being 1; or `startup`,
   * the opening of a connection up to the first ReadyForQuery. Numbers and predicates do not count the opening.
   */
  readonly statement: number | 'startup' | ((text: string) => boolean)
  /** Which of the chosen statements, the first being 1. Has no meaning if `statement` is a number. Default 1. */
  readonly nth?: number
  /** How many in a row. Default 1. */
  readonly times?: number
  readonly at: FaultMoment
  readonly action: FaultActionName
  /**
   * For `delay` and `late`: how long, in ms; default 100. For `rst` between or after answers: how long the client gets
   * to read what was passed on, since a reset may overtake it; default 10.
   */
  readonly delayMs?: number
  /**
   * For `fin` and `rst`: what happens to the server's side. `close`: closed in the regular way, after what was
   * forwarded; `reset`: reset at once, which may overtake what was forwarded; `keep`: left open until `heal` or
   * `close`. Default `close`.
   */
  readonly server?: 'close' | 'reset' | 'keep'
}

/** The record of a fault that happened. */
export interface Fired {
  readonly at: FaultMoment
  readonly action: FaultActionName
  /** The texts of the statements that it hit; empty for the opening of a connection. */
  readonly texts: readonly string[]
  /** The connection's number, the first of the proxy being 1. */
  readonly connection: number
  /** The time on the proxy's monotonic clock, in ms. */
  readonly atMs: number
  /** Bytes that had been passed to the server by then. */
  readonly bytesToServer: number
  /** Bytes that had been passed to the client by then. */
  readonly bytesToClient: number
}

/** A fault that waits for its statement or has already happened. */
export interface ArmedFault {
  readonly fault: ProxyFault
  /** Every time it happened, in order. */
  readonly fired: readonly Fired[]
  /** Resolves when it happens for the first time. */
  readonly first: Promise<Fired>
  /** For `late`: resolves when the server has answered what was delivered late, or can no longer answer. */
  readonly delivered: Promise<void>
  /** Keeps it from happening again. */
  disarm(): void
}

/** An armed fault, as the proxy sees it. */
export class Armed implements ArmedFault {
  readonly fault: ProxyFault
  readonly fired: Fired[] = []
  readonly first: Promise<Fired>
  readonly delivered: Promise<void>
  /** False once it has been disarmed. */
  live = true
  /** Called when the server has answered what was delivered late, or can no longer answer. */
  deliveryIsOver: () => void = () => undefined
  readonly #record: (fired: Fired) => void
  #tellFirst: (fired: Fired) => void = () => undefined
  #seen = 0

  constructor(fault: ProxyFault, record: (fired: Fired) => void) {
    checkFault(fault)
    this.fault = fault
    this.#record = record
    this.first = new Promise((resolve) => {
      this.#tellFirst = resolve
    })
    this.delivered = new Promise((resolve) => {
      this.deliveryIsOver = resolve
    })
  }

  /** Counts the statements of a group, or the opening of a connection, and returns whether the fault hits it. */
  chooses(candidates: readonly string[] | 'startup'): boolean {
    if (!this.live) return false
    const { statement } = this.fault
    if (candidates === 'startup') return statement === 'startup' && this.#isNext()
    if (statement === 'startup') return false
    const matching = typeof statement === 'function' ? candidates.filter((text) => statement(text)) : candidates
    return matching.map(() => this.#isNext()).includes(true)
  }

  #isNext(): boolean {
    const { statement, nth = 1, times = 1 } = this.fault
    const from = typeof statement === 'number' ? statement : nth
    this.#seen += 1
    return this.#seen >= from && this.#seen < from + times
  }

  happened(fired: Fired): void {
    this.fired.push(fired)
    this.#record(fired)
    this.#tellFirst(fired)
  }

  disarm(): void {
    this.live = false
  }
}

const moments: readonly FaultMoment[] = [
  'before-forward',
  'after-forward',
  'before-answer',
  'between-answers',
  'after-answers',
]
const actions: readonly FaultActionName[] = ['fin', 'rst', 'black-hole', 'delay', 'late', 'half-open']
const faultNames = Object.keys({
  statement: 1,
  nth: 1,
  times: 1,
  at: 1,
  action: 1,
  delayMs: 1,
  server: 1,
} satisfies Record<keyof ProxyFault, 1>)

// A fault with a misspelt member would happen elsewhere or never, and the test would prove nothing.
function checkFault(fault: ProxyFault): void {
  demandKnown(fault, faultNames, 'fault')
  const { statement, nth = 1, times = 1, at, action, delayMs = 0, server = 'close' } = fault
  const chosen = statement === 'startup' || typeof statement === 'number' || typeof statement === 'function'
  if (!chosen || !moments.includes(at) || !actions.includes(action) || !['close', 'reset', 'keep'].includes(server)) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'A fault needs a statement, a moment and an action, of those that are known.',
    )
  }
  const counts = [typeof statement === 'number' ? statement : 1, nth, times]
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 1)) {
    throw new RepriseError('ARGUMENT_INVALID', 'A fault counts statements in whole numbers from 1.')
  }
  if (!Number.isFinite(delayMs) || delayMs < 0) {
    throw new RepriseError('ARGUMENT_INVALID', 'The delay of a fault must be a finite number of ms, at least 0.')
  }
  if (action === 'late' && at !== 'before-forward') {
    throw new RepriseError('ARGUMENT_INVALID', 'Only what has not been forwarded can be delivered late.')
  }
}
