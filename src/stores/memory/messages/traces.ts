// Where messages are, in memory.

import type { Row, StoredMessage } from '../../../atomicity/index.js'
import { type CausedQuery, type MessageTrace, type Reader, traceOf } from '../../../messaging/index.js'
import type { Views } from '../tables.js'
import { letterIn } from './letter-rows.js'
import { allOf, comparePlaces, laneOf, laneState, messageOf, oneOf } from './rows.js'
import { messageTables } from './tables.js'

const { message, inbox, deadLetter, reader: readers, processed } = messageTables

/** The messages of intents, the oldest first; one that is in several tables comes several times. */
export function causedBy(views: Views, { intents, sinceMs, limit }: CausedQuery): readonly StoredMessage[] {
  const among = (table: string): readonly Row[] => intents.flatMap((intent) => allOf(views.view(table), { intent }))
  const sent = among(message).filter((row) => Number(row['at_ms']) >= sinceMs)
  return [...sent, ...among(inbox), ...among(deadLetter)]
    .map(messageOf)
    .sort((one, other) => one.atMs - other.atMs || comparePlaces(one.place, other.place))
    .slice(0, limit)
}

/** Where a message is. */
export function traced(
  views: Views,
  { source, id, key, place }: Pick<StoredMessage, 'source' | 'id' | 'key' | 'place'>,
): MessageTrace {
  const found = allOf(views.view(readers), {}).map((row) => {
    const reader = String(row['name'])
    const lane = laneOf(views, reader, key)
    const handled = oneOf(views.view(processed), { reader, source, id })
    const facts = {
      reader,
      kind: row['kind'] as Reader['kind'],
      reads: row['reads'] as Reader['reads'],
      handledAtMs: handled === undefined ? undefined : Number(handled['at_ms']),
      lane: lane && { done: lane.done, isParked: lane.state === laneState.parked },
      isKept: oneOf(views.view(inbox), { reader, source, id }) !== undefined,
    }
    return traceOf(facts, place)
  })
  return {
    readers: found.flatMap((trace) => trace ?? []).sort((one, other) => (one.reader < other.reader ? -1 : 1)),
    letters: allOf(views.view(deadLetter), { source, id }).map(letterIn),
  }
}
