// Trouble on purpose. `Drill: slow=300, drop` is read inside the handler, so a replay, which runs no handler, is never
// troubled; and being a header it is no part of what is bound to the key: the same request without it is a repeat.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, AnswerError, reply } from 'reprise/http/core'
import type { Payment, Transaction } from './ledger.js'
import type { ReceiptTrouble } from './receipts/receipts.js'

/** An error that was asked for. */
export class DrillError extends Error {}

/** What was asked for. */
export interface Drill {
  /** Wait this long inside the handler, in ms. */
  readonly slow: number
  /** Answer this status in place of the payment; what was written is rolled back where it is a 5xx. */
  readonly fail: number | undefined
  /** Throw after the effect, before COMMIT. */
  readonly throw: boolean
  /** COMMIT, then cut the connection without an answer. */
  readonly drop: boolean
  /** End the process by SIGKILL. */
  readonly exit: 'before-commit' | 'after-commit' | undefined
  /** After the exit, somebody is to start the service again: the page asks for it, so that it can go on. */
  readonly restart: boolean
  /** Answer with this status. */
  readonly status: number | undefined
  /** Answer with bytes that are no text. */
  readonly binary: boolean
  /** Answer with a cookie. */
  readonly cookie: boolean
  /** Answer with this many bytes. */
  readonly large: number | undefined
  /** What happens to the event of the payment on its way to the receipt. */
  readonly receipt: ReceiptTrouble | undefined
}

const longestMs = 60_000
const largestBytes = 10_000_000
const receiptTroubles = ['kill-relay', 'twice', 'poison'] as const

/** Reads the field. Words that are not known, or make no sense, ask for nothing. */
export function drillFrom(field: string | undefined): Drill {
  const words = new Map<string, string>()
  for (const word of (field ?? '').split(',')) {
    const [name = '', value = ''] = word.trim().split('=', 2)
    words.set(name.trim(), value.trim())
  }
  const number = (name: string, least: number, most: number): number | undefined => {
    const value = Number(words.get(name) || Number.NaN)
    return Number.isInteger(value) && value >= least && value <= most ? value : undefined
  }
  const exit = words.get('exit')
  return {
    slow: number('slow', 0, longestMs) ?? 0,
    fail: number('fail', 400, 599),
    throw: words.has('throw'),
    drop: words.has('drop'),
    exit: exit === 'before-commit' || exit === 'after-commit' ? exit : undefined,
    restart: words.has('restart'),
    status: number('status', 200, 399),
    binary: words.has('binary'),
    cookie: words.has('cookie'),
    large: number('large', 1, largestBytes),
    receipt: receiptTroubles.find((trouble) => words.has(trouble)),
  }
}

/** What happens before the effect. */
export async function beforeEffect({ slow }: Drill, tx?: Transaction): Promise<void> {
  if (slow > 0) await sleep(slow, undefined, tx === undefined ? {} : { signal: tx.signal })
}

/** What a drill needs of the service around it. */
export interface DrillHost {
  /** Cuts the connection on which the request came. */
  cut(): void
  /** Tells whoever watches over this process that it is about to kill itself, and whether to start it again. */
  announceExit(restart: boolean): Promise<void>
  /** Answers the failure that was asked for. */
  failure(status: number): Answer
}

/** What happens after the effect and before COMMIT, and what is to happen after it. */
export async function afterEffect(drill: Drill, tx: Transaction, around: DrillHost): Promise<void> {
  if (drill.fail !== undefined) throw new AnswerError(around.failure(drill.fail))
  if (drill.throw) throw new DrillError('The drill asked for this error.')
  if (drill.exit === 'before-commit') await exit(drill, around)
  // Runs only where this very transaction has committed, and the answer has not left.
  if (drill.exit === 'after-commit') tx.afterCommit(() => exit(drill, around))
  if (drill.drop) tx.afterCommit(() => around.cut())
}

async function exit({ restart }: Drill, { announceExit }: DrillHost): Promise<never> {
  await announceExit(restart)
  process.kill(process.pid, 'SIGKILL')
  return new Promise<never>(() => undefined)
}

/** The answer to a payment that was made: the usual one, or the odd one that was asked for. */
export function answerTo(payment: Payment, { status, binary, cookie, large }: Drill): Answer {
  const { note: _, ...shown } = payment
  const headers = {
    location: `/payments/${payment.id}`,
    ...(cookie ? { 'set-cookie': `drill=${payment.id}; HttpOnly` } : {}),
  }
  if (status !== undefined && status !== 200 && status !== 201) return reply(status, undefined, headers)
  if (binary)
    return reply(
      status ?? 201,
      Uint8Array.from({ length: 256 }, (_, byte) => byte),
      headers,
    )
  if (large !== undefined) return reply(status ?? 201, padded(shown, large), { ...headers, 'content-type': json })
  return reply(status ?? 201, shown, headers)
}

const json = 'application/json; charset=utf-8'

// JSON of so many bytes; at least what the payment needs.
function padded(shown: object, bytes: number): string {
  const bare = JSON.stringify({ ...shown, padding: '' })
  return JSON.stringify({ ...shown, padding: '.'.repeat(Math.max(0, bytes - Buffer.byteLength(bare))) })
}
