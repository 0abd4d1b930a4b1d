// POST /payments, safe to repeat: claim, payment, event and answer are in one commit.

import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type HttpRequest, idempotent, invalid, type NodeListener, type NodeOptions } from 'reprise/http/node'
import { afterEffect, answerTo, beforeEffect, type DrillHost, drillFrom } from './drill.js'
import type { Ledger, Payment, Transaction } from './ledger.js'
import type { OwnProblems } from './problems.js'
import type { Receipts } from './receipts/receipts.js'

/** What somebody wants to pay. */
type Order = Pick<Payment, 'account' | 'amountMinor' | 'currency' | 'note'>

/** What the route needs of the service around it. */
export interface RouteParts {
  readonly ledger: Ledger
  readonly receipts: Receipts
  /** What types of problems begin with. */
  readonly problemBase: string
  readonly problems: OwnProblems
  /** Whether trouble can be asked for. */
  readonly drill: boolean
  /** What a drill may do to the connection and the process. */
  around(request: IncomingMessage): DrillHost
  /** Answers what was thrown and is no answer; the transaction was rolled back. */
  readonly onError: NonNullable<NodeOptions['onError']>
}

/** The highest amount of a payment. */
export const mostMinor = 1_000_000

/** On whose behalf a request is made; undefined: it does not say. */
export function principalOf(field: string | undefined): string | undefined {
  return /^Bearer +(?<token>[\x21-\x7e]+) *$/i.exec(field ?? '')?.groups?.['token']
}

/** What an account is. */
export const accountRule = 'account is a text of 1 to 100 characters.'

/** Whether a text can name an account: PostgreSQL keeps no NUL, and UTF-8 no half of a character. */
export function isAccount(text: string): boolean {
  return /^[^\0\p{Surrogate}]{1,100}$/u.test(text)
}

/** The route. */
export function paymentRoute(parts: RouteParts): NodeListener {
  const { ledger, receipts, problemBase, problems, drill, around, onError } = parts
  return idempotent<Transaction, Order>(
    ledger.db,
    {
      name: 'payments.create',
      principal: ({ headers }) => principalOf(headers.authorization),
      problems: problemBase,
      parse: (request: HttpRequest) => orderFrom(request.json()),
      reversibility: 'compensable',
      onError,
    },
    async ({ tx, input, native, principal: [principal], request }) => {
      // Final: the refusal is stored, and a repeat gets it again.
      if (input.amountMinor > mostMinor) return problems('amount-over-limit')
      const trouble = drillFrom(drill ? request.header('drill') : undefined)
      await beforeEffect(trouble, tx)
      const payment = { id: randomUUID(), ...input, createdAt: new Date().toISOString() }
      await ledger.add(tx, principal, payment)
      await receipts.emit(tx, principal, payment, trouble.receipt)
      await afterEffect(trouble, tx, around(native))
      return answerTo(payment, trouble)
    },
  )
}

/** The order in a body. Read before anything is claimed, so that the refusal of a wrong shape is never stored. */
export function orderFrom(body: unknown): Order {
  const { account, amountMinor, currency, note } = Object(body) as Record<string, unknown>
  if (typeof account !== 'string' || !isAccount(account)) throw invalid(400, accountRule)
  if (typeof amountMinor !== 'number' || !Number.isSafeInteger(amountMinor) || amountMinor < 1)
    throw invalid(400, 'amountMinor is a whole number from 1.')
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency))
    throw invalid(400, 'currency is three capital letters.')
  if (note === undefined) return { account, amountMinor, currency }
  if (typeof note !== 'string' || !/^[^\0\p{Surrogate}]{0,500}$/u.test(note))
    throw invalid(400, 'note is a text of up to 500 characters.')
  return { account, amountMinor, currency, note }
}
