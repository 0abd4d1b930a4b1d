// A claim in the hands of its owner: renewed while work goes on, ended once, and given up as soon as nobody can be sure
// of it any more.

import type { AuditNote, RecordLimits, Seen, StoredRecord, Written } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type CancelTimer, type Deadline, defined, RepriseError, remainingMs, waitFor } from '../../kernel/index.js'
import { type OperationLeaseEvent, operationLease } from '../../telemetry/index.js'
import { leaseLost } from '../errors.js'
import { decide, type OwnerEvent } from '../machine.js'
import { reach } from './fault-points.js'
import type { Plan } from './plan.js'
import { type Step, type StoreAnswer, stepByStep } from './store-calls.js'

/**
 * Why the store refuses an owner: another one has the claim, a sweep found its lease over, a person has settled it, or
 * its record is not there.
 */
export type Gone = 'taken-over' | 'expired' | 'settled' | 'removed'

/**
 * What became of the end of a claim. `stale`: the store refused it, since the claim is not ours any more.
 * `undelivered`: the store could not be reached in time.
 */
export type ClaimEnd =
  | { readonly end: 'written' }
  | { readonly end: 'stale'; readonly because: Gone }
  | { readonly end: 'undelivered'; readonly error: unknown }

/** How an owner ends a claim. */
export type EndEvent = Unowned<Exclude<OwnerEvent, { readonly kind: 'renew' }>>
type Unowned<Event> = Event extends unknown ? Omit<Event, 'token' | 'fence'> : never

// The outcome is still written after the lease ends: nobody takes the claim over before the margin has passed, and
// token and fence tell a later owner apart.
const leastGraceMs = 1_000
const mostGraceMs = 5_000

interface Waiting {
  readonly reject: (error: RepriseError) => void
  /** Whether it waits a while longer where it is only not known whether the claim is still held. */
  readonly patient: boolean
}

/** A claim that is held. */
export class HeldClaim {
  readonly id: StoredKey
  readonly token: string
  /** Its number; never undefined in leased mode. */
  readonly fence: number
  /** How many claims there were, this one included. */
  readonly claims: number
  /** When the key was claimed first, in ms since 1970. */
  readonly firstClaimedAtMs: number
  /** Aborted with LEASE_LOST when the claim is lost, with DEADLINE_EXCEEDED when its time is over. */
  readonly signal: AbortSignal
  readonly #plan: Plan
  readonly #graceMs: number
  readonly #stop = new AbortController()
  readonly #waiting = new Set<Waiting>()
  #record: StoredRecord
  #sent = { monotonicMs: 0, wallMs: 0, storeMs: 0, liveForMs: 0 }
  #lost: RepriseError | undefined
  #gone: Gone | undefined
  #phase: 'held' | 'ending' | 'ended' = 'held'
  #renewal: Promise<void> | undefined
  #until: Deadline | undefined
  #timers: { beat?: CancelTimer; loss?: CancelTimer; deadline?: CancelTimer; grace?: CancelTimer } = {}

  /** @param answered How the store showed the record that holds our token. */
  constructor(plan: Plan, id: StoredKey, record: StoredRecord, answered: StoreAnswer<Seen>) {
    this.#plan = plan
    this.#graceMs = Math.min(mostGraceMs, Math.max(leastGraceMs, plan.marginMs))
    this.id = id
    this.token = record.token ?? ''
    this.fence = record.fence ?? 0
    this.claims = record.claims
    this.firstClaimedAtMs = record.firstClaimedAtMs
    this.signal = this.#stop.signal
    this.#record = record
    this.#confirm(record, answered)
    this.tell(record.claims === 1 ? 'claimed' : 'taken-over')
  }

