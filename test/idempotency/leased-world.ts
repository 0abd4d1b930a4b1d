// A world for leased operations in virtual time: one store, processes that can be paused, answers that can be lost, and
// a receiver that counts.

import type { RecordStore, Records } from '../../src/atomicity/index.js'
import { operationDomain } from '../../src/idempotency/domain.js'
import { leased } from '../../src/idempotency/leased/leased.js'
import type { LeasedOptions } from '../../src/idempotency/leased/plan.js'
import { hold } from '../../src/idempotency/leased/recovery.js'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import type { CancelTimer, Clock } from '../../src/kernel/index.js'
import { forCodes, transient } from '../../src/retry/index.js'
import { memoryManifest } from '../../src/stores/memory/index.js'
import { MemoryRecords } from '../../src/stores/memory/records/records.js'
import { type ManualClock, manualClock } from '../../src/testing/index.js'
import type { TransactionDefaults } from '../../src/transaction/index.js'
import type { Gate } from '../gate.js'

export interface Order {
  readonly key: Key
  readonly amount: number
}

export interface Receipt {
  readonly charge: number
}

/**
 * What a statement to the store meets: nothing, a loss before it arrived, the loss of its answer, or an error of the
 * store's own in place of it.
 */
export type StoreFault = 'fine' | 'not-sent' | 'answer-lost' | Error

export interface World {
  readonly clock: ManualClock
  readonly records: MemoryRecords
  /** The store as one process sees it; `fault` is asked at every statement. */
  store(fault?: (method: keyof Records, nth: number) => StoreFault, defaults?: TransactionDefaults): RecordStore
  order(amount?: number): Order
}

export function world(): World {
  const clock = manualClock()
  const records = new MemoryRecords(clock)
  return {
    clock,
    records,
    store(fault = () => 'fine', defaults = {}) {
      const store = { name: 'test', manifest: memoryManifest, records: faulty(records, fault) }
      // What each process has of its own: its queue, its list of operations, its clock.
      operationDomain(store, { clock, deadline: '30s', ...defaults })
      return store
    },
    order: (amount = 5) => ({ key: mintKey(), amount }),
  }
}

function faulty(records: Records, fault: (method: keyof Records, nth: number) => StoreFault): Records {
  const counts = new Map<string, number>()
  return new Proxy(records, {
    get(target, method: keyof Records) {
      if (typeof target[method] !== 'function') return target[method]
      return async (...args: unknown[]) => {
        const nth = (counts.get(method) ?? 0) + 1
        counts.set(method, nth)
        const meets = fault(method, nth)
        if (meets instanceof Error) throw meets
        if (meets === 'not-sent') throw new Error('connection refused')
        const answer = await (target[method] as (...args: unknown[]) => Promise<unknown>)(...args)
        if (meets === 'answer-lost') throw new Error('connection reset')
        return answer
      }
    },
  })
}

/**
 * A process's own view of time: while it is stopped its timers are late; while its machine is suspended its monotonic
 * clock stands still too.
 */
export interface PausableClock extends Clock {
  pause(how?: 'stopped' | 'suspended'): void
  resume(): void
}

export function processClock(clock: Clock): PausableClock {
  let paused = false
  let frozenAtMs: number | undefined
  let missedMs = 0
  let waiting: (() => void)[] = []
  return {
    monotonicMs: () => (frozenAtMs ?? clock.monotonicMs()) - missedMs,
    wallMs: () => clock.wallMs(),
    setTimer(delayMs, fire): CancelTimer {
      let cancelled = false
      const ring = (): void => {
        if (cancelled) return
        if (paused) waiting.push(ring)
        else fire()
      }
      const cancel = clock.setTimer(delayMs, ring)
      return () => {
        cancelled = true
        cancel()
      }
    },
    pause(how = 'stopped') {
      paused = true
      if (how === 'suspended') frozenAtMs = clock.monotonicMs()
    },
    resume() {
      paused = false
      if (frozenAtMs !== undefined) missedMs += clock.monotonicMs() - frozenAtMs
      frozenAtMs = undefined
      for (const ring of waiting.splice(0)) ring()
      waiting = []
    },
  }
}

/** A definition with the usual parts. */
export function chargeOptions<Code extends string = never>(
  parts: Pick<LeasedOptions<Order, Receipt, Code>, 'run' | 'store'> & Partial<LeasedOptions<Order, Receipt, Code>>,
): LeasedOptions<Order, Receipt, Code> {
  return {
    scope: () => scope('tenant'),
    key: ({ key }) => key,
    content: ({ amount }) => ({ value: amount }),
    window: '24h',
    lease: '30s',
    recover: hold(),
    // Errors of the tests are made up: no request is seen to fail, so it is declared that they are proof.
    classify: forCodes({ ECONNREFUSED: transient('ECONNREFUSED', 'no') }),
    ...parts,
  }
}

/** Settles promises without moving time. */
export async function code(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'fulfilled',
    (error) => String((error as { code?: unknown }).code ?? error),
  )
}

/** What a process changes of the usual definition. */
export type Options = Partial<LeasedOptions<Order, Receipt, 'declined'>>

/** A process of its own: it can stand still, and lose its store. */
export function process(one: World, run: LeasedOptions<Order, Receipt, 'declined'>['run'], options: Options = {}) {
  const clock = processClock(one.clock)
  const faults: { now: StoreFault } = { now: 'fine' }
  const store = one.store(() => faults.now, { clock })
  const parts = chargeOptions<'declined'>({ store, run, deadline: '10m', failures: ['declined'], ...options })
  return { clock, faults, charge: leased<Order, Receipt, 'declined'>('charge', parts) }
}

/** A body that works until it is told to go on. */
export type Work = Gate<Receipt>

/** The only record there is. */
export const only = ({ records }: World) => [...records.committed.values()][0]
