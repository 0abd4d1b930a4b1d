// Dead letters in memory, what people decide about them, and what is forgotten.

import type { MessagePlace, RecordLimits, Row } from '../../../atomicity/index.js'
import { demandWhole, RepriseError } from '../../../kernel/index.js'
import type {
  DeadLetter,
  Decided,
  LetterGroup,
  LetterQuery,
  LetterStore,
  Reader,
  ReaderState,
  WhichLetter,
} from '../../../messaging/index.js'
import type { MemoryEngine } from '../engine.js'
import type { Views } from '../tables.js'
import { finish, markProcessed } from './lanes.js'
import { closeLetter, letterIn } from './letter-rows.js'
import { purge } from './purge.js'
import {
  allOf,
  comparePlaces,
  contentRow,
  type LaneRow,
  laneOf,
  laneState,
  messageOf,
  messagesBehind,
  newLane,
  oneOf,
  placeOf,
} from './rows.js'
import { messageTables } from './tables.js'
import { causedBy, traced } from './traces.js'

const { head, reader: readers, lane: lanes, processed, inbox, deadLetter, message: messages } = messageTables

type LetterRow = Row & { readonly rowId: number }

/** The dead letters of a store, and its upkeep. */
export function lettersOf(engine: MemoryEngine): LetterStore {
  const nowMs = (): number => engine.records.nowMs()
  const alone = <Result>(limits: RecordLimits, work: (views: Views) => Result): Promise<Result> =>
    engine.alone(limits, work)
  return {
    letters: (query, limits) => alone(limits, (views) => listed(views, query)),
    letter: (which, limits) =>
      alone(limits, (views) => {
        const row = letterRow(views, which)
        return row && letterIn(row)
      }),
    groups: (limits) => alone(limits, grouped),
    caused: (query, limits) => alone(limits, (views) => causedBy(views, query)),
    trace: (message, limits) => alone(limits, (views) => traced(views, message)),
    decide: (which, decided, limits) => alone(limits, (views) => decideLetter(views, which, decided, nowMs())),
    readers: (limits) => alone(limits, (views) => states(views, nowMs())),
    forget: (reader, limits) => alone(limits, (views) => forget(views, reader)),
    newEpochs: (limits) =>
      alone(limits, (views) => {
        const ids = views.view(head).find({})
        for (const id of ids) views.view(head).update(id, { epoch: engine.records.nextFence(), number: 0 })
        return ids.length
      }),
    purge: (query, limits) => alone(limits, (views) => purge(views, query, nowMs())),
  }
}

function letterRow(views: Views, { reader, source, id }: WhichLetter): LetterRow | undefined {
  return oneOf(views.view(deadLetter), { reader, source, id })
}

function listed(views: Views, { reader, key, code, state, limit }: LetterQuery): readonly DeadLetter[] {
  demandWhole(limit, 1, 1_000, (why) => new RepriseError('ARGUMENT_INVALID', `The limit of letters: ${why}`))
  return allOf(views.view(deadLetter), {})
    .map(letterIn)
    .filter(
      (letter) =>
        (reader === undefined || letter.reader === reader) &&
        (key === undefined || letter.message.key === key) &&
        (code === undefined || letter.code === code) &&
        (state === undefined ? letter.state !== 'closed' : letter.state === state),
    )
    .sort((a, b) => a.firstAtMs - b.firstAtMs || comparePlaces(a.message.place, b.message.place))
    .slice(0, limit)
}

function grouped(views: Views): readonly LetterGroup[] {
  const groups = new Map<string, LetterGroup>()
  for (const { reader, code, state, firstAtMs } of allOf(views.view(deadLetter), {}).map(letterIn)) {
    if (state === 'closed') continue
    const name = JSON.stringify([reader, code])
    const { letters, oldestMs, newestMs } = groups.get(name) ?? { letters: 0, oldestMs: firstAtMs, newestMs: firstAtMs }
    groups.set(name, {
      reader,
      code,
      letters: letters + 1,
      oldestMs: Math.min(oldestMs, firstAtMs),
      newestMs: Math.max(newestMs, firstAtMs),
    })
  }
  return [...groups.values()].sort((a, b) => b.letters - a.letters)
}

function decideLetter(views: Views, which: WhichLetter, decided: Decided, nowMs: number): boolean {
  const row = letterRow(views, which)
  if (row?.['state'] !== 'open') return false
  const { decision, actor, reason, inMs } = decided
  views.view(deadLetter).update(row.rowId, { note: JSON.stringify({ actor, reason, decision: decision.is }) })
  if (row['kind'] === 'consumer' && decision.is === 'discard') {
    discardNow(views, row, nowMs)
    return true
  }
  const state = decision.is === 'discard' ? 'discarding' : 'redriving'
  const { key, place } = row['parks'] === 1 ? messageOf(row) : aside(row)
  const under = { parks: 1, key, ...place }
  views.view(deadLetter).update(row.rowId, { state, decision: JSON.stringify(decision), last_at_ms: nowMs, ...under })
  const again = { state: laneState.waiting, due_at_ms: nowMs + inMs, owner: null, claims: 0, failures: 0, history: '' }
  const lane = laneOf(views, which.reader, key)
  const known = { known_epoch: place.epoch, known_number: place.number }
  if (lane === undefined) views.view(lanes).insert({ ...newLane(which.reader, key), ...known, ...again })
  else if (lane.state === laneState.parked) views.view(lanes).update(lane.id, again)
  bringBack(views, { ...row, ...under })
  return true
}

