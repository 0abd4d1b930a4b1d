// Messages from brokers in memory: what one that arrives is, and where one that failed waits.

import type { Match, MessagePlace } from '../../../atomicity/index.js'
import {
  type Arrival,
  type ArrivalFacts,
  type ArrivalLane,
  type Arrived,
  arrivalOf,
  type LaneEnd,
  placeBehind,
} from '../../../messaging/index.js'
import type { Views } from '../tables.js'
import { openLetter } from './letter-rows.js'
import {
  comparePlaces,
  contentRow,
  type LaneRow,
  laneOf,
  laneState,
  messagesBehind,
  newLane,
  oneOf,
  textIn,
} from './rows.js'
import { messageTables } from './tables.js'

const { lane: lanes, inbox, processed } = messageTables

/** Says what a message is, and writes what follows from that. */
export function arrive(views: Views, arrival: Arrival, gapMs: number, nowMs: number): Arrived {
  const { reader, message, fingerprint } = arrival
  const lane = laneOf(views, reader.name, message.key)
  const step = arrivalOf(arrival, laneFacts(views, arrival, lane), messageFacts(views, arrival))
  if (step.is === 'new') {
    const { source, id } = message
    views.view(processed).insert({ reader: reader.name, source, id, fingerprint, at_ms: nowMs })
    if (step.done !== undefined) advance(views, arrival, lane, step.done, nowMs)
  } else if (step.is === 'gap' || (step.is === 'stored' && step.place !== undefined)) {
    store(views, arrival, step.place as MessagePlace, nowMs)
    if (lane === undefined || lane.state === laneState.idle) {
      setLane(views, arrival, { state: laneState.waiting, due_at_ms: nowMs + gapMs })
    }
  }
  if (step.is === 'gap') return { is: 'gap', expected: step.expected }
  return step.is === 'outdated' ? step : { is: step.is }
}

/** Puts a message that could not be handled into the inbox. */
export function keep(
  views: Views,
  arrival: Arrival,
  then: Extract<LaneEnd['then'], { readonly is: 'rest' | 'park' }>,
  nowMs: number,
): void {
  const { reader, message } = arrival
  const lane = laneOf(views, reader.name, message.key)
  const { processed: handled, stored, isTaken } = messageFacts(views, arrival)
  // Somebody else has handled it since, or keeps it, or another one is at its place.
  if (handled !== undefined || stored !== undefined || isTaken) return
  const own = ownPlace(arrival)
  const place = own ?? placeBehind(lane?.known)
  const { first } = laneFacts(views, arrival, lane)
  store(views, arrival, place, nowMs)
  // Behind another one it waits for its turn, and fails then.
  if (first !== undefined && comparePlaces(first, place) < 0) return
  if (then.is === 'park') {
    openLetter(views, reader, { ...then.letter, message: { ...then.letter.message, place } }, true, nowMs)
    setLane(views, arrival, { state: laneState.parked, ...unclaimed(lane) })
  } else {
    const { forMs, failures, history } = then
    const rest = { due_at_ms: nowMs + forMs, failures, history }
    setLane(views, arrival, { state: laneState.waiting, ...unclaimed(lane), ...rest })
  }
}

// What has a claim on the lane loses it: the first message is another one now.
function unclaimed(lane: LaneRow | undefined): Match {
  return { owner: null, attempt: (lane?.attempt ?? 0) + 1, claims: 0, failures: 0, history: '' }
}

function advance(views: Views, arrival: Arrival, lane: LaneRow | undefined, done: MessagePlace, nowMs: number): void {
  const isWaiting = lane?.state === laneState.waiting
  const ahead = lane?.known !== undefined && comparePlaces(lane.known, done) > 0 ? lane.known : done
  setLane(views, arrival, {
    epoch: done.epoch,
    number: done.number,
    known_epoch: ahead.epoch,
    known_number: ahead.number,
    // Of a lane that stays idle it is when it came this far.
    due_at_ms: nowMs,
    ...(isWaiting && unclaimed(lane)),
  })
}

function store(views: Views, arrival: Arrival, place: MessagePlace, nowMs: number): void {
  const { reader, message, stored, fingerprint } = arrival
  const content = contentRow({ ...message, ...stored, place })
  views.view(inbox).insert({ reader: reader.name, fingerprint, ...content })
  const lane = laneOf(views, reader.name, message.key)
  const fillsHole = lane?.known !== undefined && comparePlaces(lane.known, place) >= 0
  if (!fillsHole) setLane(views, arrival, { known_epoch: place.epoch, known_number: place.number })
  // Whoever has claimed the lane does not know of it, and would wait for what is there: the claim is over, and not
  // because its owner died.
  else if (lane.owner !== undefined) {
    setLane(views, arrival, { owner: null, attempt: lane.attempt + 1, claims: 0, due_at_ms: nowMs })
  }
}

function setLane(views: Views, { reader, message }: Arrival, set: Match): void {
  const table = views.view(lanes)
  const there = laneOf(views, reader.name, message.key)
  if (there === undefined) table.insert({ ...newLane(reader.name, message.key), ...set })
  else table.update(there.id, set)
}

function laneFacts(views: Views, { reader, message }: Arrival, lane: LaneRow | undefined): ArrivalLane {
  const { done, known } = lane ?? { done: undefined, known: undefined }
  const isIdle = lane === undefined || lane.state === laneState.idle
  const [first] = isIdle ? [] : messagesBehind(views, { key: message.key, inboxOf: reader.name }, done, 1)
  return { done, known, first: first?.place }
}

function messageFacts(views: Views, arrival: Arrival): ArrivalFacts {
  const { reader, message } = arrival
  const who = { reader: reader.name, source: message.source, id: message.id }
  const own = ownPlace(arrival)
  const isThere = (place: MessagePlace): boolean =>
    oneOf(views.view(inbox), { reader: reader.name, key: message.key, ...place }) !== undefined
  return {
    processed: textIn(oneOf(views.view(processed), who)?.['fingerprint']),
    stored: textIn(oneOf(views.view(inbox), who)?.['fingerprint']),
    isTaken: own !== undefined && isThere(own),
    follows: own !== undefined && isThere({ ...own, number: own.number - 1 }),
  }
}

function ownPlace({ order, message }: Arrival): MessagePlace | undefined {
  return order === 'gapless' ? message.place : undefined
}
