// Getting a claim: the store's unique index decides, the machine says what is there, and whoever comes second waits for the winner or is refused.

import type { RecordChange, RecordLimits, Records, Seen, StoredRecord, Written } from '../../atomicity/index.js'
import { type Deadline, isRepriseError, RepriseError, remainingMs, sleep, uuidv4 } from '../../kernel/index.js'
import { type Backoff, equalJitter } from '../../retry/index.js'
import { type CallIdentity, isSameContent } from '../call/identity.js'
import { inFlight } from '../call/refusals.js'
import { printJson } from '../codecs/json.js'
import { type ClaimEvent, type Decision, decide } from '../machine.js'
import { reach } from './fault-points.js'
import { HeldClaim } from './held-claim.js'
import type { Plan } from './plan.js'
import { refusalOf } from './refusals.js'
import { type Answered, persistently } from './store-calls.js'

/** A claim, or the finished record that was there already. */
export type Claimed = { readonly claim: HeldClaim } | { readonly finished: StoredRecord }

/** One call, up to its claim. */
export interface Claiming {
  /** The operation. */
  readonly plan: Plan
  /** Which intent it is about. */
  readonly identity: CallIdentity<unknown>
  /** When the call ends. */
  readonly deadline: Deadline
  /** When the wait for a winner ends, in ms of monotonic time. */
  readonly waitUntilMs: number
  /** Ends the wait for a winner. */
  readonly signal: AbortSignal | undefined
}

// How often a winner is looked at: soon at first, since most are quick, then once a second at most.
const pollBackoff: Backoff = /* @__PURE__ */ equalJitter({ baseMs: 20, capMs: 1_000 })
const mostRounds = 10_000
// A lock is waited for at least this long, in ms: other writers hold it for a moment each.
const shortWaitMs = 25
const largestInput = 262_144

/** Claims the key, or hands out what is there. Refuses with the codes of operations. */
export async function claimKey(claiming: Claiming): Promise<Claimed> {
  const round = new Round(claiming)
  const fault = reach('leased.claiming')
  if (fault) await fault
  // Most keys are new, so the insert comes first, and says what is there where it is not.
  let seen: SeenOrWritten = await round.insert()
  for (let rounds = 0; rounds < mostRounds; rounds += 1) {
    const { answer } = seen
    if ('written' in answer && answer.written && answer.record !== undefined) return round.own(seen, answer.record)
    const decision = decide(answer.record, round.event(answer.record), answer.nowMs)
    const next = await round.act(decision, seen)
    if ('answer' in next) seen = next
    else return next
  }
  throw refusalOf({ act: 'refuse', because: 'in-flight' }, seen.answer.record)
}

type SeenOrWritten = Answered<Seen | Written>

class Round {
  readonly #claiming: Claiming
  readonly #token: string
  readonly #kept: string | undefined
  readonly #waitUntil: Deadline
  readonly #sinceMs: number
  #waits = 0

  constructor(claiming: Claiming) {
    const { plan, deadline, identity, waitUntilMs } = claiming
    this.#claiming = claiming
    this.#sinceMs = plan.place.clock.monotonicMs()
    this.#token = uuidv4(plan.place.random)
    this.#kept = plan.keepInput ? keptInput(identity.input) : undefined
    const refuses = plan.settings.refusesDuplicates
    this.#waitUntil = { expiresAtMs: refuses ? 0 : Math.min(waitUntilMs, deadline.expiresAtMs) }
  }

  event(record: StoredRecord | undefined): ClaimEvent {
    const { plan, identity } = this.#claiming
    return {
      kind: 'claim',
      mode: 'leased',
      token: this.#token,
      sameContent: record === undefined || isSameContent(identity, record),
      fingerprint: identity.fingerprint,
      leaseMs: plan.leaseMs,
      marginMs: plan.marginMs,
      recovery: plan.recovery,
      input: this.#kept,
    }
  }

