// One call of an atomic operation: queue, look, transaction, answer. It is also the key of that transaction: what a
// record that is there means, and how long to wait for one that is not. What is decided is decided by the machine.

import { isSameContent, type RecordDraft, type Seen, type Stored } from '../../atomicity/index.js'
import { type Key, keyScope, type StoredKey } from '../../identity/index.js'
import {
  type Clock,
  type Deadline,
  faultPoint,
  isRepriseError,
  RepriseError,
  type ScopeValue,
} from '../../kernel/index.js'
import {
  type OperationEvent,
  operationClaimed,
  operationExecuted,
  operationFailed,
  operationReplayed,
} from '../../telemetry/index.js'
import {
  type KeyedCall,
  type KeyedTransactions,
  type ReplayOrTakeOver,
  refuseInside,
  transactionHistoryOf,
} from '../../transaction/index.js'
import { type CallIdentity, callDeadline, followed, identify, privateCopy } from '../call-identity.js'
import type { CallOptions } from '../definition.js'
import type { OperationDomain } from '../domain.js'
import { inFlight, refusedBy, tellRefusal } from '../errors.js'
import { operationScope, refuseReentry, type Visitor } from '../in-process.js'
import { decide } from '../machine.js'
import {
  type CodecContext,
  checkRegistered,
  type DecodeLimits,
  decodeOutcome,
  discardReturned,
  type Ending,
  encodeOutcome,
  type Failure,
  finalFailureIn,
  type Outcome,
} from '../outcome.js'
import type { OperationSettings } from '../settings.js'
import type { OperationFaultPoint } from './fault-points.js'

/** What all calls of an operation share. */
export interface AtomicOperation<Handle, Input> {
  readonly settings: OperationSettings<Input>
  readonly domain: OperationDomain
  /** Runs its transactions. */
  readonly transact: KeyedTransactions<Handle>
  readonly run: (tx: Handle, input: Input) => unknown
}

const noOptions: CallOptions = {}

// No claim has this token: a call that has not drafted one looks at a record that cannot be its own.
const undrafted: RecordDraft = { mode: 'atomic', token: '' }

// The unique index blocks duplicates, so a short wait, in ms, shows that another call holds the key. It is longer than
// the store's own short locks, which would be mistaken for that.
const shortWaitMs = 25

