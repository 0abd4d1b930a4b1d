// What every store must do for those who read its messages: each key in order, to one reader of a name at a time, and
// nothing lost.

import type { MessagePlace } from '../../../atomicity/index.js'
import type { ClaimedLane } from '../../../messaging/index.js'
import type { ConformanceCase } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { storeNowMs, until } from '../operations/operation-world.js'
import { limits } from '../record-world.js'
import { laneRaceCases } from './lane-race-cases.js'
import {
  claim,
  claimOne,
  emit,
  end,
  endAll,
  ended,
  idsOf,
  local,
  messageCase,
  other,
  patient,
  placeAt,
  register,
  relay,
} from './message-world.js'

/** Cases of the group `store.lane`. */
export const laneCases: readonly ConformanceCase[] = [
  messageCase(
    'store.lane.01',
    'MUST hand out the messages of a key in the order of their commits, as many as are wanted, each with its place',
    async ({ db }) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2')
      await emit(db, 'a', 'a3')
      await emit(db, 'b', 'b1')
      const { lanes } = await claim(db, relay, 'me', { perLane: 2 })
      same(idsOf(lanes), { a: ['a1', 'a2'], b: ['b1'] }, 'messages')
      const [a, b] = lanes as [ClaimedLane, ClaimedLane]
      const epoch = placeAt(a, 0).epoch
      same(
        [placeAt(a, 0), placeAt(a, 1)],
        [1, 2].map((number) => ({ epoch, number })),
        'places',
      )
      const { failures, claims, history, done, decision } = b
      same(
        [failures, claims, history, done, decision],
        [0, 1, '', undefined, undefined],
        'a lane that was never claimed',
      )
      const { source, type, data, version } = b.messages[0] as ClaimedLane['messages'][number]
      same([source, type, data, version], [db.messages.source, 'tested', '{"of":"b1"}', undefined], 'what was emitted')
    },
  ),
  messageCase(
    'store.lane.02',
    'MUST hand out a lane to nobody else while a claim holds, and say when the next one is due',
    async ({ db, second }) => {
      await register(db, relay)
      await emit(db, 'a', 'a1')
      same((await claim(db, relay, 'me')).lanes.length, 1, 'lanes')
      for (const domain of [db, await second()]) {
        const { lanes, nextDueMs } = await claim(domain, relay, 'you')
        same(lanes, [], 'lanes for another owner')
        holds(nextDueMs !== undefined && nextDueMs > 0 && nextDueMs <= 60_000, 'the lease is the next that is due')
      }
    },
  ),
  messageCase(
    'store.lane.03',
    'MUST let nobody end a claim after its lease if another one has the lane, and count claims that nobody ended',
    async ({ db }, messages) => {
      await register(db, relay)
      await emit(db, 'a', 'a1')
      const mine = await claimOne(db, relay, 'me', { leaseMs: 1 })
      let yours: ClaimedLane | undefined
      await until('the lease is over', async () => {
        yours = (await claim(db, relay, 'you')).lanes[0]
        return yours !== undefined
      })
      const lane = yours as ClaimedLane
      holds(lane.attempt > mine.attempt, 'the attempt grows')
      same([mine.claims, lane.claims], [1, 2], 'claims')
      const late = ended(relay, 'me', mine, placeAt(mine, 0))
      same(await messages.end([late], limits()), [false], 'the end of the one who was too slow')
      same(
        await messages.end([{ ...late, attempt: lane.attempt }], limits()),
        [false],
        'the same under the new attempt',
      )
      same(await messages.end([{ ...late, owner: 'you' }], limits()), [false], 'the new owner under the old attempt')
      same(
        await messages.extend({ reader: relay, key: 'a', owner: 'me', attempt: mine.attempt }, 1, limits()),
        false,
        'more time',
      )
      await endAll(db, relay, 'you', lane)
      same(await messages.end([ended(relay, 'you', lane, undefined)], limits()), [false], 'what has ended')
    },
  ),
  messageCase(
    'store.lane.04',
    'MUST tell a reader of all that was emitted before it was registered and after it, each reader for itself',
    async ({ db }) => {
      await emit(db, 'a', 'a1')
      await register(db, relay)
      await emit(db, 'a', 'a2')
      await emit(db, 'b', 'b1')
      const { lanes } = await claim(db, relay, 'me')
      same(idsOf(lanes), { a: ['a1', 'a2'], b: ['b1'] }, 'messages of the first reader')
      for (const lane of lanes) await endAll(db, relay, 'me', lane)
      await register(db, other, relay)
      same((await claim(db, relay, 'me')).lanes, [], 'lanes of one that has done all')
      same(idsOf((await claim(db, other, 'me')).lanes), { a: ['a1', 'a2'], b: ['b1'] }, 'messages of the second one')
    },
  ),
  messageCase(
    'store.lane.05',
    'MUST refuse to register a name as another kind of reader, or for another place to read',
    async ({ db }, messages) => {
      await register(db, relay, relay)
      for (const otherwise of [{ kind: 'consumer' }, { reads: 'inbox' }] as const) {
        await failing(messages.register({ ...relay, ...otherwise }, limits()), 'ARGUMENT_INVALID')
      }
      same(
        (await messages.readers(limits())).map(({ name, kind }) => [name, kind]),
        [['relay', 'relay']],
        'readers',
      )
    },
  ),
  messageCase(
    'store.lane.06',
    'MUST go on behind what is done: at once where there is more, and when something is emitted where there is not',
    async ({ db }) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2', 'a3')
      const first = await claimOne(db, relay, 'me')
      await end(db, ended(relay, 'me', first, placeAt(first, 0)))
      const second = await claimOne(db, relay, 'me')
      same([idsOf([second]), second.done, second.claims], [{ a: ['a2', 'a3'] }, placeAt(first, 0), 1], 'the rest')
      await emit(db, 'a', 'a4')
      await endAll(db, relay, 'me', second)
      const third = await claimOne(db, relay, 'me')
      same(idsOf([third]), { a: ['a4'] }, 'what was emitted while the lane was claimed')
      // Nothing done is nothing lost, and what is done stays done.
      await end(db, ended(relay, 'me', third, undefined))
      const fourth = await claimOne(db, relay, 'me')
      await end(db, ended(relay, 'me', fourth, placeAt(first, 0)))
      const fifth = await claimOne(db, relay, 'me')
      same([idsOf([fourth]), idsOf([fifth])], [{ a: ['a4'] }, { a: ['a4'] }], 'after ends that did nothing')
      await endAll(db, relay, 'me', fifth)
      same(await claim(db, relay, 'me'), { lanes: [], nextDueMs: undefined }, 'an idle lane')
      await emit(db, 'a', 'a5')
      same(idsOf([await claimOne(db, relay, 'me')]), { a: ['a5'] }, 'what was emitted to an idle lane')
    },
  ),
  messageCase(
    'store.lane.07',
    'MUST let a lane rest for as long as is said, with its failures and history, and forget both when it is free',
    async ({ db }) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2')
      const first = await claimOne(db, relay, 'me')
      const rest = { is: 'rest', forMs: 60_000, failures: 2, history: '[{"code":"A"}]' } as const
      await end(db, ended(relay, 'me', first, undefined, rest))
      await emit(db, 'a', 'a3')
      const { lanes, nextDueMs = 0 } = await claim(db, relay, 'me')
      same(lanes, [], 'lanes while it rests, whatever is emitted')
      holds(nextDueMs > 0 && nextDueMs <= 60_000, 'the end of its rest is the next that is due')
      await emit(db, 'b', 'b1')
      const b = await claimOne(db, relay, 'me')
      await end(db, ended(relay, 'me', b, undefined, { ...rest, forMs: 0 }))
      const again = await claimOne(db, relay, 'me')
      same([again.key, again.failures, again.history, again.claims], ['b', 2, '[{"code":"A"}]', 1], 'what it was told')
      await end(db, ended(relay, 'me', again, undefined))
      const free = await claimOne(db, relay, 'me')
      same([free.failures, free.history], [0, ''], 'what it was told, after it was free')
    },
  ),
  messageCase(
    'store.lane.08',
    'MUST let a claim go on behind a message, as a new claim of what comes next with what is said of it, and make it longer',
    async ({ db }, messages) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2')
      const mine = await claimOne(db, relay, 'me')
      const hold = { is: 'hold', forMs: 60_000, failures: 0, history: '' } as const
      await end(db, ended(relay, 'me', mine, placeAt(mine, 0), hold))
      const told = { ...hold, failures: 3, history: '[{"what":"alone"}]' }
      await end(db, ended(relay, 'me', mine, undefined, told))
      same((await claim(db, relay, 'you')).lanes, [], 'lanes for another owner')
      const mineStill = { reader: relay, key: 'a', owner: 'me', attempt: mine.attempt }
      same(await messages.extend(mineStill, 1, limits()), true, 'the claim is its own')
      let yours: ClaimedLane | undefined
      await until('the lease is over', async () => {
        yours = (await claim(db, relay, 'you')).lanes[0]
        return yours !== undefined
      })
      const lane = yours as ClaimedLane
      same([idsOf([lane]), lane.claims], [{ a: ['a2'] }, 2], 'what the next one gets')
      same([lane.failures, lane.history], [told.failures, told.history], 'what was said while the claim went on')
      same(await messages.extend(mineStill, 60_000, limits()), false, 'more time for the one before')
    },
  ),
  messageCase(
    'store.lane.09',
    'MUST end a lane in the transaction that has the effect, with it or not at all, and only for its owner',
    async (world, messages) => {
      const { db, effect, effectsOf } = world
      await register(db, local)
      await emit(db, 'a', 'a1')
      const mine = await claimOne(db, local, 'me')
      const mineEnd = ended(local, 'me', mine, placeAt(mine, 0))
      const own = new Error('of the body')
      const failed = db.transact(async (tx) => {
        await effect(tx, 'a1')
        same(await messages.endIn(tx, mineEnd), true, 'the end that is rolled back')
        throw own
      }, patient)
      holds((await failing(failed)) === own, 'the error is the one that the body threw')
      const wrong = await db.transact((tx) => messages.endIn(tx, { ...mineEnd, owner: 'you' }), patient)
      const right = await db.transact(async (tx) => {
        await effect(tx, 'a1')
        return messages.endIn(tx, mineEnd)
      }, patient)
      same([wrong, right, await effectsOf('a1')], [false, true, 1], 'ends, effects')
      same((await claim(db, local, 'me')).lanes, [], 'lanes that are left')
    },
  ),
  messageCase(
    'store.lane.10',
    'MUST end several lanes in one call, and say of each in its place whether it was written',
    async ({ db }, messages) => {
      await register(db, relay)
      for (const key of ['c', 'a', 'b']) await emit(db, key, `${key}1`)
      const { lanes } = await claim(db, relay, 'me')
      const ends = lanes.map((lane) => ended(relay, 'me', lane, placeAt(lane, 0)))
      const stale = ends.map((one) => (one.key === 'a' ? { ...one, attempt: 7 } : one))
      same(
        await messages.end(stale, limits()),
        ends.map(({ key }) => key !== 'a'),
        'what was written',
      )
      const a = ends.filter(({ key }) => key === 'a')
      same([await messages.end(a, limits()), await messages.end([], limits())], [[true], []], 'the one that was left')
    },
  ),
  messageCase(
    'store.lane.11',
    'MUST claim those first that have waited longest, no more than are wanted, or the one that is named',
    async (world) => {
      const { db } = world
      await register(db, relay)
      for (const key of ['c', 'a', 'b']) {
        await emit(db, key, `${key}1`)
        const nowMs = await storeNowMs(world)
        await until('a new ms', async () => (await storeNowMs(world)) > nowMs)
      }
      const first = await claim(db, relay, 'me', { lanes: 1 })
      same([Object.keys(idsOf(first.lanes)), first.nextDueMs], [['c'], 0], 'the first')
      same(Object.keys(idsOf((await claim(db, relay, 'me', { key: 'b' })).lanes)), ['b'], 'the one that is named')
      same((await claim(db, relay, 'me', { key: 'c' })).lanes, [], 'one that is named, and claimed already')
      same(Object.keys(idsOf((await claim(db, relay, 'me', { lanes: 5 })).lanes)), ['a'], 'the rest')
    },
  ),
  messageCase(
    'store.lane.12',
    'MUST hold back a delayed message, also from a reader that is registered after it, and nothing else with it',
    async ({ db }) => {
      await register(db, relay)
      await db.transact((tx) => tx.emit({ type: 'tested', subject: 's', id: 'late', data: 1, after: '1h' }))
      await db.transact((tx) => tx.emit({ type: 'tested', subject: 's', id: 'soon', data: 2 }))
      await register(db, other)
      for (const reader of [relay, other]) {
        const { lanes, nextDueMs = 0 } = await claim(db, reader, 'me')
        same(Object.values(idsOf(lanes)), [['soon']], `messages of ${reader.name}`)
        holds(nextDueMs > 3_500_000 && nextDueMs <= 3_600_000, `the delayed one is due later for ${reader.name}`)
      }
    },
  ),
  messageCase(
    'store.lane.13',
    'MUST never hand out a lane without a message, and wake it when there is one',
    async ({ db }, messages) => {
      await register(db, relay)
      await emit(db, 'a', 'a1')
      await endAll(db, relay, 'me', await claimOne(db, relay, 'me'))
      await until('the message is forgotten', async () => {
        const forever = { processedAfterMs: undefined, headsAfterMs: undefined, lettersAfterMs: undefined }
        return (await messages.purge({ sentAfterMs: 0, limit: 10, ...forever }, limits())).messages === 1
      })
      // Its key is known, and nothing is behind it.
      await register(db, other)
      same(await claim(db, other, 'me'), { lanes: [], nextDueMs: undefined }, 'a lane whose messages are gone')
      await emit(db, 'a', 'a2')
      for (const reader of [relay, other])
        same(idsOf([await claimOne(db, reader, 'me')]), { a: ['a2'] }, 'the next one')
    },
  ),
  messageCase(
    'store.lane.14',
    'MUST begin a new epoch under every key when asked, with number 1, behind all that was there',
    async ({ db }, messages) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2')
      same(await messages.newEpochs(limits()), 1, 'keys')
      await emit(db, 'a', 'a3')
      await register(db, other)
      for (const reader of [relay, other]) {
        const read: ClaimedLane['messages'][number][] = []
        // One claim may end at the end of an epoch.
        for (let rounds = 0; read.length < 3; rounds += 1) {
          holds(rounds < 3, 'all messages in three claims')
          const lane = await claimOne(db, reader, 'me')
          read.push(...lane.messages)
          await endAll(db, reader, 'me', lane)
        }
        same(
          read.map(({ id }) => id),
          ['a1', 'a2', 'a3'],
          'messages',
        )
        const [, before, after] = read.map(({ place }) => place) as [MessagePlace, MessagePlace, MessagePlace]
        holds(after.epoch > before.epoch && after.number === 1, 'the new epoch is higher, and begins at 1')
        same(await claim(db, reader, 'me'), { lanes: [], nextDueMs: undefined }, 'what is left')
      }
    },
  ),
  ...laneRaceCases,
]
