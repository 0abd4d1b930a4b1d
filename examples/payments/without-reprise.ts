// The same payment without Reprise, so that the page can set one beside the other: an ordinary handler that writes the
// payment and answers. It reads no key, so a repeat is one more payment. It is there only where drills are on.

import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, invalid } from 'reprise/http/core'
import { afterEffect, answerTo, beforeEffect, drillFrom } from './drill.js'
import { mostMinor, orderFrom, type RouteParts } from './payments.js'

/** Where it is. */
export const plainPath = '/drill/without-reprise/payments'

/** What the ledger notes with a payment of this route. */
const plainNote = 'made without Reprise'

const mostBytes = 65_536

/** Makes a payment, as often as it is asked to. */
export function plainRoute({
  ledger,
  problems,
  around,
}: Pick<RouteParts, 'ledger' | 'problems' | 'around'>): (
  request: IncomingMessage,
  principal: string,
) => Promise<Answer> {
  return async (request, principal) => {
    const order = orderFrom(await jsonOf(request))
    if (order.amountMinor > mostMinor) return problems('amount-over-limit')
    const trouble = drillFrom(String(request.headers['drill'] ?? ''))
    await beforeEffect(trouble)
    const payment = { id: randomUUID(), ...order, note: plainNote, createdAt: new Date().toISOString() }
    await ledger.write(async (tx) => {
      await ledger.add(tx, principal, payment)
      await afterEffect(trouble, tx, around(request))
    })
    return answerTo(payment, trouble)
  }
}

// A body that is too long is read to its end and forgotten: leaving the loop early would destroy the connection, and
// with it the refusal.
async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= mostBytes) chunks.push(chunk)
  }
  if (bytes > mostBytes) throw invalid(400, `The body is over ${mostBytes} bytes.`)
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    throw invalid(400, 'The body is not JSON.')
  }
}
