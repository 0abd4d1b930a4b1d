// The lanes of readers in memory. Whoever writes is alone, so that nothing has to be locked.

import type { Match, MessagePlace, RecordLimits, Row } from '../../../atomicity/index.js'
import { defined, RepriseError } from '../../../kernel/index.js'
import type { ClaimedLane, ClaimedLanes, LaneEnd, LaneQuery, LaneStore, Reader } from '../../../messaging/index.js'
import type { MemoryEngine } from '../engine.js'
import type { MemoryHandle, MemoryTransaction } from '../handle.js'
import type { Views } from '../tables.js'
import { arrive, keep } from './arrivals.js'
import { closeLetters, decisionAbout, openLetter } from './letter-rows.js'
import {
  allOf,
  comparePlaces,
  type LaneRow,
  laneOf,
  laneRow,
  laneState,
  messagesBehind,
  oneOf,
  placeOf,
  tellLane,
  textIn,
} from './rows.js'
import { messageTables } from './tables.js'

const { head, reader: readers, lane: lanes, inbox, processed } = messageTables
const keysPerPage = 1_000

/** The lanes of a store. */
export function lanesOf(engine: MemoryEngine): LaneStore<MemoryTransaction> {
  const nowMs = (): number => engine.records.nowMs()
  const alone = <Result>(limits: RecordLimits, work: (views: Views) => Result): Promise<Result> =>
    engine.alone(limits, work)
  const within = <Result>(tx: MemoryTransaction, work: (views: Views) => Result): Promise<Result> =>
    (tx as MemoryHandle).within(work)
  return {
    register: (reader, limits) => alone(limits, (views) => register(views, reader, nowMs())),
    claim: (query, limits) => alone(limits, (views) => claim(views, query, nowMs())),
    end: (ends, limits) => alone(limits, (views) => ends.map((one) => end(views, one, nowMs()))),
    extend: (claimed, leaseMs, limits) =>
      alone(limits, (views) => {
        const lane = ownLane(views, claimed)
        if (lane !== undefined) views.view(lanes).update(lane.id, { due_at_ms: nowMs() + leaseMs })
        return lane !== undefined
      }),
    endIn: (tx, one) => within(tx, (views) => end(views, one, nowMs())),
    arrive: (tx, arrival, gapMs) => within(tx, (views) => arrive(views, arrival, gapMs, nowMs())),
    bury: (tx, reader, letter) => within(tx, (views) => openLetter(views, reader, letter, false, nowMs())),
    keep: (tx, arrival, then) => within(tx, (views) => keep(views, arrival, then, nowMs())),
  }
}

function register(views: Views, { name, kind, reads, memoryMs }: Reader, nowMs: number): boolean {
  const table = views.view(readers)
  const there = oneOf(table, { name })
  if (there !== undefined && (there['kind'] !== kind || there['reads'] !== reads)) {
    const message = 'A reader of this name is there already, and is of another kind, or reads elsewhere.'
    throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'name' } })
  }
  if (there === undefined) table.insert({ name, kind, reads, told_to: '', at_ms: nowMs, memory_ms: memoryMs ?? 0 })
  const told = textIn(there?.['told_to'] ?? '') ?? ''
  const page = reads === 'inbox' ? [] : headsAfter(views, told)
  for (const row of page.slice(0, keysPerPage)) tellOfHead(views, name, row, nowMs)
  const isLast = page.length <= keysPerPage
  const toldTo = isLast ? null : String(page[keysPerPage - 1]?.['key'])
  for (const id of table.find({ name }))
    table.update(id, { told_to: toldTo, at_ms: nowMs, ...defined({ memory_ms: memoryMs }) })
  return isLast
}

// One more than a page, where there are more.
function headsAfter(views: Views, key: string): readonly Row[] {
  return allOf(views.view(head), {})
    .filter((row) => String(row['key']) > key)
    .sort((a, b) => (String(a['key']) < String(b['key']) ? -1 : 1))
    .slice(0, keysPerPage + 1)
}

function tellOfHead(views: Views, reader: string, row: Row, nowMs: number): void {
  const key = String(row['key'])
  const lane = laneOf(views, reader, key)
  if (lane !== undefined && lane.state !== laneState.idle) return
  if (messagesBehind(views, { key, inboxOf: undefined }, lane?.done, 1).length === 0) return
  tellLane(views, reader, key, placeOf(row), Math.max(nowMs, Number(row['at_ms'])))
}

