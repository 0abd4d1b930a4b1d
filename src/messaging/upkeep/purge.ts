// The purge of messages: forgets what every reader has done, in small batches with pauses.

import {
  type BatchCounts,
  type BatchOptions,
  batchOptionNames,
  forgetInBatches,
  type LoopEnd,
  type RecordStore,
  timeOfRecords,
} from '../../idempotency/index.js'
import { type Duration, demandKnown, durationMs, pick, RepriseError } from '../../kernel/index.js'
import type { LetterStore, MessagesPurged } from '../letters.js'

/** What a purge of messages has forgotten. */
export interface MessagePurgeCounts extends BatchCounts<MessagesPurged> {}

/** How a purge of messages ended. */
export interface MessagePurgeReport extends MessagePurgeCounts, LoopEnd {}

/** How messages are forgotten. Each time is by the store's clock; `'never'` keeps that kind for ever. */
export interface MessagePurgeOptions extends BatchOptions<MessagePurgeCounts> {
  readonly store: Pick<RecordStore, 'name' | 'records'> & { readonly messages: LetterStore }
  /**
   * Messages that every reader has done are forgotten so long after their emit; a store without a reader keeps them.
   * They are of no use then but for people who look, and for a reader that is new. Default `'1d'`.
   */
  readonly sentAfter?: Duration | 'never'
  /**
   * That a consumer has processed a message is forgotten so long after it did, and never before the longest `memory`
   * of the consumers that are registered: a message that comes again later is handled again. Default `'30d'`.
   */
  readonly processedAfter?: Duration | 'never'
  /**
   * Keys without messages are forgotten so long after their last emit, at least a minute; the next emit begins a higher
   * epoch. A key whose messages had versions is remembered for ever. Of a key from a broker in which nothing waits its
   * numbers are forgotten so long after the last of them, and never before the longest `memory`; without numbers there
   * is nothing to keep. Default `'30d'`.
   */
  readonly headsAfter?: Duration | 'never'
  /** Dead letters are forgotten so long after they were closed; open ones never. Default `'90d'`. */
  readonly lettersAfter?: Duration | 'never'
}

const optionNames = ['store', 'sentAfter', 'processedAfter', 'headsAfter', 'lettersAfter', ...batchOptionNames]
const leastHeadMs = 60_000

/**
 * Purges messages: those that every reader has done, that they were processed, keys that are drained, closed dead
 * letters. Fails with UPKEEP_UNKNOWN where the store stopped answering, and may have forgotten more than `details`
 * counts.
 *
 * @example
 * ```ts
 * import { purgeMessages } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const { messages } = await purgeMessages({ store: memory({ name: 'shop' }), sentAfter: '6h' })
 * console.log(messages)
 * ```
 * ```text
 * 0
 * ```
 */
export async function purgeMessages(options: MessagePurgeOptions): Promise<MessagePurgeReport> {
  demandKnown(options, optionNames, 'options of purgeMessages')
  const { store } = options
  if (store?.messages === undefined)
    throw new RepriseError('ARGUMENT_INVALID', 'A purge of messages needs a domain with messages.')
  const query = {
    sentAfterMs: msOf('sentAfter', options.sentAfter ?? '1d'),
    processedAfterMs: msOf('processedAfter', options.processedAfter ?? '30d'),
    headsAfterMs: msOf('headsAfter', options.headsAfter ?? '30d', leastHeadMs),
    lettersAfterMs: msOf('lettersAfter', options.lettersAfter ?? '90d'),
  }
  const time = { ...timeOfRecords(store.records), ...pick(options, ['clock', 'random']) }
  const nothing: MessagesPurged = { messages: 0, processed: 0, heads: 0, letters: 0 }
  return forgetInBatches(options, time, nothing, (limit, limits) => store.messages.purge({ ...query, limit }, limits))
}

function msOf(option: string, duration: Duration | 'never', minMs = 0): number | undefined {
  return duration === 'never' ? undefined : durationMs(duration, { option, minMs })
}
