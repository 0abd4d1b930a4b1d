// The purge: forgets what is past its time, in small batches with pauses, so that nobody else has to wait for it.

import type { Purged, RecordStore } from '../../atomicity/index.js'
import {
  type Duration,
  deadlineAfter,
  defined,
  demandKnown,
  durationMs,
  type Random,
  RepriseError,
} from '../../kernel/index.js'
import { demandMemory } from '../../transaction/index.js'
import { timeOfRecords } from '../domain.js'
import { persistently } from '../leased/store-calls.js'
import { countOf, inPasses, type LoopOptions, loopOptionNames, paused } from './loop.js'
import { timeAndChance } from './which.js'

/** Options of a purge. */
export interface PurgeOptions extends LoopOptions {
  readonly store: Pick<RecordStore, 'name' | 'records'>
  /** How many rows are forgotten at a time, 1 to 10,000. Default 500. */
  readonly batch?: number
  /** The pause between two batches. Default `'50ms'`. */
  readonly pause?: Duration
  /**
   * Also forgets unknown outcomes that were claimed first longer than this ago, each with an audit note. Default:
   * never.
   */
  readonly unknownAfter?: Duration
  /** Also forgets audit notes older than this. Default: never. */
  readonly auditAfter?: Duration
  /**
   * Also forgets markers of transactions with a key and no window that are older than this. It covers the longest
   * deadline of such a transaction, in any process, and a quarter more; less than the domain's own is refused with
   * WINDOW_SHORTER_THAN_DEADLINE. Default: never.
   */
  readonly markersAfter?: Duration
  /** Hears of the counts after each batch. Default: none. */
  readonly onProgress?: (counts: Purged) => void
  /** Hears of a pass that failed, where there is another one. Default: nobody. */
  readonly onError?: (error: unknown) => void
  /** Chance. Default the domain's. */
  readonly random?: Random
}

const batchLimit = '30s'
const optionNames = [
  ...['store', 'batch', 'pause', 'unknownAfter', 'auditAfter', 'markersAfter', 'onProgress', 'onError', 'random'],
  ...loopOptionNames,
]

/**
 * Purges: finished records past their window, and what else was asked for. A claim, and an outcome that is unknown, is
 * not forgotten unasked.
 *
 * @example
 * ```ts
 * import { purge } from 'reprise/idempotency'
 * import { memory } from 'reprise/stores/memory'
 *
 * const { finished } = await purge({ store: memory({ name: 'shop' }), auditAfter: '90d' })
 * console.log(finished)
 * ```
 * ```text
 * 0
 * ```
 */
export async function purge(options: PurgeOptions): Promise<Purged> {
  demandKnown(options, optionNames, 'options of purge')
  const { store, signal, onProgress, onError } = options
  if (store?.records === undefined)
    throw new RepriseError('ARGUMENT_INVALID', 'A purge needs a store that keeps records.')
  const { clock, random } = timeAndChance(store.records, options)
  const limit = countOf('batch', options.batch ?? 500, 10_000)
  const pauseMs = durationMs(options.pause ?? '50ms')
  const markersAfterMs = msOf(options.markersAfter)
  if (markersAfterMs !== undefined) {
    demandMemory('markersAfter', markersAfterMs, timeOfRecords(store.records).deadlineMs)
  }
  const query = {
    limit,
    ...defined({
      unknownAfterMs: msOf(options.unknownAfter),
      auditAfterMs: msOf(options.auditAfter),
      markersAfterMs,
    }),
  }
  let counts: Purged = { finished: 0, unknown: 0, audit: 0, markers: 0 }
  const pass = async (): Promise<void> => {
    for (let more = true; more && signal?.aborted !== true; ) {
      const deadline = deadlineAfter(batchLimit, clock)
      const { answer } = await persistently({ clock, random }, deadline, (limits) => store.records.purge(query, limits))
      counts = sum(counts, answer)
      onProgress?.(counts)
      more = Object.values(answer).some((count: number) => count >= limit) && (await paused(pauseMs, clock, signal))
    }
  }
  await inPasses({ ...options, clock }, pass, (error) => onError?.(error))
  return counts
}

function msOf(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}

function sum(a: Purged, b: Purged): Purged {
  return {
    finished: a.finished + b.finished,
    unknown: a.unknown + b.unknown,
    audit: a.audit + b.audit,
    markers: a.markers + b.markers,
  }
}
