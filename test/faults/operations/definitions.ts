// The operations of these tests, defined alike in every process that takes part: one atomic, and a leased one for each
// recovery.

import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import {
  didNotHappen,
  fail,
  happened,
  hold,
  type Lease,
  leased,
  type Operation,
  type Operations,
  type Recover,
  rerunKeyed,
  resolve,
} from '../../../src/idempotency/index.js'
import { type Key, type Scope, scope } from '../../../src/identity/index.js'
import type { Receiver } from './sink.js'

/** Who shares keys here. */
export const tests: Scope = scope('tests')

/** What is wanted. */
export interface Order {
  readonly intent: string
  readonly key: Key
}

/** The names of the operations. */
export const operationNames = ['book', 'charge-rerun', 'charge-resolve', 'charge-hold'] as const

/** The name of an operation. */
export type OperationName = (typeof operationNames)[number]

/**
 * What a body does besides its effect. `loses-answer`: the answer to its call is lost. `renews`: it renews its lease
 * first. `unsent`: it sends nothing, and declares that.
 */
export type Way = 'plain' | 'loses-answer' | 'renews' | 'unsent' | 'throws-final' | 'declined'

/** What bodies of the tests need of a transaction. */
interface BookTransaction {
  query(text: string, values: unknown[]): Promise<unknown>
}

/** How the operations of one process are. */
export interface Definition {
  /** The receiver's address. */
  readonly sink: string
  /** How long a claim lives, in ms. */
  readonly leaseMs: number
  /**
   * The suffix of the operations' names. A sweep handles all records of an operation, so tests that must not affect
   * each other use different operations.
   */
  readonly suffix: string
  /** Default `plain`. */
  readonly way?: Way
  /** How values are written into statements. */
  readonly placeholders: readonly [string, string, string]
  /** How long a body and the wait for a connection may take, in ms. Default: as the domain says. */
  readonly patienceMs?: number
  /** How long the atomic operation waits for a lock at a time, in ms. Default 30,000. */
  readonly lockWaitMs?: number
}

/** How long past its end a lease is left alone in these tests, in ms: all processes have one clock. */
export const marginMs = 30

/** Everything that is defined. */
export type Defined = Readonly<Record<OperationName, Operation<Order, string, 'declined'>>>

/** A domain, as far as it is needed. */
export type Store = Omit<Operations<never>, 'operation'> & {
  readonly name: string
  readonly manifest: Parameters<typeof leased>[1]['store']['manifest']
}

/** The parts of the effect of the atomic operation. */
export const parts: readonly string[] = ['debit', 'credit']

/** The name of an operation in its store. */
export const storedName = (name: OperationName, suffix: string): string => `${name}.${suffix}`

/** Defines all operations of a process. */
export function define(store: Store, definition: Definition): Defined {
  const named = (name: OperationName): string => storedName(name, definition.suffix)
  const db = store as unknown as Operations<BookTransaction & { readonly attempt: number } & never>
  const { way = 'plain', placeholders, patienceMs, lockWaitMs = 30_000 } = definition
  const insert = `insert into ledger (intent, part, result) values (${placeholders.join(', ')})`
  const shared = {
    scope: () => tests,
    key: ({ key }: Order) => key,
    content: ({ intent }: Order) => ({ value: intent }),
    window: '1h',
    failures: ['declined'],
    wait: '100s',
  } as const
  const book = db.operation(named('book'), {
    ...shared,
    lockWait: lockWaitMs,
    ...(patienceMs === undefined ? {} : { bodyLimit: patienceMs, connectionWait: patienceMs }),
    terminal: (error: unknown) => (error instanceof Declined ? fail('declined') : undefined),
    run: async (tx: BookTransaction, { intent }: Order) => {
      const result = randomUUID()
      for (const part of parts) await tx.query(insert, [intent, part, result])
      if (way === 'throws-final') throw new Declined()
      return result
    },
  } as never) as unknown as Defined['book']
  const charge = (name: OperationName, receiver: Receiver, recover: Recover<Order, string, never>) =>
    leased<Order, string, 'declined'>(named(name), {
      ...shared,
      store,
      lease: definition.leaseMs,
      margin: marginMs,
      lookAfter: 1,
      keepInput: true,
      recover,
      run: (lease, order) => chargeOnce(lease, order, receiver, definition),
    })
  const ask = resolve<Order, string>(async ({ key, input, signal }) => {
    const path = `${definition.sink}/ignores-keys/${input?.intent}/${encodeURIComponent(key('charge'))}`
    const { status, text } = await send('GET', path, signal)
    return status === 200 ? happened(text) : didNotHappen()
  })
  return {
    book,
    'charge-rerun': charge('charge-rerun', 'honours-keys', rerunKeyed('1h')),
    'charge-resolve': charge('charge-resolve', 'ignores-keys', ask),
    'charge-hold': charge('charge-hold', 'ignores-keys', hold()),
  }
}

class Declined extends Error {}

async function chargeOnce(lease: Lease, { intent }: Order, receiver: Receiver, { sink, way = 'plain' }: Definition) {
  if (way === 'unsent') throw lease.notSent(new Error('nothing was sent'))
  if (way === 'renews') await lease.renew()
  const result = await lease.effect('charge', async ({ key, signal }) => {
    const lost = way === 'loses-answer' ? '?hang-up' : ''
    const path = `${sink}/${receiver}/${intent}/${encodeURIComponent(key)}${lost}`
    return (await send('POST', path, signal)).text
  })
  return way === 'declined' ? fail('declined', result) : result
}

function send(method: string, url: string, signal: AbortSignal) {
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const sent = request(url, { method, signal, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      answer.on('error', reject)
    })
    sent.on('error', reject)
    sent.end()
  })
}
