// The claims of one reader, alike for relays and consumers: it makes itself known, claims lanes, keeps those that may
// run, and writes how each claim ended.

import {
  type Clock,
  deadlineAfter,
  defined,
  type ErrorCode,
  isRepriseError,
  type Random,
  uuidv4,
} from '../kernel/index.js'
import type { ClaimedLane, LaneEnd, LaneStore, Reader } from './lanes.js'
import { begunAlone, type CrashRules, type SortedLanes, sortedLanes } from './suspicion.js'

/** What the claims of a reader go by. */
export interface ClaimSettings extends CrashRules {
  readonly reader: Reader
  readonly leaseMs: number
  /** How long one question to the store may take, in ms. */
  readonly storeLimitMs: number
  readonly clock: Clock
  readonly random: Random
}

/** How a claim is to end, once the store answers. */
interface Debt {
  readonly end: LaneEnd
  readonly told: (isWritten: boolean) => void
  /** How often the store has refused it. */
  refused: number
}

/**
 * How long after it was made known a reader looks once more for what was emitted before, in ms: a transaction that
 * began before it was known may commit after. Each time twice as long, up to the longest.
 */
const registerAgainMs = { first: 500, longest: 60_000 }
/** So often a store that answers may refuse how a claim ended: others may have been in its way. */
const mostRefusals = 3

/** What is wrong with the set-up: no pause mends it. */
const setUp: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ARGUMENT_INVALID',
  'CAPABILITY_UNSUPPORTED',
  'MIGRATION_MISSING',
  'MIGRATION_NEWER',
  'PEPPER_MISMATCH',
  'STORE_CLOSED',
])

/** Whether an error says that the reader can never work as it was set up. */
export function isSetUp(error: unknown): boolean {
  return isRepriseError(error) && setUp.has(error.code)
}

/** The claims of one reader in one process. */
export class Claims {
  readonly #store: Pick<LaneStore<never>, 'register' | 'claim' | 'end' | 'extend'>
  readonly #settings: ClaimSettings
  readonly #owner: string
  #debts: Debt[] = []
  #registerAtMs = Number.NEGATIVE_INFINITY
  #registerAgainMs = registerAgainMs.first

  constructor(store: Pick<LaneStore<never>, 'register' | 'claim' | 'end' | 'extend'>, settings: ClaimSettings) {
    this.#store = store
    this.#settings = settings
    this.#owner = uuidv4(settings.random)
  }

  /** The limits of one question to the store. */
  limits(): { readonly deadline: ReturnType<typeof deadlineAfter> } {
    return { deadline: deadlineAfter(this.#settings.storeLimitMs, this.#settings.clock) }
  }

  /** Makes the reader known, and finds what was emitted before. */
  async register(stop: AbortSignal): Promise<void> {
    const { clock, reader } = this.#settings
    const nowMs = clock.monotonicMs()
    if (nowMs < this.#registerAtMs) return
    while (!(await this.#store.register(reader, this.limits())) && !stop.aborted) {}
    this.#registerAtMs = nowMs + this.#registerAgainMs
    this.#registerAgainMs = Math.min(this.#registerAgainMs * 2, registerAgainMs.longest)
  }

  /**
   * Claims lanes.
   *
   * @param key Given: only this lane.
   */
  claim(lanes: number, perLane: number, key?: string): ReturnType<LaneStore<never>['claim']> {
    const { reader, leaseMs } = this.#settings
    const query = { reader, owner: this.#owner, leaseMs, lanes, perLane, ...defined({ key }) }
    return this.#store.claim(query, this.limits())
  }

  /**
   * Sorts the lanes of a claim, and gives back those that are not kept. Where that cannot be written nothing is kept:
   * all of them are given back when the store answers again.
   */
  async sorted(lanes: readonly ClaimedLane[]): Promise<SortedLanes> {
    const sorted = sortedLanes(lanes, this.#settings, this.#settings.clock.wallMs())
    if (sorted.released.length === 0) return sorted
    for (const lane of sorted.released) this.release(lane)
    try {
      await this.pay()
    } catch (error) {
      for (const lane of sorted.kept) this.release(lane)
      throw error
    }
    return sorted
  }

  /** Owes that a lane is free again, as it was before the claim. */
  release(lane: ClaimedLane): void {
    const { failures, history } = lane
    this.owe(lane, undefined, { is: 'rest', forMs: 0, failures, history })
  }

  /** Notes that the first message of a lane is about to begin, with nothing beside it; false: the lane is not ours. */
  async beginAlone(lane: ClaimedLane): Promise<boolean> {
    const { clock, leaseMs: forMs } = this.#settings
    const history = begunAlone(lane.history, clock.wallMs())
    const then: LaneEnd['then'] = { is: 'hold', forMs, failures: lane.failures, history }
    const [isOurs] = await this.#store.end([{ ...this.of(lane), done: undefined, then }], this.limits())
    return isOurs === true
  }

  /** What names the claim of a lane. */
  of({ key, attempt }: Pick<ClaimedLane, 'key' | 'attempt'>): Pick<LaneEnd, 'reader' | 'key' | 'owner' | 'attempt'> {
    return { reader: this.#settings.reader, key, owner: this.#owner, attempt }
  }

  /**
   * Remembers how the claim of a lane ended, until it is written.
   *
   * @param told Hears whether it was written. It is not where the lane is somebody else's, or the store refuses it.
   */
  owe(lane: ClaimedLane, done: LaneEnd['done'], then: LaneEnd['then'], told: Debt['told'] = () => undefined): void {
    this.#debts.push({ end: { ...this.of(lane), done, then }, told, refused: 0 })
  }

  /**
   * Writes what is owed. What could not be written is written before the next claim: until then the lease keeps others
   * away, and after it they find what we left.
   */
  async pay(): Promise<void> {
    const debts = this.#debts
    if (debts.length === 0) return
    this.#debts = []
    await this.#pay(debts)
  }

  // One end that cannot be written must not be in the way of the others. A store that answers for a claim and refuses
  // its end time and again has nothing against the others: that end is given up, and its lane comes again.
  async #pay(debts: readonly Debt[]): Promise<void> {
    try {
      const ends = debts.map(({ end }) => end)
      const written = await this.#store.end(ends, this.limits())
      for (const [index, { told }] of debts.entries()) told(written[index] === true)
    } catch (error) {
      const [debt] = debts as [Debt]
      if (!(await this.#answersFor(debt))) {
        this.#debts.push(...debts)
        throw error
      }
      if (debts.length === 1) {
        debt.refused += 1
        if (debt.refused < mostRefusals) this.#debts.push(debt)
        else debt.told(false)
        throw error
      }
      await this.#paySingly(debts)
    }
  }

  async #paySingly(debts: readonly Debt[]): Promise<void> {
    const failures: unknown[] = []
    for (const debt of debts) await this.#pay([debt]).catch((error: unknown) => failures.push(error))
    if (failures.length > 0) throw failures[0]
  }

  async #answersFor({ end }: Debt): Promise<boolean> {
    try {
      await this.#store.extend(end, this.#settings.leaseMs, this.limits())
      return true
    } catch {
      return false
    }
  }
}
