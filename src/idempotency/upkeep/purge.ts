// The purge: forgets what is past its time, in small batches with pauses, so that nobody else has to wait for it.

import type { Purged, RecordLimits, RecordStore } from '../../atomicity/index.js'
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
import { persistently, provesUnwritten } from '../leased/store-calls.js'
import { countOf, inPasses, type LoopEnd, type LoopOptions, loopOptionNames, paused } from './loop.js'
import { timeAndChance } from './which.js'

/** What a purge has forgotten. */
export interface PurgeCounts extends Purged {
  /**
   * How many batches may have happened besides: their answers were lost. Each forgot at most `batch` rows of every
   * kind, or nothing, and was sent again.
   */
  readonly unconfirmed: number
}

/** How a purge ended. */
export interface PurgeReport extends PurgeCounts, LoopEnd {}

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
  readonly onProgress?: (counts: PurgeCounts) => void
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
  const { store, signal, onProgress, onError } = options
  if (store?.records === undefined)
    throw new RepriseError('ARGUMENT_INVALID', 'A purge needs a store that keeps records.')
  const { clock, random } = timeAndChance(store.records, options)
  const limit = countOf('batch', options.batch ?? 500, 10_000)
  const pauseMs = durationMs(options.pause ?? '50ms', { option: 'pause' })
  const markersAfterMs = msOf('markersAfter', options.markersAfter)
  if (markersAfterMs !== undefined) {
    demandMemory('markersAfter', markersAfterMs, timeOfRecords(store.records).deadlineMs)
  }
  const query = {
    limit,
    ...defined({
      unknownAfterMs: msOf('unknownAfter', options.unknownAfter),
      auditAfterMs: msOf('auditAfter', options.auditAfter),
      markersAfterMs,
    }),
  }
  let counts: PurgeCounts = { finished: 0, unknown: 0, audit: 0, markers: 0, unconfirmed: 0 }
  const statement = (limits: RecordLimits): Promise<Purged> => store.records.purge(query, limits)
  const onFailure = (error: unknown): void => {
    if (!provesUnwritten(error)) counts = { ...counts, unconfirmed: counts.unconfirmed + 1 }
  }
  const pass = async (): Promise<boolean> => {
    while (signal?.aborted !== true) {
      const before = counts.unconfirmed
      const asked = persistently({ clock, random }, deadlineAfter(batchLimit, clock), statement, { onFailure })
      const { answer } = await asked.catch((error: unknown) => {
        throw counts.unconfirmed > before ? mayHaveForgotten(counts, limit, error) : error
      })
      counts = { ...sum(counts, answer), unconfirmed: counts.unconfirmed }
      onProgress?.(counts)
      if (Object.values(answer).every((count: number) => count < limit)) return true
      if (!(await paused(pauseMs, clock, signal))) return false
    }
    return false
  }
  const end = await inPasses({ ...options, clock }, pass, (error) => onError?.(error))
  return { ...counts, ...end }
}

function mayHaveForgotten(counts: PurgeCounts, batch: number, cause: unknown): RepriseError {
  const message = `The store did not answer: ${counts.unconfirmed} batches of at most ${batch} rows of each kind may have been forgotten besides those counted.`
  return new RepriseError('UPKEEP_UNKNOWN', message, { cause, details: { ...counts } })
}

function msOf(option: string, duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration, { option })
}

function sum(a: Purged, b: Purged): Purged {
  return {
    finished: a.finished + b.finished,
    unknown: a.unknown + b.unknown,
    audit: a.audit + b.audit,
    markers: a.markers + b.markers,
  }
}