  async act(decision: Decision, seen: SeenOrWritten): Promise<SeenOrWritten | Claimed> {
    const { record } = seen.answer
    if (decision.act === 'insert') return this.insert()
    if (record !== undefined) {
      // One's own claim whose answer was lost begins its lease anew: nobody knows how long the answer took.
      if (decision.act === 'own' || decision.act === 'execute' || decision.act === 'ask') {
        return this.#swap(record, decision.change)
      }
      if (decision.act === 'replay') return { finished: record }
      if (decision.act === 'refuse') return this.#refused(decision, record)
    }
    throw refusalOf({ act: 'refuse', because: 'invalid' }, record)
  }

  own({ answer, ...rest }: SeenOrWritten, record: StoredRecord): Claimed {
    const { plan, identity } = this.#claiming
    return { claim: new HeldClaim(plan, identity.id, { ...rest, answer: { record, nowMs: answer.nowMs } }) }
  }

  insert(): Promise<Answered<Written>> {
    const { plan, identity } = this.#claiming
    const { scope, fingerprint, id } = identity
    const draft = {
      mode: 'leased' as const,
      operation: plan.settings.name,
      scope,
      token: this.#token,
      leaseMs: plan.leaseMs,
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(this.#kept === undefined ? {} : { input: this.#kept }),
    }
    return this.#store((records, limits) => records.insert(id, draft, limits))
  }

  #swap(record: StoredRecord, change: RecordChange): Promise<Answered<Written>> {
    const { id } = this.#claiming.identity
    return this.#store((records, limits) => records.swap(id, record, change, limits), record.token === this.#token)
  }

  /** @param patient Whether it is about a claim that may be our own already: that is not left behind because the store is full or locked. */
  #store<Answer>(
    statement: (records: Records, limits: RecordLimits) => Promise<Answer>,
    patient: boolean = false,
  ): Promise<Answered<Answer>> {
    const { plan, deadline, waitUntilMs } = this.#claiming
    const { clock, records } = plan.place
    const lockUntilMs = Math.max(waitUntilMs, clock.monotonicMs() + shortWaitMs)
    const asking = patient ? {} : { lockUntilMs }
    return persistently(plan.place, deadline, (limits) => statement(records, limits), asking).catch((error) => {
      throw this.#explained(error)
    })
  }

  // Where only the whole store can be locked, whoever holds it may be at work on this very key.
  #explained(error: unknown): unknown {
    if (!isRepriseError(error, 'LOCK_TIMEOUT')) return error
    const { clock, manifest } = this.#claiming.plan.place
    const waitedMs = Math.round(clock.monotonicMs() - this.#sinceMs)
    return inFlight({ waitedMs, certain: manifest.refuse !== 'coarse' }, { cause: error.cause })
  }

  async #refused(
    decision: Extract<Decision, { readonly act: 'refuse' }>,
    record: StoredRecord,
  ): Promise<SeenOrWritten> {
    const { because, change, retryInMs } = decision
    const { plan, signal, deadline, identity } = this.#claiming
    const { clock, random } = plan.place
    if (change !== undefined) {
      const changed = await this.#swap(record, change)
      if (!changed.answer.written) return changed
      throw refusalOf(decision, changed.answer.record)
    }
    const leftMs = remainingMs(this.#waitUntil, clock)
    if (because !== 'in-flight' || leftMs <= 0) throw refusalOf(decision, record)
    this.#waits += 1
    const delayMs = Math.min(pollBackoff.delayMs(this.#waits, 0, random), leftMs, retryInMs ?? leftMs)
    await sleep(delayMs, { clock, ...(signal === undefined ? {} : { signal }) })
    // The last look would come too late to be of use.
    if (remainingMs(deadline, clock) <= 0) throw refusalOf({ act: 'refuse', because: 'in-flight' }, record)
    return this.#store((records, limits) => records.read(identity.id, limits))
  }
}

function keptInput(input: unknown): string {
  const text = printJson(input, largestInput)
  if (text !== undefined) return text
  throw new RepriseError('ARGUMENT_INVALID', `An input that is kept has at most ${largestInput} bytes of JSON.`, {
    details: { largestInput },
  })
}
