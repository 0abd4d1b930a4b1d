// Rows of the tables of messages, as data.

import type { Match, MessagePlace, Row, StoredMessage } from '../../../atomicity/index.js'
import type { TableView } from '../table.js'
import type { Views } from '../tables.js'
import { messageTables } from './tables.js'

const { message, inbox, lane } = messageTables

/** What a lane is at. */
export const laneState = { idle: 0, waiting: 1, parked: 2 } as const

/** A lane, as it is stored. */
export interface LaneRow {
  readonly id: number
  readonly reader: string
  readonly key: string
  readonly done: MessagePlace | undefined
  readonly known: MessagePlace | undefined
  readonly state: (typeof laneState)[keyof typeof laneState]
  readonly dueAtMs: number
  readonly owner: string | undefined
  readonly attempt: number
  readonly claims: number
  readonly failures: number
  readonly history: string
}

/** The one row of a table that has these values. */
export function oneOf(table: TableView, where: Match): (Row & { readonly rowId: number }) | undefined {
  const [rowId] = table.find(where)
  const row = rowId === undefined ? undefined : table.row(rowId)
  return row === undefined ? undefined : { ...row, rowId: rowId as number }
}

/** All rows that have these values, the oldest first. */
export function allOf(table: TableView, where: Match): readonly (Row & { readonly rowId: number })[] {
  return table.find(where).map((rowId) => ({ ...(table.row(rowId) as Row), rowId }))
}

/** The lane of a reader for a key. */
export function laneOf(views: Views, reader: string, key: string): LaneRow | undefined {
  const row = oneOf(views.view(lane), { reader, key })
  return row === undefined ? undefined : laneRow(row.rowId, row)
}

/** A lane, by its row. */
export function laneRow(id: number, row: Row): LaneRow {
  return {
    id,
    reader: String(row['reader']),
    key: String(row['key']),
    done: placeIn(row['epoch'], row['number']),
    known: placeIn(row['known_epoch'], row['known_number']),
    state: Number(row['state']) as LaneRow['state'],
    dueAtMs: Number(row['due_at_ms']),
    owner: textIn(row['owner']),
    attempt: Number(row['attempt']),
    claims: Number(row['claims']),
    failures: Number(row['failures']),
    history: String(row['history']),
  }
}

/** A lane that knows of nothing yet. */
export function newLane(reader: string, key: string): Match {
  const nowhere = { epoch: 0, number: 0, known_epoch: 0, known_number: 0 }
  const unclaimed = { owner: null, attempt: 0, claims: 0, failures: 0, history: '' }
  return { reader, key, ...nowhere, state: laneState.idle, due_at_ms: 0, ...unclaimed }
}

/** Tells a lane of the outbox that its key has a message at a place, due at a time. */
export function tellLane(views: Views, reader: string, key: string, place: MessagePlace, dueAtMs: number): void {
  const lanes = views.view(lane)
  const known = { known_epoch: place.epoch, known_number: place.number }
  const ready = { state: laneState.waiting, due_at_ms: dueAtMs }
  const there = laneOf(views, reader, key)
  if (there === undefined) lanes.insert({ ...newLane(reader, key), ...known, ...ready })
  // One that waits, or is parked, comes to it by itself.
  else lanes.update(there.id, there.state === laneState.idle ? { ...known, ...ready } : known)
}

/** The messages of a key behind a place, in order, in the outbox or in the inbox of a reader. */
export function messagesBehind(
  views: Views,
  from: { readonly key: string; readonly inboxOf: string | undefined },
  done: MessagePlace | undefined,
  most: number,
): readonly StoredMessage[] {
  const { key, inboxOf } = from
  const table = views.view(inboxOf === undefined ? message : inbox)
  const where: Match = inboxOf === undefined ? { key } : { reader: inboxOf, key }
  const found: StoredMessage[] = []
  let last = done
  while (found.length < most) {
    // The next number, by the index; only where there is none are all messages of the key looked at.
    const next = last && oneOf(table, { ...where, epoch: last.epoch, number: last.number + 1 })
    const row = next ?? firstBehind(table, where, last)
    if (row === undefined) break
    const stored = messageOf(row)
    found.push(stored)
    last = stored.place
  }
  return found
}

function firstBehind(table: TableView, where: Match, done: MessagePlace | undefined): Row | undefined {
  let first: Row | undefined
  for (const id of table.find(where)) {
    const row = table.row(id) as Row
    if (done !== undefined && comparePlaces(placeOf(row), done) <= 0) continue
    if (first === undefined || comparePlaces(placeOf(row), placeOf(first)) < 0) first = row
  }
  return first
}

/** Below 0: the first place is behind the other one. */
export function comparePlaces(one: MessagePlace, other: MessagePlace): number {
  return one.epoch - other.epoch || one.number - other.number
}

/** What is stored of a message, by its row. */
export function messageOf(row: Row): StoredMessage {
  const version = row['version'] ?? undefined
  return {
    source: String(row['source']),
    id: String(row['id']),
    type: String(row['type']),
    subject: textIn(row['subject']),
    key: String(row['key']),
    place: placeOf(row),
    version: version === undefined ? undefined : Number(version),
    atMs: Number(row['at_ms']),
    intent: textIn(row['intent']),
    traceparent: textIn(row['traceparent']),
    schema: textIn(row['schema']),
    codec: textIn(row['codec']),
    data: String(row['data']),
  }
}

/** The columns of what is stored of a message. */
export function contentRow(stored: StoredMessage): Row {
  const { source, id, type, subject, key, place, version, atMs, intent, traceparent, schema, codec, data } = stored
  return {
    source,
    id,
    type,
    subject: subject ?? null,
    key,
    epoch: place.epoch,
    number: place.number,
    version: version ?? null,
    at_ms: atMs,
    intent: intent ?? null,
    traceparent: traceparent ?? null,
    schema: schema ?? null,
    codec: codec ?? null,
    data,
  }
}

/** The place of a message, by its row. */
export function placeOf(row: Row): MessagePlace {
  return { epoch: Number(row['epoch']), number: Number(row['number']) }
}

function placeIn(epoch: unknown, number: unknown): MessagePlace | undefined {
  return Number(epoch) === 0 && Number(number) === 0 ? undefined : { epoch: Number(epoch), number: Number(number) }
}

/** The text in a column. */
export function textIn(cell: unknown): string | undefined {
  return typeof cell === 'string' ? cell : undefined
}