  /** Why it is lost, or undefined. Looks at the clock: a timer may be late. */
  get lost(): RepriseError | undefined {
    if (this.#lost === undefined && this.#leftMs() <= 0) this.#lose('not-renewed')
    return this.#lost
  }

  /** Why the store says that it is lost; undefined where it did not, and a write may still be accepted. */
  get gone(): Gone | undefined {
    return this.#gone
  }

  /** The store's clock, in ms since 1970, as far as it can be told: what it showed last, and the time since. */
  get storeNowMs(): number {
    const { monotonicMs, storeMs } = this.#sent
    return storeMs + this.#plan.domain.clock.monotonicMs() - monotonicMs
  }

  /** Begins the heartbeat: one every third of the lease, none after the deadline. */
  keepUp(until: Deadline): void {
    const { clock } = this.#plan.domain
    this.#until = until
    this.#timers.deadline?.()
    this.#timers.deadline = clock.setTimer(remainingMs(until, clock), () => {
      this.#stop.abort(new RepriseError('DEADLINE_EXCEEDED', 'The time for the operation is over.'))
    })
    this.#planBeat()
  }

  /**
   * Waits for work, but not beyond the loss of the claim: not a moment where the store has said so, and for a grace of
   * 1 to 5 s, the margin, where only no renewal was confirmed in time. The work may go on then; its end is heard of by
   * nobody.
   */
  unlessLost<Result>(work: PromiseLike<Result>, patient: boolean = true): Promise<Result> {
    return waitFor<Result>({}, (resolve, reject) => {
      work.then(resolve, reject)
      if (this.lost !== undefined && (!patient || this.#gone !== undefined)) {
        reject(this.lost)
        return undefined
      }
      const waiting: Waiting = { reject, patient }
      this.#waiting.add(waiting)
      if (this.#lost !== undefined) this.#planGrace()
      return () => this.#waiting.delete(waiting)
    })
  }

  /**
   * Makes sure that the lease cannot end within `leftForCallMs`. Renews it first where that is not sure; refuses with
   * LEASE_LOST.
   */
  async refresh(leftForCallMs: number): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      if (this.lost !== undefined) throw this.lost
      // The monotonic clock of a machine that was suspended stood still, while its wall clock has moved on. A wall
      // clock that was only set costs a renewal.
      const passedMs = this.#plan.domain.clock.wallMs() - this.#sent.wallMs
      if (this.#leftMs() >= leftForCallMs && this.#sent.liveForMs - passedMs >= leftForCallMs) return
      await this.renew()
    }
    throw leaseLost('renewals-too-slow')
  }

  /** Renews the lease, and settles when the store has confirmed it. Refuses with LEASE_LOST. */
  renew(): Promise<void> {
    if (this.#phase !== 'held') return Promise.reject(leaseLost('over'))
    this.#renewal ??= this.unlessLost(this.#renewOnce(), false).finally(() => {
      this.#renewal = undefined
    })
    return this.#renewal
  }

  /**
   * Ends the claim: the outcome is written if the claim is still ours, which the store decides by token and fence.
   * Tried until the lease is over, and for a grace after it: that no renewal was confirmed in time does not mean that
   * somebody else has it.
   */
  async end(event: EndEvent, note?: AuditNote): Promise<ClaimEnd> {
    if (this.#gone !== undefined) return { end: 'stale', because: this.#gone }
    const leftMs = Math.max(0, this.#leftMs())
    const until = { expiresAtMs: this.#plan.domain.clock.monotonicMs() + leftMs + this.#graceMs }
    this.#phase = 'ending'
    this.#until = undefined
    this.#cancelTimers('beat', 'deadline')
    try {
      const gone = await this.unlessLost(this.#write({ ...event, token: this.token, fence: this.fence }, until, note))
      if (gone === undefined) return { end: 'written' }
      this.#lose(gone, gone)
      return { end: 'stale', because: gone }
    } catch (error) {
      return { end: 'undelivered', error }
    } finally {
      this.#phase = 'ended'
      this.#cancelTimers('loss', 'grace')
    }
  }

  /** Says something on the channel of leases. */
  tell(what: OperationLeaseEvent['what'], why?: string): void {
    if (!operationLease.hasSubscribers) return
    const { settings, domain } = this.#plan
    const { fence, claims } = this
    const names = { operation: settings.name, domain: domain.name, id: this.id }
    operationLease.publish({ ...names, what, fence, claims, ...defined({ why }) })
  }

  async #renewOnce(): Promise<void> {
    const fault = reach('leased.renewing')
    if (fault) await fault
    const renew = { kind: 'renew', token: this.token, fence: this.fence, leaseMs: this.#plan.leaseMs } as const
    const liveUntil = { expiresAtMs: this.#sent.monotonicMs + this.#sent.liveForMs }
    const gone = await this.#write(renew, liveUntil).catch((cause: unknown) => {
      throw leaseLost('not-renewed', {}, cause)
    })
    // A renewal that was still under way when the end was written finds just that.
    if (gone !== undefined && this.#phase === 'held') this.#lose(gone, gone)
    const after = reach('leased.renewed')
    if (after) await after
    if (this.#lost !== undefined) throw this.#lost
    this.#planBeat()
  }

  // Says why the claim is no longer ours, or nothing.
  async #write(event: OwnerEvent, until: Deadline, note?: AuditNote): Promise<Gone | undefined> {
    const { domain } = this.#plan
    const onFailure = (): void => {
      if (event.kind === 'renew') this.tell('renewal-failed')
    }
    const decideOn = (record: StoredRecord | undefined): Step<{ readonly gone?: Gone }> => {
      if (record !== undefined) this.#record = record
      const decision = decide(record, event, 0)
      if (decision.act === 'done') return { end: {} }
      if (record === undefined || (decision.act !== 'write' && decision.act !== 'remove')) {
        return { end: { gone: goneBy(record) } }
      }
      const change = decision.act === 'write' ? decision.change : null
      return {
        statement: (limits: RecordLimits): Promise<Written> =>
          domain.records.swap(this.id, record, change, { ...limits, urgent: true }, note),
        written: (written, answered) => {
          if (written !== undefined) this.#record = written
          if (written !== undefined && event.kind === 'renew') this.#confirm(written, answered)
          return {}
        },
        options: { onFailure },
      }
    }
    const first = decideOn(this.#record)
    const ended = await stepByStep(domain, until, first, ({ answer }) => decideOn(answer.record))
    return ended === undefined ? goneBy(this.#record) : ended.gone
  }

  #confirm(record: StoredRecord, { answer, sentAtMs }: StoreAnswer<Seen>): void {
    const { clock } = this.#plan.domain
    const { nowMs } = answer
    const passedMs = clock.monotonicMs() - sentAtMs
    const liveForMs = Math.max(0, (record.dueAtMs ?? nowMs) - nowMs)
    this.#sent = { monotonicMs: sentAtMs, wallMs: clock.wallMs() - passedMs, storeMs: nowMs, liveForMs }
    this.#timers.loss?.()
    if (this.#phase === 'ended') return
    this.#timers.loss = clock.setTimer(Math.max(0, this.#leftMs()), () => void this.lost)
  }

  #leftMs(): number {
    return this.#sent.monotonicMs + this.#sent.liveForMs - this.#plan.domain.clock.monotonicMs()
  }

  #planBeat(): void {
    const { leaseMs, domain } = this.#plan
    const { clock } = domain
    this.#timers.beat?.()
    const atMs = this.#sent.monotonicMs + leaseMs / 3
    if (this.#until === undefined || atMs >= this.#until.expiresAtMs) return
    const beat = (): void => void this.renew().catch(() => undefined)
    this.#timers.beat = clock.setTimer(Math.max(0, atMs - clock.monotonicMs()), beat)
  }

  /** @param gone What the store said; undefined where nobody asked it. */
  #lose(why: string, gone?: Gone): void {
    if (this.#phase === 'ended') return
    this.#gone ??= gone
    if (this.#lost === undefined) {
      this.#lost = leaseLost(why)
      this.#cancelTimers('beat', 'loss', 'deadline')
      this.tell('lost', why)
      this.#stop.abort(this.#lost)
    }
    this.#dismiss(this.#lost, this.#gone !== undefined)
    this.#planGrace()
  }

  #planGrace(): void {
    const lost = this.#lost
    this.#timers.grace?.()
    if (lost === undefined || this.#waiting.size === 0) return
    this.#timers.grace = this.#plan.domain.clock.setTimer(this.#graceMs, () => this.#dismiss(lost, true))
  }

  #dismiss(lost: RepriseError, all: boolean): void {
    for (const { reject, patient } of this.#waiting) if (all || !patient) reject(lost)
  }

  #cancelTimers(...names: ('beat' | 'loss' | 'deadline' | 'grace')[]): void {
    for (const name of names) this.#timers[name]?.()
  }
}

// Why the claim is gone, by the record that the store showed.
function goneBy(record: StoredRecord | undefined): Gone {
  if (record === undefined) return 'removed'
  if (record.state === 'unknown') return 'expired'
  return record.because === 'settled' ? 'settled' : 'taken-over'
}