// What held nobody is in no lane any more. It comes back in one of its own, and holds nobody there either.
function aside(row: LetterRow): { readonly key: string; readonly place: MessagePlace } {
  const { key, id } = messageOf(row)
  return { key: `${key}#${id}`, place: { epoch: 0, number: 1 } }
}

// Into the inbox, where it is not there yet. Where a consumer reads is not known while it is forgotten: if it reads the
// outbox when it comes back, it finds the message there, and never looks into the inbox.
function bringBack(views: Views, row: LetterRow): void {
  const reader = String(row['reader'])
  const message = messageOf(row)
  const who = { reader, source: message.source, id: message.id }
  const reads = oneOf(views.view(readers), { name: reader })?.['reads'] ?? 'inbox'
  if (row['kind'] !== 'consumer' || reads !== 'inbox' || oneOf(views.view(inbox), who) !== undefined) return
  const fingerprint = oneOf(views.view(processed), who)?.['fingerprint'] ?? ''
  views.view(inbox).insert({ reader, fingerprint, ...contentRow(message) })
}

// A consumer's discard: its lane goes on behind the message, and it does not come back.
function discardNow(views: Views, row: LetterRow, nowMs: number): void {
  const reader = String(row['reader'])
  const key = String(row['key'])
  const { source, id } = messageOf(row)
  const reads = oneOf(views.view(readers), { name: reader })?.['reads'] === 'inbox' ? 'inbox' : 'outbox'
  const lane = laneOf(views, reader, key)
  const stored = oneOf(views.view(inbox), { reader, source, id })
  if (row['parks'] === 1 && lane !== undefined) {
    const place = placeOf(row)
    finish(views, { name: reader, kind: 'consumer', reads }, key, place, nowMs)
    const isLast =
      messagesBehind(views, { key, inboxOf: reads === 'inbox' ? reader : undefined }, place, 1).length === 0
    const state = isLast ? laneState.idle : laneState.waiting
    views.view(lanes).update(lane.id, { ...place, state, due_at_ms: nowMs, owner: null, claims: 0 })
  }
  markProcessed(views, reader, { source, id, fingerprint: stored?.['fingerprint'] ?? '' }, nowMs)
  closeLetter(views, row.rowId, nowMs)
}

function states(views: Views, nowMs: number): readonly ReaderState[] {
  return allOf(views.view(readers), {}).map((row) => {
    const name = String(row['name'])
    const isInbox = row['reads'] === 'inbox'
    const open = (['waiting', 'parked'] as const).flatMap((state) =>
      allOf(views.view(lanes), { reader: name, state: laneState[state] }).map(
        (lane) => laneOf(views, name, String(lane['key'])) as LaneRow,
      ),
    )
    const behind = open
      .map((lane) => ({ lane, all: waitingIn(views, lane, isInbox) }))
      .filter(({ all }) => all.length > 0)
    const times = behind.flatMap(({ all }) => all.map((message) => Number(message['at_ms'])))
    return {
      name,
      kind: row['kind'] as Reader['kind'],
      behind: behind.length,
      depth: times.length,
      oldestMs: times.length === 0 ? undefined : nowMs - times.reduce((a, b) => Math.min(a, b)),
      parked: open.filter(({ state }) => state === laneState.parked).length,
      letters: allOf(views.view(deadLetter), { reader: name, state: 'open' }).length,
    }
  })
}

function waitingIn(views: Views, { reader, key, done }: LaneRow, isInbox: boolean): readonly Row[] {
  const all = isInbox ? allOf(views.view(inbox), { reader, key }) : allOf(views.view(messages), { key })
  return all.filter((row) => done === undefined || comparePlaces(placeOf(row), done) > 0)
}

function forget(views: Views, reader: string): boolean {
  const there = views.view(readers).find({ name: reader })
  for (const id of there) views.view(readers).remove(id)
  for (const table of [lanes, inbox, processed]) {
    for (const id of views.view(table).find({ reader })) views.view(table).remove(id)
  }
  // What was decided cannot be carried out any more.
  for (const state of ['redriving', 'discarding']) {
    for (const id of views.view(deadLetter).find({ reader, state })) {
      views.view(deadLetter).update(id, { state: 'open', decision: null })
    }
  }
  return there.length > 0
}
