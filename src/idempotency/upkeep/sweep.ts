// The sweep: takes records whose owner is gone, or whose outcome is unknown, and drives each to an outcome as its
// operation declares.

import type { NamedRecord, RecordStore } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Duration, deadlineAfter, demandKnown, durationMs, type Random, RepriseError } from '../../kernel/index.js'
import { operationSweep } from '../../telemetry/index.js'
import type { LeasedOperation } from '../definition.js'
import type { Plan } from '../leased/plan.js'
import { persistently } from '../leased/store-calls.js'
import { knownOperation } from './known-operations.js'
import { type Look, type Looked, lookAt } from './look.js'
import { countOf, inPasses, type LoopEnd, type LoopOptions, loopOptionNames } from './loop.js'
import { timeAndChance } from './which.js'

/** What a sweep has done so far. Each record that was taken is counted once. */
export interface SweepCounts extends Readonly<Record<Looked, number>> {
  /** How many records were taken. */
  readonly taken: number
}

/** How a sweep ended. */
export interface SweepReport extends SweepCounts, LoopEnd {}

/** Options of a sweep. */
export interface SweepOptions extends LoopOptions {
  /** The store whose records are looked at. */
  readonly store: RecordStore
  /** The leased operations that are looked after, all of this store. */
  readonly operations: readonly LeasedOperation<never, unknown>[]
  /** How many records are taken at a time, 1 to 1,000. Default 100. */
  readonly batch?: number
  /** How many of them are worked on at once, 1 to 100. Default 8. */
  readonly concurrency?: number
  /**
   * How long past its end a lease is left alone, for clocks that run apart. Default: the longest margin of the
   * operations.
   */
  readonly margin?: Duration
  /** The wait before a record that stays unknown is looked at again; it doubles with every look. Default `'30s'`. */
  readonly baseDelay?: Duration
  /** The longest of these waits. Default `'1h'`. */
  readonly capDelay?: Duration
  /** How long asking about one record, or running it again, may take. Default `'30s'`. */
  readonly limit?: Duration
  /** Who is named in audit notes. Default `'sweep'`. */
  readonly actor?: string
  /** Hears of the counts after each batch. Default: none. */
  readonly onProgress?: (counts: SweepCounts) => void
  /** Chance. Default the domain's. */
  readonly random?: Random
}

const optionNames = [
  ...[
    'store',
    'operations',
    'batch',
    'concurrency',
    'margin',
    'baseDelay',
    'capDelay',
    'limit',
    'actor',
    'onProgress',
    'random',
  ],
  ...loopOptionNames,
]

type Counts = Record<Looked | 'taken', number>

/**
 * Sweeps. Several sweeps may run at once: each record is taken by one of them. A record that cannot be driven to an
 * outcome is looked at less and less often, and every decision is written down beside it. A resolving function that
 * throws or does not return costs its own record a look, and nothing else.
 *
 * @example
 * ```ts
 * import { hold, leased, sweep } from 'reprise/idempotency'
 * import { type Key, scope } from 'reprise/identity'
 * import { memory } from 'reprise/stores/memory'
 *
 * const store = memory({ name: 'shop' })
 * const mail = leased('mail', {
 *   store, scope: () => scope('shop'), key: (key: Key) => key, window: '7d',
 *   lease: '30s', recover: hold(), run: () => 'sent',
 * })
 * const counts = await sweep({ store, operations: [mail] })
 * console.log(counts.taken)
 * ```
 * ```text
 * 0
 * ```
 */
export async function sweep(options: SweepOptions): Promise<SweepReport> {
  demandKnown(options, optionNames, 'options of sweep')
  const { store, signal, onProgress } = options
  const plans = plansOf(store, options.operations)
  const { clock, random } = timeAndChance(store.records, options)
  const batch = countOf('batch', options.batch ?? 100, 1_000)
  const concurrency = countOf('concurrency', options.concurrency ?? 8, 100)
  const margins = [...plans.values()].map(({ marginMs }) => marginMs)
  const marginMs =
    options.margin === undefined ? Math.max(0, ...margins) : durationMs(options.margin, { option: 'margin' })
  const baseMs = durationMs(options.baseDelay ?? '30s', { minMs: 1, option: 'baseDelay' })
  const capMs = durationMs(options.capDelay ?? '1h', { minMs: baseMs, option: 'capDelay' })
  const limitMs = durationMs(options.limit ?? '30s', { minMs: 1, option: 'limit' })
  const actor = options.actor ?? 'sweep'
  const look: Look = { plans, baseMs, capMs, limitMs, actor, clock, random }
  const query = { operations: [...plans.keys()], limit: batch, marginMs, baseMs, capMs }
  const counts: Counts = { ...nothing }

  const pass = async (): Promise<boolean> => {
    // Each record once in a pass: one that is due again at once waits for the next.
    const taken = new Set<StoredKey>()
    for (let full = plans.size > 0; full; ) {
      if (signal?.aborted === true) return false
      const deadline = deadlineAfter(limitMs, clock)
      const { answer: due } = await persistently({ clock, random }, deadline, (limits) =>
        store.records.due(query, limits),
      )
      const fresh = due.filter(({ id }) => !taken.has(id))
      for (const { id } of fresh) taken.add(id)
      counts.taken += fresh.length
      await eachOf(fresh, concurrency, async (named) => {
        counts[await lookSafely(look, store, named)] += 1
      })
      onProgress?.({ ...counts })
      full = due.length === batch && fresh.length > 0
    }
    return true
  }
  const end = await inPasses({ ...options, clock }, pass, (error) =>
    operationSweep.publish({ domain: store.name, what: 'error', error }),
  )
  return { ...counts, ...end }
}

const nothing: Counts = {
  taken: 0,
  succeeded: 0,
  failed: 0,
  released: 0,
  unknown: 0,
  held: 0,
  waiting: 0,
  elsewhere: 0,
  error: 0,
}

async function lookSafely(look: Look, { name: domain }: RecordStore, named: NamedRecord): Promise<Looked> {
  const { id, record } = named
  const operation = record.operation ?? ''
  try {
    const what = await lookAt(look, named)
    if (operationSweep.hasSubscribers) operationSweep.publish({ domain, operation, id, what })
    return what
  } catch (error) {
    if (operationSweep.hasSubscribers) operationSweep.publish({ domain, operation, id, what: 'error', error })
    return 'error'
  }
}

// What was taken is put off in the store already, so those that are not reached are looked at by the next sweep.
async function eachOf<Item>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values()
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker))
}

function plansOf(store: RecordStore, operations: readonly unknown[]): ReadonlyMap<string, Plan> {
  const plans = new Map<string, Plan>()
  if (store?.records === undefined || !Array.isArray(operations)) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'A sweep needs a store that keeps records, and a list of its operations.',
    )
  }
  for (const [index, operation] of [...operations].entries()) {
    const plan = knownOperation(operation)?.plan
    if (plan === undefined || plan.domain.records !== store.records) {
      const message = `Operation ${index} is not a leased operation of the store that is to be swept.`
      throw new RepriseError('ARGUMENT_INVALID', message, { details: { index } })
    }
    plans.set(plan.settings.name, plan)
  }
  return plans
}
