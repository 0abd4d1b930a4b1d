// Long work of a leased route: a request is answered with 202 as soon as its claim is durable, the work goes on behind
// it, and whoever shuts the service down can wait for what is in hand.

import {
  begin,
  type LeasedOperation,
  type Outcome,
  operationId,
  type RecordStore,
  timeOfRecords,
} from '../../../idempotency/index.js'
import type { Key, StoredKey } from '../../../identity/index.js'
import {
  type Duration,
  defined,
  demandKnown,
  durationMs,
  inTime,
  isRepriseError,
  RepriseError,
} from '../../../kernel/index.js'
import { type Answer, AnswerError, discardBody, reply } from '../answer/answer.js'
import { problemKinds } from '../problems.js'
import { tellCause } from '../route/causes.js'
import { errorProblem } from '../route/error-problem.js'
import { type Arrival, arrivalIdentity, HandlerError, thrownBy } from '../route/handler.js'
import type { LeasedRouteOptions } from '../route/options.js'
import type { RouteSettings } from '../route/settings.js'

// A leased operation whose inputs are requests.
type RouteWork<Native, Input> = LeasedOperation<Arrival<Native, Input>, Answer, 'answer'>

/** How to wait for work in hand. */
export interface DrainOptions {
  /** How long to wait at most. Default `'30s'`. */
  readonly within?: Duration
}

/** What a route knows of its work. */
export interface WorkParts<Native, Input> {
  readonly store: RecordStore
  readonly operation: RouteWork<Native, Input>
  readonly settings: RouteSettings<Native, Input>
  readonly options: Pick<LeasedRouteOptions<Native, Input>, 'location' | 'workLimit'>
}

/** The work of one route, in this process. */
export class LongWork<Native, Input> {
  readonly #parts: WorkParts<Native, Input>
  readonly #inHand = new Map<StoredKey, Promise<void>>()

  constructor(parts: WorkParts<Native, Input>) {
    this.#parts = parts
  }

  /**
   * Begins the work of a request: the 202 that accepts it, also where it was accepted before and is being worked on, or
   * the outcome of work that has ended. Refuses like the operation.
   *
   * @param deadline How long it may take until there is a claim, in ms.
   */
  async begin(arrival: Arrival<Native, Input>, deadline: number): Promise<Answer | Outcome<Answer, 'answer'>> {
    const { store, operation, settings, options } = this.#parts
    const { scope } = arrivalIdentity<Native, Input>(settings.name)
    const id = operationId(settings.name, scope(arrival), arrival.key as Key, store.records.pepper)
    // Before anything is begun: it may be the user's own function that fails.
    const answer = workingAnswer(this.#locationOf(id, arrival))
    const { workLimit } = options
    try {
      const begun = await begin(operation, arrival, workLimit === undefined ? { deadline } : { deadline, workLimit })
      if (begun.state === 'ended') return begun.outcome
      this.#keepInHand(id, begun.end)
    } catch (error) {
      // Where only the whole store can be locked, somebody may be at work on any key.
      if (!isRepriseError(error, 'OPERATION_IN_FLIGHT') || error.details['certain'] === false) throw error
    }
    return answer
  }

  /** Settles when the work under a record has ended; undefined: it is not in hand here. */
  endOf(id: StoredKey): Promise<void> | undefined {
    return this.#inHand.get(id)
  }

  /** Waits until no work is in hand, and says how much still is when the time is up. */
  async drain(options: DrainOptions = {}): Promise<number> {
    demandKnown(options, ['within'], 'options of drain')
    const { clock } = timeOfRecords(this.#parts.store.records)
    const untilMs = clock.monotonicMs() + durationMs(options.within ?? '30s', { option: 'within' })
    while (this.#inHand.size > 0) {
      const limitMs = untilMs - clock.monotonicMs()
      if (limitMs <= 0) break
      const all = Promise.all(this.#inHand.values())
      await inTime({ clock, limitMs, expired: () => timeIsUp }, all).catch(() => undefined)
    }
    return this.#inHand.size
  }

  #locationOf(id: StoredKey, arrival: Arrival<Native, Input>): string {
    const { location } = this.#parts.options
    if (location === undefined) return `${ownPath(arrival.parts.head.path)}/work/${id}`
    let given: unknown
    try {
      given = location(id, arrival.native, arrival.request())
    } catch (error) {
      throw thrownBy('handler', error)
    }
    if (typeof given === 'string' && /^[\x21-\x7e]{1,2000}$/.test(given)) return given
    throw new RepriseError('ARGUMENT_INVALID', 'The option location of a route gives an address, in visible ASCII.', {
      details: { option: 'location' },
    })
  }

  #keepInHand(id: StoredKey, end: Promise<Outcome<Answer, 'answer'>>): void {
    const ended = end.then(
      // Nobody is going to send it.
      (outcome) => discardBody(outcome.outcome === 'succeeded' ? outcome.value : (outcome.failure.data as Answer)),
      (error: unknown) => this.#tell(error),
    )
    this.#inHand.set(id, ended)
    void ended.then(() => this.#inHand.delete(id))
  }

  // Nobody reads in an answer why work ended without an outcome: whoever runs the service does.
  async #tell(error: unknown): Promise<void> {
    const { operation, settings, store } = this.#parts
    for (const carrier of [error, (Object(error) as Error).cause]) {
      if (carrier instanceof AnswerError) await discardBody(carrier.answer)
    }
    const { name: route, keyField, log } = settings
    const settlesItself = operation.answers.recovery?.kind !== 'hold'
    const problem = errorProblem(error, { keyed: true, keyField, settlesItself })?.name ?? 'work-not-found'
    const thrown = error instanceof HandlerError ? error.thrown : error
    const cause = { route, domain: store.name, problem, status: problemKinds[problem].status, error: thrown }
    tellCause(cause, timeOfRecords(store.records).clock.monotonicMs(), log)
  }
}

const timeIsUp = new Error('The time for work in hand is up.')

/**
 * The answer where work goes on.
 *
 * @param location Where its status is found. Default: it is not said.
 */
export function workingAnswer(location?: string): Answer {
  const headers = { location, 'retry-after': '1', 'cache-control': 'no-store' }
  return reply(202, { state: 'working', ...defined({ location }) }, headers)
}

// The path, and nothing by which it would lead to another host.
function ownPath(path: string): string {
  const local = path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').replace(/^[/\\]+|[/\\]+$/g, '')
  const escaped = local.replace(/[^\x21-\x7e]+/g, (part) => encodeURIComponent(part))
  return escaped === '' ? '' : `/${escaped}`
}
