// The purge: forgets what is past its time, in small batches with pauses, so that nobody else has to wait for it.

import type { Purged, RecordStore } from '../../atomicity/index.js'
import { type Duration, defined, demandKnown, durationMs, RepriseError } from '../../kernel/index.js'
import { demandMemory } from '../../transaction/index.js'
import { timeOfRecords } from '../domain.js'
import { type BatchCounts, type BatchOptions, batchOptionNames, forgetInBatches } from './batches.js'
import type { LoopEnd } from './loop.js'
import { timeAndChance } from './which.js'

/** What a purge has forgotten. */
export interface PurgeCounts extends BatchCounts<Purged> {}

/** How a purge ended. */
export interface PurgeReport extends PurgeCounts, LoopEnd {}

/** Options of a purge. */
export interface PurgeOptions extends BatchOptions<PurgeCounts> {
  readonly store: Pick<RecordStore, 'name' | 'records'>
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
}

const optionNames = ['store', 'unknownAfter', 'auditAfter', 'markersAfter', ...batchOptionNames]

/**
 * Purges: finished records past their window, and what else was asked for. A claim, and an outcome that is unknown, is
 * not forgotten unasked. Fails with UPKEEP_UNKNOWN where the store stopped answering, and may have forgotten more than
 * `details` counts.
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
export async function purge(options: PurgeOptions): Promise<PurgeReport> {
  demandKnown(options, optionNames, 'options of purge')
  const { store } = options
  if (store?.records === undefined)
    throw new RepriseError('ARGUMENT_INVALID', 'A purge needs a store that keeps records.')
  const markersAfterMs = msOf('markersAfter', options.markersAfter)
  if (markersAfterMs !== undefined) {
    demandMemory('markersAfter', markersAfterMs, timeOfRecords(store.records).deadlineMs)
  }
  const query = defined({
    unknownAfterMs: msOf('unknownAfter', options.unknownAfter),
    auditAfterMs: msOf('auditAfter', options.auditAfter),
    markersAfterMs,
  })
  const nothing: Purged = { finished: 0, unknown: 0, audit: 0, markers: 0 }
  return forgetInBatches(options, timeAndChance(store.records, options), nothing, (limit, limits) =>
    store.records.purge({ ...query, limit }, limits),
  )
}

function msOf(option: string, duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration, { option })
}
