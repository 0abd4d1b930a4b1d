// What the cases of operations share: orders, operations on several domain objects, owners that are gone, and a clock
// that can stand still.

import { draftedRecord, type RecordManifest, type StoredRecord } from '../../../atomicity/index.js'
import {
  type AnyOperation,
  hold,
  type LeasedOperation,
  type LeasedOptions,
  leased,
  type NameOfRecord,
  type Operation,
  operationId,
} from '../../../idempotency/index.js'
import { type Key, type Scope, type StoredKey, scope } from '../../../identity/index.js'
import { type CancelTimer, type Clock, sleep, systemClock } from '../../../kernel/index.js'
import type { ConformanceHandle, ConformanceStore, RecordWorld, StoreWorld } from '../conformance-case.js'
import { ConformanceFailure, failing, holds } from '../expectations.js'
import { limits } from '../record-world.js'

/** What is to be paid, or charged. */
export interface Order {
  /** The intent's key. */
  readonly key: Key
  /** How much: the content that is bound to the key. */
  readonly amount: number
}

/** Who shares the keys. */
export const tests: Scope = scope('conformance')

/** An order under a key of this name. */
export const order = (name: string, amount = 5): Order => ({ key: name as Key, amount })

/** Which record an order has. */
export const which = <Named extends AnyOperation | string>(operation: Named, { key }: Order): NameOfRecord<Named> => ({
  operation,
  scope: tests,
  key,
})

/** The identity of all operations here. */
export const identity = { scope: (): Scope => tests, key: ({ key }: Order): Key => key, window: '24h' } as const

/** Something on each domain object, once for those that are one and the same. */
export function onEach<Store, Defined>(domains: readonly Store[], define: (domain: Store) => Defined): Defined[] {
  const known = new Map<Store, Defined>()
  return domains.map((domain) => {
    const defined = known.get(domain) ?? define(domain)
    known.set(domain, defined)
    return defined
  })
}

/** What the body of `pay` answers. */
export interface Receipt {
  /** Which run of it this was, in all domain objects of the case. */
  readonly run: number
}

/** Atomic operations `pay` on the domain and on another one: each run leaves one effect of the key. */
export async function paying(
  world: Pick<StoreWorld, 'db' | 'second' | 'effect'>,
  more: object = {},
  work: (tx: ConformanceHandle, order: Order) => Promise<void> = async () => undefined,
): Promise<{ readonly pays: readonly [Operation<Order, Receipt>, Operation<Order, Receipt>]; runs(): number }> {
  let runs = 0
  const run = async (tx: ConformanceHandle, one: Order): Promise<Receipt> => {
    await world.effect(tx, one.key)
    await work(tx, one)
    return { run: ++runs }
  }
  const [first, second] = onEach([world.db, await world.second()], (domain) =>
    domain.operation('pay', { ...identity, run, lockWait: '30s', ...more }),
  )
  return { pays: [first as Operation<Order, Receipt>, second as Operation<Order, Receipt>], runs: () => runs }
}

/** What the cases change of the definition of `charge`. */
export type ChargeOptions = Partial<LeasedOptions<Order, unknown, 'declined'>> &
  Pick<LeasedOptions<Order, unknown, 'declined'>, 'run' | 'recover'>

/** A leased operation `charge` on a domain. */
export function charging(store: ConformanceStore, options: ChargeOptions): LeasedOperation<Order, unknown, 'declined'> {
  return leased<Order, unknown, 'declined'>('charge', {
    ...identity,
    store,
    lease: '2s',
    margin: 0,
    failures: ['declined'],
    wait: '60s',
    deadline: '60s',
    ...options,
  })
}

/** The name of the record of an order's charge. */
export const chargeId = ({ key }: Order, { records }: Pick<ConformanceStore, 'records'>): StoredKey =>
  operationId('charge', tests, key, records.pepper)

/** Ends the window of a finished record, which no definition could make short enough to wait for. */
export async function endWindow({ db }: Pick<RecordWorld, 'db'>, id: StoredKey): Promise<void> {
  const { record } = await db.records.read(id, limits())
  if (record === undefined) throw new Error('There is no record whose window could be ended.')
  await db.records.swap(id, record, { state: record.state, remembered: 1 }, limits())
}

/** The store's clock, in ms since 1970. */
export async function storeNowMs({ db }: Pick<RecordWorld, 'db'>): Promise<number> {
  return (await db.records.read(chargeId(order('nobody'), db), limits())).nowMs
}

/** A claim whose owner is gone: its lease ends that many ms from now, or ended before. It may have sent something. */
export async function abandoned(
  world: RecordWorld,
  one: Order,
  leftMs: number,
  otherwise: Partial<StoredRecord> = {},
): Promise<StoredRecord> {
  const nowMs = await storeNowMs(world)
  const draft = { mode: 'leased', operation: 'charge', token: 'of the one who is gone', leaseMs: 1 } as const
  const record = draftedRecord(draft, nowMs - 1_000, () => 1)
  const gone = { ...record, dueAtMs: nowMs + leftMs, input: JSON.stringify(one), ...otherwise }
  await world.putRecord(chargeId(one, world.db), gone)
  return gone
}

/** Asks until it holds. */
export async function until(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = systemClock.monotonicMs() + 60_000
  while (!(await isSo())) {
    if (systemClock.monotonicMs() > endMs) throw new ConformanceFailure(`waited in vain: ${what}`)
    await sleep(5)
  }
}

/** Why a case that needs another process does not apply. */
export function inOneProcess({ reach, because }: RecordManifest): string | undefined {
  return reach === 'process' ? (because.reach ?? 'only this process can open it') : undefined
}

/** That there is no other process shows in that nobody can have an operation of the same name. */
export async function hasNoOther({ db, second }: RecordWorld): Promise<void> {
  holds((await second()) === db, 'a second store object that is the first')
  const charge = (): unknown => charging(db, { recover: hold(), run: async () => 1 })
  charge()
  await failing((async () => charge())(), 'OPERATION_DEFINED_TWICE')
}

/**
 * A clock that can stand still, as that of a process that is stopped: it goes on where it stood, and its timers are
 * late.
 */
export interface StoppableClock extends Clock {
  /** It stands still from now on. */
  stop(): void
}

/** A clock of a process that will be stopped. */
export function stoppableClock(): StoppableClock {
  let stopped: { readonly monotonicMs: number; readonly wallMs: number } | undefined
  return {
    monotonicMs: () => stopped?.monotonicMs ?? systemClock.monotonicMs(),
    wallMs: () => stopped?.wallMs ?? systemClock.wallMs(),
    setTimer(delayMs, fire, options): CancelTimer {
      // What is set after the stop belongs to calls that the process makes when it goes on.
      const late = stopped === undefined
      const ring = (): void => {
        if (!late || stopped === undefined) fire()
      }
      return systemClock.setTimer(delayMs, ring, options)
    },
    stop() {
      stopped = { monotonicMs: systemClock.monotonicMs(), wallMs: systemClock.wallMs() }
    },
  }
}
