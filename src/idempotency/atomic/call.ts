// One call of an atomic operation: queue, look, transaction, answer. What is decided is decided by the machine; this carries it out.

import { recordFormat, type Seen } from '../../atomicity/index.js'
import type { Deadline } from '../../kernel/index.js'
import {
  type OperationEvent,
  operationClaimed,
  operationExecuted,
  operationFailed,
  operationReplayed,
} from '../../telemetry/index.js'
import { type KeyedTransactions, refuseInside, transactionHistoryOf } from '../../transaction/index.js'
import { callDeadline } from '../call/call-deadline.js'
import { checkCall, decodedInTime, leastDecodeMs } from '../call/call-options.js'
import { finalFailureIn } from '../call/final-failure.js'
import { type CallIdentity, identify, isSameContent } from '../call/identity.js'
import { privateCopy } from '../call/private-copy.js'
import { mismatch, tellRefusal } from '../call/refusals.js'
import type { CodecContext } from '../codec.js'
import type { Place, Told } from '../define/place.js'
import type { OperationSettings } from '../define/settings.js'
import type { CallOptions } from '../definition.js'
import type { Failure } from '../failure.js'
import type { Lead, Visitor } from '../in-process/queue.js'
import { refuseReentry } from '../in-process/reentry.js'
import {
  checkRegistered,
  type DecodedOutcome,
  decodeOutcome,
  discardReturned,
  type EncodedOutcome,
  encodeOutcome,
  type StoredOutcome,
} from '../values.js'
import { reach } from './fault-points.js'
import { type Ending, OperationKey } from './operation-key.js'

/** What all calls of an operation share. */
export interface AtomicRunner<Handle, Input> {
  /** The definition. */
  readonly settings: OperationSettings<Input>
  /** The domain. */
  readonly place: Place
  /** Runs its transactions. */
  readonly transact: KeyedTransactions<Handle>
  /** The body. */
  readonly run: (tx: Handle, input: Input) => unknown
}

const none: CallOptions = {}

/** How a call ended. */
export type CallEnd = DecodedOutcome & { readonly replayed: boolean; readonly cause?: unknown }

/** Carries one call out. Throws at once what refuses the input. */
export function carryOut<Handle extends { readonly attempt: number }, Input>(
  runner: AtomicRunner<Handle, Input>,
  given: Input,
  options: CallOptions = none,
): Promise<CallEnd> {
  if (options !== none) checkCall(options)
  // Before anything else, and once: whatever happens to the input from here on, this is what the call is about.
  const identity = identify(runner.settings, given, runner.place.clock.wallMs())
  return new AtomicCall(runner, identity, options).end()
}

class AtomicCall<Handle extends { readonly attempt: number }, Input> implements Visitor {
  readonly deadline: Deadline
  readonly signal: AbortSignal | undefined
  readonly waitUntilMs: number
  readonly #runner: AtomicRunner<Handle, Input>
  readonly #identity: CallIdentity<Input>
  readonly #context: CodecContext
  // The last body that failed for good, and the last outcome that was to be stored.
  #thrown: { readonly error: unknown; readonly failure: Failure } | undefined
  #last: Ending | undefined
  // What the last body returned, as long as it may have to be discarded, and how many bodies were begun.
  #returned: { readonly value: unknown } | undefined
  #runs = 0

  constructor(runner: AtomicRunner<Handle, Input>, identity: CallIdentity<Input>, options: CallOptions) {
    const { place, settings } = runner
    const { deadline = place.deadline, signal } = options
    this.#runner = runner
    this.#identity = identity
    this.#context = { id: identity.id, operation: settings.name }
    this.deadline = callDeadline(deadline, settings.windowMs, place.clock)
    this.waitUntilMs = place.clock.monotonicMs() + settings.waitMs
    this.signal = signal
  }

  get fingerprint(): string | undefined {
    return this.#identity.fingerprint
  }

