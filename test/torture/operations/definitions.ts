// The operations that are tortured, defined alike in every worker: one atomic, and a leased one for each recovery.

import { randomUUID } from 'node:crypto'
import {
  didNotHappen,
  fail,
  failedFinally,
  happened,
  hold,
  type Lease,
  type LeasedOperation,
  leased,
  type Operation,
  type Operations,
  operationId,
  type RecordStore,
  type Recover,
  rerunKeyed,
  resolve,
} from '../../../src/idempotency/index.js'
import { parseKey, type Scope, scope } from '../../../src/identity/index.js'
import type { Charge, Receiver } from './receiver.js'

/** The name of an operation. */
export type OperationName = 'book' | 'charge-rerun' | 'charge-resolve' | 'charge-hold'

/**
 * How an intent ends, whoever carries it out: with a result, in a final failure without an effect, or in one with an
 * effect.
 */
export type Ends = 'done' | 'refused' | 'declined'

/**
 * What one run does besides. `slow`: takes a while, in a lease longer than its heartbeat. `throws`: ends in an error of
 * no meaning, before anything was sent. `loses-answer`: leased, the receiver's answer is lost.
 */
export type Way = 'plain' | 'slow' | 'throws' | 'loses-answer'

/** One call, as it is sent to a worker. */
export interface Order {
  readonly operation: OperationName
  readonly intent: string
  readonly key: string
  /** What is bound to the key; others may come with other content. */
  readonly content: string
  /** Names this call in the ledger. */
  readonly call: string
  readonly ends: Ends
  readonly way: Way
}

/** The parts of the effect of the atomic operation. */
export const effectParts: readonly string[] = ['debit', 'credit']

/** The table that atomic effects go to. */
export const ledgerTable: string =
  'create table ledger (intent text not null, part text not null, call text not null, result text not null)'

/** How long past its end a lease is left alone here, in ms: all processes have one clock. */
export const marginMs = 30

/** Who shares keys here. */
export const tortured: Scope = scope('torture')

/** A domain, as far as it is needed. */
export type Store = RecordStore & Omit<Operations<never>, 'operation'>

/** What bodies need of a transaction. */
interface Transaction {
  query(text: string, values: unknown[]): Promise<unknown>
}

type Failures = 'refused' | 'declined'
type Anyone = Operation<Order, string, Failures>

/** Everything that is defined. */
export interface Defined {
  readonly all: Readonly<Record<OperationName, Anyone>>
  /** Those that a sweep looks after. */
  readonly leased: readonly LeasedOperation<never, unknown>[]
}

class Refused extends Error {}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Defines all operations of a worker. */
export function define(
  store: Store,
  receiver: Receiver,
  { leaseMs, placeholders }: { readonly leaseMs: number; readonly placeholders: string },
): Defined {
  const shared = {
    scope: () => tortured,
    key: ({ key }: Order) => parseKey(key),
    content: ({ intent, content }: Order) => ({ value: { intent, content } }),
    window: '1h',
    failures: ['refused', 'declined'],
    wait: '4s',
    terminal: (error: unknown) => (error instanceof Refused ? fail('refused') : undefined),
  } as const
  const insert = `insert into ledger (intent, part, call, result) values (${placeholders})`
  const db = store as unknown as Operations<Transaction & never>
  const book = db.operation('book', {
    ...shared,
    run: async (tx: Transaction, { intent, call, ends, way }: Order) => {
      const result = randomUUID()
      for (const part of effectParts) {
        await tx.query(insert, [intent, part, call, result])
        if (way === 'slow') await pause(10)
      }
      if (way === 'throws') throw new Error('an error of no meaning')
      if (ends === 'refused') throw new Refused()
      return ends === 'declined' ? fail('declined', result) : result
    },
  } as never) as unknown as Anyone
  const charge = (name: OperationName, recover: Recover<Order, string, Failures>) =>
    leased<Order, string, Failures>(name, {
      ...shared,
      store,
      lease: leaseMs,
      margin: marginMs,
      lookAfter: 200,
      keepInput: true,
      recover,
      run: (lease, order) => chargeOnce(lease, order, receiver, leaseMs),
    })
  // Whoever says that it did not happen has seen to it that nothing of an earlier claim arrives any more.
  const ask = resolve<Order, string, Failures>(async ({ key, input }) => {
    const id = operationId('charge-resolve', tortured, parseKey(input?.key ?? ''))
    const { record } = await store.records.read(id, { deadline: { expiresAtMs: performance.now() + 2_000 } })
    const known = await receiver.ask(key('charge'), record?.fence ?? 0)
    if (known === undefined) return didNotHappen()
    return input?.ends === 'declined' ? failedFinally(fail('declined', known)) : happened(known)
  })
  const charges = {
    'charge-rerun': charge('charge-rerun', rerunKeyed('1h')),
    'charge-resolve': charge('charge-resolve', ask),
    'charge-hold': charge('charge-hold', hold()),
  }
  return { all: { book, ...charges }, leased: Object.values(charges) as never }
}

async function chargeOnce(lease: Lease, order: Order, receiver: Receiver, leaseMs: number) {
  const { way, ends, operation, intent, call } = order
  if (ends === 'refused') throw new Refused()
  if (way === 'throws') throw lease.notSent(new Error('nothing was sent'))
  if (way === 'slow') await pause(leaseMs / 4)
  const receipt = await lease.effect('charge', ({ key, fence, signal }) => {
    const charge: Charge = { key, fence, intent, call, honours: operation === 'charge-rerun' ? 'keys' : 'fences' }
    return receiver.charge(charge, { hangsUp: way === 'loses-answer' && lease.attempt === 1, signal })
  })
  if (way === 'slow') await pause(leaseMs / 2)
  // A repeat gets the receipt of the first: whose completion was stored is seen by its fence.
  const result = operation === 'charge-rerun' ? `${receipt}~${lease.fence}` : receipt
  return ends === 'declined' ? fail('declined', result) : result
}
