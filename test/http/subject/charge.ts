// What requests to the subject say, and the answers that most routes give.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import {
  type Answer,
  type AnswerHeaders,
  entityTag,
  type HttpRequest,
  invalid,
  reply,
} from '../../../src/http/core/index.js'
import { sha256 } from '../../../src/kernel/index.js'
import type { SubjectTransaction } from './ledger.js'

/** What a request says. */
export interface Charge {
  readonly amount: number
  /** How long the handler takes, in ms. */
  readonly ms: number
  /** How many bytes are asked for. */
  readonly bytes: number
  /** A digest of the body, to tell first requests by. */
  readonly body: string
  readonly request: HttpRequest
}

/** Reads a charge; a wrong shape is refused. */
export function parseCharge(request: HttpRequest): Charge {
  const { amount } = Object(request.json()) as { readonly amount?: unknown }
  if (!Number.isSafeInteger(amount)) throw invalid(400, 'amount is a whole number.')
  return { ...parseAny(request), amount: amount as number }
}

/** Reads a request whose body is anything. */
export function parseAny(request: HttpRequest): Charge {
  const query = request.query()
  const number = (name: string): number => {
    const value = Number(query.get(name) ?? 0)
    if (!Number.isSafeInteger(value) || value < 0 || value > 20_000_000) throw invalid(400, `${name} is a number.`)
    return value
  }
  return { amount: 0, ms: number('ms'), bytes: number('bytes'), body: sha256(request.bytes()), request }
}

/** What a handler of the subject gets, whatever the adapter. */
export interface ChargeCall {
  readonly input: Charge
  readonly principal: readonly [string, ...string[]]
  readonly callerAttempt: number | undefined
}

/** Writes one effect, and gives its id. */
export async function effect(tx: SubjectTransaction, { principal, input }: ChargeCall): Promise<string> {
  const id = randomUUID()
  await tx.insertOnce('subject_effects', { id, owner: principal[0], amount: input.amount }, ['id'])
  return id
}

/** The answer to a charge. */
export function charged(id: string, amount: number, more: AnswerHeaders = {}): Answer {
  return reply(201, { id, amount }, { location: `/charges/${id}`, etag: entityTag(id), ...more })
}

/** Takes as long as the request asks for. */
export async function slowly({ input }: ChargeCall): Promise<void> {
  if (input.ms > 0) await wait(input.ms)
}

/** Says whether a request is the first of its user and body on a route, in this process. */
export function firstTimes(): (route: string, told: ChargeCall) => boolean {
  const seen = new Set<string>()
  return (route, { principal, input }) => {
    const name = `${route} ${principal[0]} ${input.body}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  }
}
