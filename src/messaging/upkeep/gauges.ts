// Gauges: how far the readers of a domain are, as values and as events, with an alarm where dead letters grow.

import { persistently, type RecordStore, timeOfRecords, type UpkeepCall } from '../../idempotency/index.js'
import { deadlineAfter, demandKnown, pick, RepriseError } from '../../kernel/index.js'
import { type MessagesReaderEvent, messagesGauges, messagesLetters } from '../../telemetry/index.js'
import type { LetterStore } from '../letters.js'

/** How far the readers of a domain are. */
export interface MessageGauges {
  /** The domain's name. */
  readonly domain: string
  /** By name. */
  readonly readers: readonly ReaderGauges[]
  /** The depth of all readers: a message that two of them have before them counts twice. */
  readonly depth: number
  /** The age of the oldest message that a reader has before it, in ms; undefined: there is none. */
  readonly oldestMs: number | undefined
  /** Keys that wait behind a dead letter, of all readers. */
  readonly parked: number
  /** Open dead letters, of all readers. */
  readonly letters: number
}

/** How far one reader is. Its lag is `oldestMs`. */
export interface ReaderGauges extends MessagesReaderEvent {}

/** How gauges are read. */
export interface GaugesOptions extends UpkeepCall {
  /**
   * What dead letters are compared with: a reader with more of them than there is an alarm for. Default: what the last
   * call in this process read of the same domain, and nothing the first time.
   */
  readonly before?: Pick<MessageGauges, 'readers'>
}

const last = new WeakMap<LetterStore, MessageGauges>()

/**
 * Reads how far the readers of a domain are, and publishes it on `reprise.messages.gauges`. Where a reader has more
 * open dead letters than before, `reprise.messages.letters` tells. It looks at every key that has messages before a
 * reader, which costs one to two seconds where there are 100,000 of them, and nothing where all is done: call it every
 * half a minute or so, from one process.
 *
 * @example
 * ```ts
 * import { gauges } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const { depth, letters } = await gauges(memory({ name: 'shop' }))
 * console.log(depth, letters)
 * ```
 * ```text
 * 0 0
 * ```
 */
export async function gauges(
  db: Pick<RecordStore, 'name' | 'records'> & { readonly messages: LetterStore },
  options: GaugesOptions = {},
): Promise<MessageGauges> {
  demandKnown(options, ['before', 'deadline', 'clock', 'random'], 'options of gauges')
  const { messages } = Object(db) as Partial<typeof db>
  if (messages === undefined) throw new RepriseError('ARGUMENT_INVALID', 'Gauges need a domain with messages.')
  const time = { ...timeOfRecords(db.records), ...pick(options, ['clock', 'random']) }
  const deadline = deadlineAfter(options.deadline ?? '5s', time.clock)
  const { answer } = await persistently(time, deadline, (limits) => messages.readers(limits))
  const readers = answer
    .map(({ name: reader, ...rest }) => ({ reader, ...rest }))
    .sort((a, b) => (a.reader < b.reader ? -1 : 1))
  const sum = (name: 'depth' | 'parked' | 'letters'): number => readers.reduce((all, one) => all + one[name], 0)
  const ages = readers.flatMap(({ oldestMs }) => (oldestMs === undefined ? [] : [oldestMs]))
  const read: MessageGauges = {
    domain: db.name,
    readers,
    depth: sum('depth'),
    oldestMs: ages.length === 0 ? undefined : Math.max(...ages),
    parked: sum('parked'),
    letters: sum('letters'),
  }
  const before = options.before ?? last.get(messages)
  last.set(messages, read)
  tell(read, before)
  return read
}

function tell({ domain, readers }: MessageGauges, before: Pick<MessageGauges, 'readers'> | undefined): void {
  if (messagesGauges.hasSubscribers) messagesGauges.publish({ domain, readers })
  if (before === undefined || !messagesLetters.hasSubscribers) return
  for (const { reader, letters } of readers) {
    const had = before.readers.find((one) => one.reader === reader)?.letters ?? 0
    if (letters > had) messagesLetters.publish({ domain, reader, letters, before: had })
  }
}