  get refusesDuplicates(): boolean {
    return this.#runner.settings.refusesDuplicates
  }

  get mostWaiting(): number {
    return this.#runner.settings.mostWaiting
  }

  async end(): Promise<CallEnd> {
    try {
      const { queue } = this.#runner.place
      refuseReentry(queue, this.#identity.id)
      // A wait in here would keep the transaction around it open.
      refuseInside()
      if (this.signal?.aborted) throw this.signal.reason
      const entering = queue.enter(this.#identity.id, this)
      const entered = isPromise(entering) ? await entering : entering
      if ('told' in entered) return await this.#follow(entered.told)
      const ending = await this.#lead(entered.lead)
      const fault = reach('operation.told')
      if (fault !== undefined) await fault
      const answer = this.#answer(ending)
      return isPromise(answer) ? await answer : answer
    } catch (error) {
      this.#discard()
      tellRefusal(error, () => this.#event())
      throw error
    }
  }

  // Nobody gets what was returned so far, nor what a body that is still running will return.
  #discard(): void {
    const returned = this.#returned
    this.#returned = undefined
    this.#runs += 1
    if (returned !== undefined) discardReturned(this.#runner.settings.values, returned.value)
  }

  async #follow(told: Told): Promise<CallEnd> {
    if (!isSameContent(this.#identity, { format: recordFormat, fingerprint: told.fingerprint })) throw mismatch()
    this.#announceReplay(told.state, 'leader')
    return { ...(await this.#decoded(told, 0)), replayed: true }
  }

  async #lead(lead: Lead<Told>): Promise<Ending> {
    let told: Told | undefined
    try {
      let fault = reach('operation.leading')
      if (fault !== undefined) await fault
      const { settings, place } = this.#runner
      const key = new OperationKey(this.#identity, settings, place, this.waitUntilMs)
      const known = place.finished.has(key.id) ? await this.#look(key) : undefined
      const ending = known ?? (await this.#execute(key, lead))
      told = ending
      place.finished.add(key.id)
      this.#announceEnd(ending)
      fault = reach('operation.stored')
      if (fault !== undefined) await fault
      return ending
    } finally {
      lead.done(told)
    }
  }

  // One read in place of a transaction, where the key is thought to be finished. What it cannot tell, the transaction will.
  async #look(key: OperationKey): Promise<Ending | undefined> {
    const { finished, records } = this.#runner.place
    let seen: Seen | undefined
    try {
      seen = await records.read(key.id, this.#limits())
    } catch {
      // The transaction will meet the same trouble, and knows what to do about it.
    }
    const fault = reach('operation.looked')
    if (fault !== undefined) await fault
    const found = seen === undefined ? undefined : key.look(seen)
    if (found === undefined) finished.delete(key.id)
    return found?.replay
  }

  async #execute(key: OperationKey, lead: Lead<Told>): Promise<Ending> {
    try {
      return await this.#runner.transact(key, (tx) => this.#body(tx, lead), this)
    } catch (error) {
      const thrown = this.#thrown
      if (thrown !== undefined && thrown.error === error && !isPassing(error)) return this.#storeFailure(key, thrown)
      throw key.explained(error)
    }
  }

  async #body(tx: Handle, lead: Lead<Told>): Promise<Ending> {
    const { settings, run } = this.#runner
    this.#thrown = undefined
    this.#discard()
    const runs = this.#runs
    lead.claimed()
    if (operationClaimed.hasSubscribers) operationClaimed.publish({ ...this.#event(), attempt: tx.attempt })
    let returned: unknown
    try {
      returned = await run(tx, privateCopy(this.#identity.input))
    } catch (error) {
      const failure = finalFailureIn(error, settings.options, () => this.#event())
      if (failure !== undefined) {
        this.#keep(failure, runs)
        checkRegistered(settings.values, failure, error)
        this.#thrown = { error, failure }
      }
      throw error
    }
    this.#keep(returned, runs)
    const encoding = encodeOutcome(settings.values, returned, this.#context)
    this.#last = this.#ended(isPromise(encoding) ? await encoding : encoding)
    return this.#last
  }

  // A body that was given up returns when nobody listens any more.
  #keep(value: unknown, runs: number): void {
    if (runs === this.#runs) this.#returned = { value }
    else discardReturned(this.#runner.settings.values, value)
  }

  #ended({ state, codec, value, whole }: EncodedOutcome, cause?: unknown): Ending {
    const { fingerprint } = this.#identity
    return { state, codec, value, whole, fingerprint, own: true, cause }
  }

  // What the body wrote is rolled back. If somebody else was faster meanwhile, theirs is the outcome.
  async #storeFailure(
    key: OperationKey,
    thrown: { readonly error: unknown; readonly failure: Failure },
  ): Promise<Ending> {
    const fault = reach('operation.failing')
    if (fault !== undefined) await fault
    const { error: cause, failure } = thrown
    const encoded = await encodeOutcome(this.#runner.settings.values, failure, this.#context)
    const ending = this.#ended(encoded, cause)
    this.#last = ending
    try {
      return await this.#runner.transact(key, () => ending, this)
    } catch (error) {
      throw key.explained(error)
    }
  }

  #limits(): { readonly deadline: Deadline; readonly signal?: AbortSignal } {
    const { deadline, signal } = this
    return signal === undefined ? { deadline } : { deadline, signal }
  }

  #answer(ending: Ending): CallEnd | Promise<CallEnd> {
    const { own, state } = ending
    // A commit whose answer was lost was found in the store, where neither of the two is.
    const last = own && isSameOutcome(this.#last, ending) ? this.#last : undefined
    if (last === undefined) this.#discard()
    const whole = last?.whole
    const cause = last?.cause
    const extra = cause === undefined ? { replayed: !own } : { replayed: !own, cause }
    if (whole !== undefined) {
      const { value } = whole
      return state === 'failed'
        ? { outcome: 'failed', failure: value as Failure, ...extra }
        : { outcome: 'succeeded', value, ...extra }
    }
    const decoding = this.#decoded(ending, own ? leastDecodeMs : 0)
    return isPromise(decoding) ? decoding.then((end) => ({ ...end, ...extra })) : { ...decoding, ...extra }
  }

  // Nor may a codec keep the caller for longer than it wants to wait.
  #decoded(stored: StoredOutcome, leastMs: number): DecodedOutcome | Promise<DecodedOutcome> {
    const { settings, place } = this.#runner
    const { deadline, signal } = this
    const decoding = decodeOutcome(settings.values, stored, this.#context)
    return decodedInTime(decoding, { deadline, signal, clock: place.clock, leastMs })
  }

  #event(): OperationEvent {
    const { place, settings } = this.#runner
    return { domain: place.domain, operation: settings.name, mode: 'atomic', id: this.#identity.id }
  }

  #announceEnd({ own, state }: Ending): void {
    if (!own) this.#announceReplay(state, 'store')
    else {
      const channel = state === 'failed' ? operationFailed : operationExecuted
      if (channel.hasSubscribers) channel.publish(this.#event())
    }
  }

  #announceReplay(outcome: 'succeeded' | 'failed', from: 'leader' | 'store'): void {
    if (operationReplayed.hasSubscribers) operationReplayed.publish({ ...this.#event(), outcome, from })
  }
}

function isSameOutcome(last: Ending | undefined, { state, codec, value }: Ending): boolean {
  return last?.state === state && last.codec === codec && last.value === value
}

// Only genuine ones are waited for: what is here made by ourselves.
function isPromise<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return value instanceof Promise
}

// A body that makes a final failure of whatever it catches must not make one of a store that was contended or down: the attempts are used up, nothing else.
function isPassing(error: unknown): boolean {
  return transactionHistoryOf(error)?.attempts.at(-1)?.ruling.help === 'transient'
}
