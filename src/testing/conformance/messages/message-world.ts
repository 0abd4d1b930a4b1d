// What the cases of messages share: readers, messages that are emitted, and what is done with lanes.

import type { Manifest, MessagePlace } from '../../../atomicity/index.js'
import type {
  Arrival,
  Arrived,
  ClaimedLane,
  ClaimedLanes,
  LaneEnd,
  LaneQuery,
  LaneStore,
  LetterDraft,
  LetterStore,
  Reader,
} from '../../../messaging/index.js'
import type { ConformanceCase, ConformanceDomain, ConformanceHandle, StoreWorld } from '../conformance-case.js'
import { ConformanceFailure, holds, same } from '../expectations.js'
import { limits } from '../record-world.js'

/** A relay. */
export const relay: Reader = { name: 'relay', kind: 'relay', reads: 'outbox' }
/** A second relay. */
export const other: Reader = { name: 'other', kind: 'relay', reads: 'outbox' }
/** A consumer of the outbox. */
export const local: Reader = { name: 'local', kind: 'consumer', reads: 'outbox' }
/** A consumer of what came from a broker. */
export const inbox: Reader = { name: 'inbox', kind: 'consumer', reads: 'inbox' }

/** Time enough for transactions that wait for each other. */
export const patient = { connectionWait: '30s', lockWait: '30s', deadline: '60s' } as const

/** The lanes and letters of a domain. */
export function messagesOf(db: ConformanceDomain): LaneStore<ConformanceHandle> & LetterStore {
  const { messages } = db
  if (!('claim' in messages)) throw new ConformanceFailure('its manifest does not deny lanes, and it has none')
  return messages as unknown as LaneStore<ConformanceHandle> & LetterStore
}

/** A case that needs lanes. */
export function messageCase(
  id: string,
  title: string,
  run: (world: StoreWorld, messages: LaneStore<ConformanceHandle> & LetterStore) => Promise<void>,
): ConformanceCase {
  return {
    id,
    title,
    deniedBy: ({ lanes = true, because }: Manifest) => (lanes ? undefined : (because.lanes ?? 'it has no lanes')),
    run: (world) => run(world, messagesOf(world.db)),
    // Nobody can ask for what is not there.
    refusal: async ({ db }) => holds(!('claim' in db.messages), 'it has no lanes'),
  }
}

/** Emits messages under a key, in one transaction. Their ids are those given. */
export async function emit(db: ConformanceDomain, key: string, ...ids: readonly string[]): Promise<void> {
  await db.transact((tx) => tx.emit(ids.map((id) => ({ type: 'tested', key, id, data: { of: id } }))), patient)
}

/** Registers readers until they have been told of all. */
export async function register(db: ConformanceDomain, ...readers: readonly Reader[]): Promise<void> {
  for (const reader of readers)
    for (let rounds = 0; !(await messagesOf(db).register(reader, limits())); rounds += 1) {
      holds(rounds < 100, 'a reader is told of all keys')
    }
}

/** Claims up to 10 lanes for a minute, with up to 10 messages each. */
export function claim(
  db: ConformanceDomain,
  reader: Reader,
  owner: string,
  otherwise: Partial<LaneQuery> = {},
): Promise<ClaimedLanes> {
  const query = { reader, owner, leaseMs: 60_000, lanes: 10, perLane: 10, ...otherwise }
  return messagesOf(db).claim(query, limits())
}

/** The one lane that can be claimed. */
export async function claimOne(...values: Parameters<typeof claim>): Promise<ClaimedLane> {
  const { lanes } = await claim(...values)
  const [lane] = lanes
  if (lane === undefined || lanes.length > 1) throw new ConformanceFailure(`${lanes.length} lanes, and should be one`)
  return lane
}

/** The ids of the messages of lanes, by their keys. */
export function idsOf(lanes: readonly ClaimedLane[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(lanes.map(({ key, messages }) => [key, messages.map(({ id }) => id)]))
}

/** The place of a message of a lane, by its position. */
export function placeAt({ messages }: ClaimedLane, position: number): MessagePlace {
  const place = messages[position]?.place
  if (place === undefined) throw new ConformanceFailure(`a lane has no message ${position}`)
  return place
}

/** How a claim of an owner ends. */
export function ended(
  reader: Reader,
  owner: string,
  { key, attempt }: Pick<ClaimedLane, 'key' | 'attempt'>,
  done: MessagePlace | undefined,
  then: LaneEnd['then'] = { is: 'free' },
): LaneEnd {
  return { reader, key, owner, attempt, done, then }
}

/** Ends claims, and expects that all of them were the owner's. */
export async function end(db: ConformanceDomain, ...ends: readonly LaneEnd[]): Promise<void> {
  same(
    await messagesOf(db).end(ends, limits()),
    ends.map(() => true),
    'ends',
  )
}

/** Ends a lane behind all messages that were claimed. */
export function endAll(db: ConformanceDomain, reader: Reader, owner: string, lane: ClaimedLane): Promise<void> {
  return end(db, ended(reader, owner, lane, placeAt(lane, lane.messages.length - 1)))
}

/** A letter about a message of a lane. */
export function letterAbout(lane: ClaimedLane, position = 0, code = 'TESTED'): LetterDraft {
  const message = lane.messages[position]
  if (message === undefined) throw new ConformanceFailure(`a lane has no message ${position}`)
  return { message, code, reason: 'It was refused.', history: '[{"attempt":1}]' }
}

/** A message that comes from a broker. Without a number it has no place; the epoch is 3. */
export function arrivalOf(
  id: string,
  order: Arrival['order'],
  otherwise: {
    readonly key?: string
    readonly number?: number
    readonly epoch?: number
    readonly content?: string
  } = {},
): Arrival {
  const { key = 'k', number, epoch = 3, content = id } = otherwise
  const place = number === undefined ? undefined : { epoch, number }
  const none = { subject: undefined, version: undefined, intent: undefined, traceparent: undefined, schema: undefined }
  const message = { source: 'elsewhere', id, type: 'tested', key, place, atMs: 1, ...none } as Arrival['message']
  const stored = { codec: undefined, data: JSON.stringify(content) }
  return { reader: inbox, order, message, stored, fingerprint: `of ${content}` }
}

/** Lets a message arrive in a transaction of its own, with one effect of its id where it is new. */
export function arriving(world: StoreWorld, arrival: Arrival, gapMs = 60_000): Promise<Arrived> {
  return world.db.transact(async (tx) => {
    const arrived = await messagesOf(world.db).arrive(tx, arrival, gapMs)
    if (arrived.is === 'new') await world.effect(tx, arrival.message.id)
    return arrived
  }, patient)
}

/** Keeps a message that could not be handled. */
export function keeping(
  world: StoreWorld,
  arrival: Arrival,
  then: Parameters<LaneStore<ConformanceHandle>['keep']>[2] = { is: 'rest', forMs: 0, failures: 1, history: '[1]' },
): Promise<void> {
  return world.db.transact((tx) => messagesOf(world.db).keep(tx, arrival, then), patient)
}

/** A letter about a message that came from a broker. */
export function letterOfArrival({ message, stored }: Arrival, code = 'TESTED'): LetterDraft {
  const place = message.place ?? { epoch: 0, number: 1 }
  return { message: { ...message, ...stored, place }, code, reason: 'It failed.', history: '[]' }
}