function claim(views: Views, query: LaneQuery, nowMs: number): ClaimedLanes {
  const { reader, key, lanes: most } = query
  const table = views.view(lanes)
  const waiting = table
    .find({ reader: reader.name, state: laneState.waiting })
    .map((id) => laneRow(id, table.row(id) as Row))
    .filter((lane) => key === undefined || lane.key === key)
    .sort((a, b) => a.dueAtMs - b.dueAtMs || (a.key < b.key ? -1 : 1))
  const claimed: ClaimedLane[] = []
  let nextDueMs: number | undefined
  for (const lane of waiting) {
    if (lane.dueAtMs > nowMs || claimed.length === most) {
      nextDueMs = Math.max(0, lane.dueAtMs - nowMs)
      break
    }
    const taken = take(views, lane, query, nowMs)
    if (taken !== undefined) claimed.push(taken)
  }
  return { lanes: claimed, nextDueMs }
}

function take(views: Views, lane: LaneRow, query: LaneQuery, nowMs: number): ClaimedLane | undefined {
  const { reader, owner, leaseMs, perLane } = query
  const { key, done, failures, history } = lane
  const messages = messagesBehind(views, { key, inboxOf: inboxOf(reader) }, done, perLane)
  const [first] = messages
  if (first === undefined) {
    views.view(lanes).update(lane.id, { state: laneState.idle, owner: null, claims: 0 })
    return undefined
  }
  const attempt = lane.attempt + 1
  const claims = lane.claims + 1
  views.view(lanes).update(lane.id, { owner, attempt, claims, due_at_ms: nowMs + leaseMs })
  const decision = decisionAbout(views, reader.name, first)
  return { key, attempt, claims, failures, history, done, messages, decision }
}

function end(views: Views, given: LaneEnd, nowMs: number): boolean {
  const lane = ownLane(views, given)
  if (lane === undefined) return false
  const { reader, key, then } = given
  const done = given.done === undefined || isBefore(given.done, lane.done) ? lane.done : given.done
  if (given.done !== undefined) finish(views, reader, key, given.done, nowMs)
  const unclaimed = { ...doneColumns(done), owner: null, claims: 0, failures: 0, history: '' }
  const table = views.view(lanes)
  if (then.is === 'hold') {
    const { forMs, failures, history } = then
    // A new claim of what comes next, which is counted if its owner dies.
    const held = { ...unclaimed, owner: given.owner, claims: 1, failures, history }
    table.update(lane.id, { ...held, due_at_ms: nowMs + forMs })
  } else if (then.is === 'rest') {
    const { forMs, failures, history } = then
    table.update(lane.id, { ...unclaimed, failures, history, due_at_ms: nowMs + forMs })
  } else if (then.is === 'park') {
    openLetter(views, reader, then.letter, true, nowMs)
    table.update(lane.id, { ...unclaimed, state: laneState.parked })
  } else {
    const isLast = messagesBehind(views, { key, inboxOf: inboxOf(reader) }, done, 1).length === 0
    const state = isLast ? laneState.idle : laneState.waiting
    table.update(lane.id, { ...unclaimed, state, due_at_ms: nowMs })
  }
  return true
}

/** What follows when a lane has come to a place: letters are closed, and what was in the inbox is processed. */
export function finish(views: Views, reader: Reader, key: string, done: MessagePlace, nowMs: number): void {
  closeLetters(views, reader.name, key, done, nowMs)
  if (reader.reads !== 'inbox') return
  const table = views.view(inbox)
  for (const row of allOf(table, { reader: reader.name, key })) {
    if (comparePlaces(placeOf(row), done) > 0) continue
    markProcessed(views, reader.name, row, nowMs)
    table.remove(row.rowId)
  }
}

/** Writes the processed row of a message of the inbox. */
export function markProcessed(views: Views, reader: string, row: Row, nowMs: number): void {
  const source = String(row['source'])
  const id = String(row['id'])
  const fingerprint = String(row['fingerprint'])
  const table = views.view(processed)
  const there = oneOf(table, { reader, source, id })
  if (there === undefined) table.insert({ reader, source, id, fingerprint, at_ms: nowMs })
  else table.update(there.rowId, { at_ms: nowMs })
}

function ownLane(views: Views, claimed: Pick<LaneEnd, 'reader' | 'key' | 'owner' | 'attempt'>): LaneRow | undefined {
  const lane = laneOf(views, claimed.reader.name, claimed.key)
  return lane?.owner === claimed.owner && lane.attempt === claimed.attempt ? lane : undefined
}

function inboxOf({ name, reads }: Reader): string | undefined {
  return reads === 'inbox' ? name : undefined
}

function isBefore(place: MessagePlace, other: MessagePlace | undefined): boolean {
  return other !== undefined && comparePlaces(place, other) < 0
}

function doneColumns(done: MessagePlace | undefined): Match {
  return { epoch: done?.epoch ?? 0, number: done?.number ?? 0 }
}
