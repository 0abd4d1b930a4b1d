// A setting for planted bugs: processes with their own clocks around one store in memory, a receiver that counts, and
// the checker's verdict.

import { randomUUID } from 'node:crypto'
import type { Records } from '../../../../src/atomicity/index.js'
import { operationDomain } from '../../../../src/idempotency/domain.js'
import {
  didNotHappen,
  happened,
  type Lease,
  type LeasedOperation,
  type LeasedOptions,
  leased,
  type RecordStore,
  type Recover,
  resolve,
} from '../../../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../../../src/identity/index.js'
import { type Clock, eventLoopTurn } from '../../../../src/kernel/index.js'
import { memoryManifest } from '../../../../src/stores/memory/index.js'
import { MemoryRecords } from '../../../../src/stores/memory/records/records.js'
import {
  type CallVerdict,
  type CheckFinding,
  checkEffects,
  type LedgerEffect,
  type ManualClock,
  manualClock,
} from '../../../../src/testing/index.js'

/** What is wanted. */
export interface Order {
  readonly intent: string
  readonly key: Key
}

/** What a process is. */
export interface ProcessOptions extends Partial<Pick<LeasedOptions<Order, string>, 'key' | 'keepInput' | 'window'>> {
  /** How it sees the store. Default: as it is. */
  readonly wrap?: (records: Records) => Records
  /** Default: the world's. */
  readonly clock?: Clock
  /** Default: the receiver is asked. */
  readonly recover?: Recover<Order, string, never>
  /** Default: sends once, and returns what the receiver says. */
  readonly run?: (lease: Lease, order: Order) => Promise<string>
}

/** A process. */
export interface Process {
  readonly store: RecordStore
  readonly charge: LeasedOperation<Order, string>
}

/** The world. */
export class BugWorld {
  readonly clock: ManualClock = manualClock({ maxFires: 1_000_000 })
  readonly records: MemoryRecords = new MemoryRecords(this.clock)
  readonly order: Order = { intent: randomUUID(), key: mintKey() }
  readonly effects: LedgerEffect[] = []
  readonly verdicts: CallVerdict[] = []
  readonly results: string[] = []
  readonly #byKey = new Map<string, string>()

  /** The receiver: with `honoursKeys` a key that it knows has no second effect. */
  send(key: string, honoursKeys = false): string {
    const known = this.#byKey.get(key)
    if (known !== undefined && honoursKeys) return known
    const result = randomUUID()
    this.effects.push({ intent: this.order.intent, ...(honoursKeys ? {} : { result }) })
    this.#byKey.set(key, known ?? result)
    return result
  }

  /** Asks the receiver. */
  get asks(): Recover<Order, string, never> {
    return resolve<Order, string>(({ key }) => {
      const known = this.#byKey.get(key('charge'))
      return known === undefined ? didNotHappen() : happened(known)
    })
  }

  /** A process of its own: its queue, its memory, its clock. */
  process({ wrap = (records) => records, clock = this.clock, ...options }: ProcessOptions = {}): Process {
    // Each process has an object of its own, by which it is known.
    const own = new Proxy(this.records, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const store = { name: 'bugs', manifest: memoryManifest, records: wrap(own) }
    operationDomain(store, { clock, deadline: '10h' })
    const charge = leased<Order, string>('charge', {
      store,
      scope: () => scope('tests'),
      key: ({ key }) => key,
      content: 'none',
      window: '24h',
      lease: '30s',
      recover: this.asks,
      run: (lease) => lease.effect('charge', ({ key }) => this.send(key)),
      ...options,
    })
    return { store, charge }
  }

  /** Calls, and keeps what the caller is told. */
  async call({ charge }: Process): Promise<void> {
    try {
      this.results.push(await charge(this.order))
      this.verdicts.push('committed')
    } catch {
      this.verdicts.push('unknown')
    }
  }

  /** Lets time pass until work is over. */
  async through(work: Promise<unknown>): Promise<void> {
    let over = false
    const end = (): void => {
      over = true
    }
    work.then(end, end)
    for (;;) {
      await this.turns(3)
      if (over) return
      await this.clock.runToNext()
    }
  }

  /** Lets everybody go on who can, without any time passing. */
  async turns(count = 20): Promise<void> {
    for (let n = 0; n < count; n += 1) await eventLoopTurn()
  }

  /** What the checker finds. */
  findings(): readonly CheckFinding[] {
    const { intent, key } = this.order
    const intents = [{ id: intent, key, verdicts: this.verdicts, results: this.results }]
    return checkEffects({ intents, effects: this.effects, healed: true }).findings
  }
}

/** A gate that is shut until it is opened. */
export function closedGate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

/** The records of a store with some of their methods replaced. */
export function replaced(records: Records, methods: Partial<Records>): Records {
  const bound = Object.fromEntries(
    (['read', 'insert', 'swap', 'due', 'purge'] as const).map((name) => [
      name,
      (...args: unknown[]) => (records[name] as (...args: unknown[]) => unknown)(...args),
    ]),
  )
  return { ...bound, inspection: records.inspection, ...methods } as unknown as Records
}
