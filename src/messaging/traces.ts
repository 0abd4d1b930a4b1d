// Where messages are: what a store knows of those that one intent caused, for people who ask what became of it.

import type { MessagePlace, RecordLimits, StoredMessage } from '../atomicity/index.js'
import type { DeadLetter, Reader } from './lanes.js'

/** Which messages are looked for. */
export interface CausedQuery {
  /** What the messages name as their intent, 1 to 100. */
  readonly intents: readonly string[]
  /** Of the outbox only those from this moment on, in ms since 1970: what lies before is not read. */
  readonly sinceMs: number
  /** At most this many, 1 to 1,000. */
  readonly limit: number
}

/** What one reader knows of a message. */
export interface ReaderTrace {
  readonly reader: string
  readonly kind: Reader['kind']
  readonly reads: Reader['reads']
  /**
   * `done`: it is past the message, by having delivered, handled or discarded it. `waiting`: it is before the reader.
   * `parked`: it waits behind a dead letter of its key, or is one. `untold`: the reader has not seen its key yet.
   */
  readonly state: 'done' | 'waiting' | 'parked' | 'untold'
  /** When a consumer had processed it, in ms since 1970. Undefined: it has not, or nobody keeps the time. */
  readonly handledAtMs: number | undefined
}

/** Where a message is. */
export interface MessageTrace {
  /** What those know of it who read the outbox, and those of the inbox at which it has arrived; by name. */
  readonly readers: readonly ReaderTrace[]
  /** Its dead letters, closed ones included. */
  readonly letters: readonly DeadLetter[]
}

/** What a store tells of messages. Each call only reads. */
export interface TraceStore {
  /**
   * The messages of intents that are still there, the oldest first: in the outbox, in inboxes and in dead letters. One
   * that is in several of them comes several times.
   */
  caused(query: CausedQuery, limits: RecordLimits): Promise<readonly StoredMessage[]>
  trace(message: Pick<StoredMessage, 'source' | 'id' | 'key' | 'place'>, limits: RecordLimits): Promise<MessageTrace>
}

/** What is stored of a reader and a message. */
export interface TraceFacts extends Pick<ReaderTrace, 'reader' | 'kind' | 'reads' | 'handledAtMs'> {
  /** The reader's lane of the key; undefined: there is none. */
  readonly lane: { readonly done: MessagePlace | undefined; readonly isParked: boolean } | undefined
  /** Whether the message waits in the reader's inbox. */
  readonly isKept: boolean
}

/** What that means for the message; undefined: the reader has nothing to do with it, as far as is known. */
export function traceOf(facts: TraceFacts, { epoch, number }: MessagePlace): ReaderTrace | undefined {
  const { reader, kind, reads, handledAtMs, lane, isKept } = facts
  const is = (state: ReaderTrace['state']): ReaderTrace => ({ reader, kind, reads, state, handledAtMs })
  if (handledAtMs !== undefined) return is('done')
  if (reads === 'inbox') return isKept ? is(lane?.isParked === true ? 'parked' : 'waiting') : undefined
  if (lane === undefined) return is('untold')
  const { done } = lane
  const isPast = done !== undefined && (done.epoch > epoch || (done.epoch === epoch && done.number >= number))
  return is(isPast ? 'done' : lane.isParked ? 'parked' : 'waiting')
}
