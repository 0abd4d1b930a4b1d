// The clients of the storm model. Every decision is made by the code that real calls use: `decideRepeat`, with a
// backoff, a budget and a breaker for each client, told of results in the runner's order.

import type { Random } from '../kernel/index.js'
import {
  type Breaker,
  backoffFrom,
  breakerFrom,
  budgetFrom,
  decideRepeat,
  type PolicyRules,
  type RepeatDecision,
  type RepeatFacts,
  Slots,
} from '../retry/index.js'
import { type Allowance, quotaBudget } from './peer-quota.js'
import type { StormSettings } from './storm-settings.js'

interface Client {
  readonly rules: PolicyRules<Allowance>
  readonly breaker: Breaker | undefined
  readonly slots: Slots | undefined
}

/** A number of clients that follow one policy, each with a budget, a breaker and a limit of its own. */
export class StormFleet {
  readonly #clients: readonly Client[]
  readonly #random: Random

  constructor({ clients, policy, peerBudget }: StormSettings, random: Random) {
    const { attempts, budget, breaker, limit, maxRetryAfterMs, minimumRemainderMs } = policy
    const backoff = backoffFrom(policy.backoff)
    this.#random = random
    this.#clients = Array.from({ length: clients }, () => ({
      rules: {
        attempts,
        backoff,
        budget: peerBudget === 'none' ? budget && budgetFrom(budget) : quotaBudget(peerBudget),
        maxRetryAfterMs,
        minimumRemainderMs,
      },
      breaker: breaker && breakerFrom(breaker, random),
      slots: limit && new Slots(limit),
    }))
  }

  /** The slots of a client for attempts that are out at a time; undefined: there is no limit. */
  slots(client: number): Slots | undefined {
    return this.#client(client).slots
  }

  /** Whether the breaker of a client is open, so that waiting for a slot has no use. */
  isOpen(client: number, nowMs: number): boolean {
    return this.#client(client).breaker?.state(nowMs) === 'open'
  }

  /** Whether a client may call: the pass to report with, or 0 if its breaker refuses. */
  enter(client: number, nowMs: number): number {
    const { breaker } = this.#client(client)
    return breaker === undefined ? 1 : breaker.tryEnter(nowMs)
  }

  /** An attempt succeeded; `isRepeat` if one of the same call had failed before. */
  succeeded(client: number, pass: number, nowMs: number, isRepeat: boolean): void {
    const { rules, breaker } = this.#client(client)
    breaker?.succeeded(pass, nowMs)
    rules.budget?.succeeded(nowMs, isRepeat)
  }

  /** An attempt failed: what the client does now. Every failure of the model is transient. */
  failed(client: number, pass: number, facts: RepeatFacts): RepeatDecision {
    const { rules, breaker } = this.#client(client)
    breaker?.failed(pass, facts.nowMs)
    rules.budget?.failed(facts.nowMs, facts.failures > 1)
    return decideRepeat(rules, facts, this.#random)
  }

  /** What is left in the budgets, as a mean over the clients; undefined without budgets. */
  meanLevel(nowMs: number): number | undefined {
    let sum = 0
    for (const { rules } of this.#clients) {
      if (rules.budget === undefined) return undefined
      sum += rules.budget.level(nowMs)
    }
    return sum / this.#clients.length
  }

  #client(number: number): Client {
    return this.#clients[number] as Client
  }
}
