// How upkeep forgets: in small batches with pauses, so that nobody else has to wait for it, and with an honest count
// where answers were lost.

import type { RecordLimits } from '../../atomicity/index.js'
import { type Duration, deadlineAfter, durationMs, type Random, RepriseError } from '../../kernel/index.js'
import { persistently, provesUnwritten, type TimeAndChance } from '../leased/store-calls.js'
import { countOf, inPasses, type LoopEnd, type LoopOptions, loopOptionNames, paused } from './loop.js'

/** What was forgotten: how many rows of each kind. */
export type KindCounts<Kinds> = { readonly [Kind in keyof Kinds]: number }

/** The same, and what may have been forgotten besides. */
export type BatchCounts<Kinds> = KindCounts<Kinds> & {
  /**
   * How many batches may have happened besides: their answers were lost. Each forgot at most `batch` rows of every
   * kind, or nothing, and was sent again.
   */
  readonly unconfirmed: number
}

/** How batches follow each other. */
export interface BatchOptions<Counts> extends LoopOptions {
  /** How many rows are forgotten at a time, 1 to 10,000. Default 500. */
  readonly batch?: number
  /** The pause between two batches. Default `'50ms'`. */
  readonly pause?: Duration
  /** Hears of the counts after each batch. Default: none. */
  readonly onProgress?: (counts: Counts) => void
  /** Hears of a pass that failed, where there is another one. Default: nobody. */
  readonly onError?: (error: unknown) => void
  /** Chance. Default the domain's. */
  readonly random?: Random
}

/** The names of these options. */
export const batchOptionNames: readonly string[] = [
  ...['batch', 'pause', 'onProgress', 'onError', 'random'],
  ...loopOptionNames,
]

const batchLimit = '30s'

/**
 * Forgets in batches until one of them was not full. Fails with UPKEEP_UNKNOWN where the store stopped answering, and
 * may have forgotten more than `details` counts.
 *
 * @param nothing A count of zero for each kind.
 * @param forget One batch of at most so many rows of each kind; to send it again does no harm.
 */
export async function forgetInBatches<Kinds extends KindCounts<Kinds>>(
  options: BatchOptions<BatchCounts<Kinds>>,
  { clock, random }: TimeAndChance,
  nothing: Kinds,
  forget: (most: number, limits: RecordLimits) => Promise<Kinds>,
): Promise<BatchCounts<Kinds> & LoopEnd> {
  const { signal, onProgress, onError } = options
  const most = countOf('batch', options.batch ?? 500, 10_000)
  const pauseMs = durationMs(options.pause ?? '50ms', { option: 'pause' })
  let counts: BatchCounts<Kinds> = { ...nothing, unconfirmed: 0 }
  const onFailure = (error: unknown): void => {
    if (!provesUnwritten(error)) counts = { ...counts, unconfirmed: counts.unconfirmed + 1 }
  }
  const pass = async (): Promise<boolean> => {
    while (signal?.aborted !== true) {
      const before = counts.unconfirmed
      const statement = (limits: RecordLimits): Promise<Kinds> => forget(most, limits)
      const asked = persistently({ clock, random }, deadlineAfter(batchLimit, clock), statement, { onFailure })
      const { answer } = await asked.catch((error: unknown) => {
        throw counts.unconfirmed > before ? mayHaveForgotten(counts, most, error) : error
      })
      counts = sum(counts, answer)
      onProgress?.(counts)
      if (Object.values<number>(answer).every((count) => count < most)) return true
      if (!(await paused(pauseMs, clock, signal))) return false
    }
    return false
  }
  const end = await inPasses({ ...options, clock }, pass, (error) => onError?.(error))
  return { ...counts, ...end }
}

function mayHaveForgotten(counts: { readonly unconfirmed: number }, most: number, cause: unknown): RepriseError {
  const message = `The store did not answer: ${counts.unconfirmed} batches of at most ${most} rows of each kind may have been forgotten besides those counted.`
  return new RepriseError('UPKEEP_UNKNOWN', message, { cause, details: { ...counts } })
}

function sum<Kinds extends KindCounts<Kinds>>(counts: BatchCounts<Kinds>, more: Kinds): BatchCounts<Kinds> {
  const kinds = Object.keys(more) as (keyof Kinds)[]
  const before: KindCounts<Kinds> = counts
  const added = Object.fromEntries(kinds.map((kind) => [kind, before[kind] + more[kind]]))
  return { ...counts, ...added }
}