/** One call. Made, it has refused an input or options that are not valid. */
export class AtomicCall<Handle extends { readonly attempt: number }, Input>
  implements Visitor, KeyedCall<Ending>, DecodeLimits
{
  readonly id: StoredKey
  readonly fingerprint: string | undefined
  readonly refusesDuplicates: boolean
  readonly mostWaiting: number
  readonly clock: Clock
  readonly deadline: Deadline
  readonly signal: AbortSignal | undefined
  readonly waitUntilMs: number
  readonly rememberedMs: number
  draft: RecordDraft = undrafted
  readonly #operation: AtomicOperation<Handle, Input>
  readonly #identity: CallIdentity<Input>
  readonly #context: CodecContext
  readonly #sinceMs: number
  // Where only the whole store can be locked, whoever holds it may be at work on any key: a call with a key of its own
  // has to wait for its turn.
  readonly #refusesAtOnce: boolean
  // What the last body returned or failed with, as long as it may have to be discarded, and how many were begun.
  #returned: { readonly value: unknown } | undefined
  #runs = 0
  // The last body that failed for good, and the last ending that was to be stored.
  #thrown: { readonly error: unknown; readonly failure: Failure } | undefined
  #last: Ending | undefined
  #blockedBy: unknown

  constructor(operation: AtomicOperation<Handle, Input>, given: Input, options: CallOptions = noOptions) {
    const { domain, settings } = operation
    const { clock } = domain
    this.clock = clock
    // Less its reserve, as the definition was checked.
    this.deadline = callDeadline(options, domain.deadlineMs, settings.windowMs * 0.8, clock)
    this.signal = options.signal
    // Once: whatever happens to the input from here on, this is what the call is about.
    this.#identity = identify(settings, given, clock, domain.records.pepper)
    this.id = this.#identity.id
    this.fingerprint = this.#identity.fingerprint
    this.rememberedMs = settings.windowMs
    this.refusesDuplicates = settings.refusesDuplicates
    this.mostWaiting = settings.mostWaiting
    this.#operation = operation
    this.#context = { id: this.id, operation: settings.name }
    this.#refusesAtOnce = settings.refusesDuplicates && domain.manifest.refuse !== 'coarse'
    this.#sinceMs = clock.monotonicMs()
    this.waitUntilMs = this.#sinceMs + settings.waitMs
  }

  /** Carries the call out. */
  async outcome(): Promise<Outcome<unknown>> {
    const { domain, settings } = this.#operation
    try {
      refuseReentry(domain.queue, this.id)
      // A wait in here would keep the transaction around it open.
      refuseInside()
      if (this.signal?.aborted) throw this.signal.reason
      const entering = domain.queue.enter(this.id, this)
      const told = entering === undefined ? undefined : await entering
      const ending = told === undefined ? await this.#lead() : this.#follow(told)
      const outcome = decodeOutcome(settings.storage, ending, this.#context, this)
      return outcome instanceof Promise ? await outcome : outcome
    } catch (error) {
      this.#discard()
      tellRefusal(error, () => this.#event())
      throw error
    }
  }

  #follow(told: Ending): Ending {
    const ending = followed(this.#identity, told)
    this.#announceReplay(ending, 'leader')
    return ending
  }

  async #lead(): Promise<Ending> {
    const { queue, finished } = this.#operation.domain
    let ending: Ending | undefined
    try {
      let fault = faultPoint('operation.leading' satisfies OperationFaultPoint)
      if (fault !== undefined) await fault
      if (finished.has(this.id)) ending = await this.#look()
      ending ??= await this.#execute()
      finished.add(this.id)
      if (!ending.own) this.#announceReplay(ending, 'store')
      else if (ending.state === 'succeeded' && operationExecuted.hasSubscribers)
        operationExecuted.publish(this.#event())
      else if (ending.state === 'failed' && operationFailed.hasSubscribers) operationFailed.publish(this.#event())
      fault = faultPoint('operation.stored' satisfies OperationFaultPoint)
      if (fault !== undefined) await fault
    } finally {
      queue.done(this.id, this, ending)
    }
    const fault = faultPoint('operation.told' satisfies OperationFaultPoint)
    if (fault !== undefined) await fault
    // A commit whose answer was lost was found in the store, where neither the whole value is nor what was thrown.
    const last = this.#last
    if (ending === last) return ending
    if (last !== undefined && ending.own && last.value === ending.value && last.codec === ending.codec) return last
    this.#discard()
    return ending
  }

  // One read in place of a transaction, where the key is thought to be finished. What it cannot tell, the transaction
  // will.
  async #look(): Promise<Ending | undefined> {
    const { finished, records } = this.#operation.domain
    let seen: Seen | undefined
    try {
      seen = await records.read(this.id, { deadline: this.deadline, signal: this.signal })
    } catch {
      // The transaction will meet the same trouble, and knows what to do about it.
    }
    const fault = faultPoint('operation.looked' satisfies OperationFaultPoint)
    if (fault !== undefined) await fault
    const ending = seen === undefined ? undefined : this.#endingIn(seen)
    if (ending === undefined) finished.delete(this.id)
    return ending
  }

  async #execute(): Promise<Ending> {
    const { settings, domain, transact, run } = this.#operation
    const { tokens } = domain
    tokens.last += 1
    const token = `${tokens.root}.${tokens.last}`
    const { fingerprint, scope } = this.#identity
    this.draft = { mode: 'atomic', operation: settings.name, scope, fingerprint, token }
    const body = async (tx: Handle): Promise<Ending> => {
      this.#thrown = undefined
      if (this.#returned !== undefined) this.#discard()
      this.#runs += 1
      const runs = this.#runs
      // Before anything of the user's is asked, `terminal` included.
      const stopped = domain.drill?.reached(settings)
      if (stopped !== undefined) throw stopped
      domain.queue.claimed(this.id, this)
      if (operationClaimed.hasSubscribers) operationClaimed.publish({ ...this.#event(), attempt: tx.attempt })
      let returned: unknown
      try {
        returned = await run(tx, privateCopy(this.#identity.input))
      } catch (error) {
        const failure = finalFailureIn(error, settings.options.terminal, () => this.#event())
        if (failure === undefined) throw error
        if (runs === this.#runs) this.#returned = { value: failure }
        else discardReturned(settings.storage, failure)
        checkRegistered(settings.storage, failure, error)
        this.#thrown = { error, failure }
        throw error
      }
      // A body that was given up returns when nobody listens any more.
      if (runs === this.#runs) this.#returned = { value: returned }
      else discardReturned(settings.storage, returned)
      const encoding = encodeOutcome(settings.storage, returned, this.#context, this.fingerprint)
      const ending = encoding instanceof Promise ? await encoding : encoding
      if (runs === this.#runs) this.#last = ending
      return ending
    }
    try {
      return await transact(this, body, this)
    } catch (error) {
      const thrown = this.#thrown
      if (thrown !== undefined && thrown.error === error && !wasTransient(error)) return this.#storeFailure(thrown)
      throw this.#explained(error)
    }
  }

  // What the body wrote is rolled back. If somebody else was faster meanwhile, theirs is the outcome.
  async #storeFailure({ error, failure }: { readonly error: unknown; readonly failure: Failure }): Promise<Ending> {
    const { settings, transact } = this.#operation
    const fault = faultPoint('operation.failing' satisfies OperationFaultPoint)
    if (fault !== undefined) await fault
    const ending = await encodeOutcome(settings.storage, failure, this.#context, this.fingerprint, error)
    this.#last = ending
    try {
      return await transact(this, () => ending, this)
    } catch (another) {
      throw this.#explained(another)
    }
  }

  // Nobody gets what was returned so far, nor what a body that is still running will return.
  #discard(): void {
    const returned = this.#returned
    this.#returned = undefined
    this.#runs += 1
    if (returned !== undefined) discardReturned(this.#operation.settings.storage, returned.value)
  }

  meet({ record, nowMs }: Stored): ReplayOrTakeOver<Ending> {
    const replay = this.#endingIn({ record, nowMs })
    return replay === undefined ? { takeOver: record } : { replay }
  }

  // The outcome in a record; undefined: there is none, or its memory has ended. Throws what refuses the call.
  #endingIn({ record, nowMs }: Seen): Ending | undefined {
    if (record === undefined) return undefined
    const { token } = this.draft
    const event = {
      kind: 'claim',
      mode: 'atomic',
      token,
      sameContent: isSameContent(this.#identity, record),
      fingerprint: this.fingerprint,
      leaseMs: undefined,
      marginMs: 0,
      recovery: undefined,
      input: undefined,
    } as const
    const decision = decide(record, event, nowMs)
    if (decision.act === 'execute') return undefined
    if (decision.act === 'refuse') throw refusedBy(decision, record)
    if (decision.act !== 'replay') {
      throw new RepriseError('MARKER_INVALID', 'The stored record of the key is not one that this operation writes.')
    }
    const { codec, value, fingerprint } = record
    const state = record.state === 'failed' ? 'failed' : 'succeeded'
    return { state, codec, value, rememberedMs: this.rememberedMs, fingerprint, own: record.token === token }
  }

  // The record's name is the key that calls below derive theirs from: two operations never share one.
  scopes(): readonly ScopeValue[] {
    return [operationScope(this.#operation.domain.queue, this.id), keyScope(this.id as string as Key)]
  }

  claimWaitMs(): number {
    const leftMs = this.waitUntilMs - this.clock.monotonicMs()
    return this.#refusesAtOnce ? shortWaitMs : Math.max(1, leftMs)
  }

  blocked(error: unknown): { readonly refusal: unknown } | undefined {
    this.#blockedBy = error
    if (!this.#refusesAtOnce && this.clock.monotonicMs() < this.waitUntilMs) return undefined
    return { refusal: this.#explained(error) }
  }

  // A wait for the key that used up all attempts is told as such.
  #explained(error: unknown): unknown {
    if (this.#blockedBy === undefined || error !== this.#blockedBy) return error
    const { manifest } = this.#operation.domain
    const waitedMs = Math.round(this.clock.monotonicMs() - this.#sinceMs)
    // The record of an open transaction cannot be read; the store may know since when the one before us is open.
    const openSinceMs = isRepriseError(error, 'LOCK_TIMEOUT') ? error.details['openSinceMs'] : undefined
    const held = typeof openSinceMs === 'number' ? { heldSinceMs: openSinceMs } : {}
    return inFlight({ waitedMs, certain: manifest.refuse !== 'coarse', ...held }, error)
  }

  #event(): OperationEvent {
    const { domain, settings } = this.#operation
    return { domain: domain.name, operation: settings.name, mode: 'atomic', id: this.id }
  }

  #announceReplay({ state }: Ending, from: 'leader' | 'store'): void {
    if (operationReplayed.hasSubscribers) operationReplayed.publish({ ...this.#event(), outcome: state, from })
  }
}

// Do not store a final failure if the last attempt failed transiently, even if `terminal` maps every error.
function wasTransient(error: unknown): boolean {
  return transactionHistoryOf(error)?.attempts.at(-1)?.ruling.help === 'transient'
}
