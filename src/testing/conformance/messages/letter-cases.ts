// What every store must do with dead letters, with what people decide about them, and with what is forgotten.

import type { ClaimedLane, Decided, LetterDecision, MessagePurgeQuery } from '../../../messaging/index.js'
import type { ConformanceCase, ConformanceDomain } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { storeNowMs, until } from '../operations/operation-world.js'
import { limits } from '../record-world.js'
import {
  arrivalOf,
  arriving,
  claim,
  claimOne,
  emit,
  end,
  endAll,
  ended,
  idsOf,
  inbox,
  keeping,
  letterAbout,
  letterOfArrival,
  local,
  messageCase,
  messagesOf,
  other,
  placeAt,
  register,
  relay,
} from './message-world.js'

const nothing: MessagePurgeQuery = {
  sentAfterMs: undefined,
  processedAfterMs: undefined,
  headsAfterMs: undefined,
  lettersAfterMs: undefined,
  limit: 100,
}

const decided = (decision: LetterDecision): Decided => ({ decision, actor: 'ann', reason: 'she knows', inMs: 0 })

/** Parks the lane of a key behind its first message. */
async function park(db: ConformanceDomain, reader = relay, code = 'TESTED'): Promise<ClaimedLane> {
  const lane = await claimOne(db, reader, 'me')
  await end(db, ended(reader, 'me', lane, undefined, { is: 'park', letter: letterAbout(lane, 0, code) }))
  return lane
}

/** Cases of the group `store.letter`. */
export const letterCases: readonly ConformanceCase[] = [
  messageCase(
    'store.letter.01',
    'MUST park a lane behind a dead letter, which holds the message whole, and let the other keys go on',
    async ({ db }, messages) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2', 'a3')
      const lane = await claimOne(db, relay, 'me')
      // The first one is done, the second one is dead.
      const letter = letterAbout(lane, 1)
      await end(db, ended(relay, 'me', lane, placeAt(lane, 0), { is: 'park', letter }))
      await emit(db, 'a', 'a4')
      await emit(db, 'b', 'b1')
      same(idsOf([await claimOne(db, relay, 'me')]), { b: ['b1'] }, 'what can be claimed')
      const [found, ...others] = await messages.letters({ limit: 10 }, limits())
      same(others, [], 'other letters')
      const { reader, kind, state, parks, code, reason, history, note } = found ?? ({} as never)
      same(
        [found?.message, reader, kind, state, parks, code, reason, history, note],
        [letter.message, 'relay', 'relay', 'open', true, letter.code, letter.reason, letter.history, undefined],
        'the letter',
      )
      const which = { reader: 'relay', source: letter.message.source, id: 'a2' }
      same(await messages.letter(which, limits()), found, 'the same by its name')
      same(await messages.letter({ ...which, reader: 'other' }, limits()), undefined, 'one of another reader')
    },
  ),
  messageCase(
    'store.letter.02',
    'MUST hand out a redriven message with the decision, open its letter again where it fails, and close it when it is done',
    async ({ db }, messages) => {
      await register(db, relay)
      await emit(db, 'a', 'a1', 'a2')
      const lane = await park(db)
      const which = { reader: 'relay', source: sourceOf(lane), id: 'a1' }
      const before = await messages.letter(which, limits())
      same(await messages.decide(which, decided({ is: 'redrive' }), limits()), true, 'the first decision')
      same(await messages.decide(which, decided({ is: 'redrive' }), limits()), false, 'a second one')
      const decidedLetter = await messages.letter(which, limits())
      same(decidedLetter?.state, 'redriving', 'the letter under way')
      holds(
        /ann/.test(decidedLetter?.note ?? '') && /she knows/.test(decidedLetter?.note ?? ''),
        'who decided, and why',
      )
      const again = await claimOne(db, relay, 'me')
      same(
        [idsOf([again]), again.decision, again.failures, again.history],
        [{ a: ['a1', 'a2'] }, { is: 'redrive' }, 0, ''],
        'the lane',
      )
      const letter = { ...letterAbout(again), code: 'AGAIN', history: '[2]' }
      await end(db, ended(relay, 'me', again, undefined, { is: 'park', letter }))
      const reopened = await messages.letter(which, limits())
      same(
        [reopened?.state, reopened?.code, reopened?.history],
        ['open', 'AGAIN', '[2]'],
        'the letter that failed again',
      )
      same(reopened?.firstAtMs, before?.firstAtMs, 'when it died first')
      await messages.decide(which, decided({ is: 'redrive' }), limits())
      const third = await claimOne(db, relay, 'me')
      await end(db, ended(relay, 'me', third, placeAt(third, 0)))
      same((await messages.letter(which, limits()))?.state, 'closed', 'the letter that was carried out')
      same(await messages.letters({ limit: 10 }, limits()), [], 'letters that are not closed')
      same((await messages.letters({ state: 'closed', limit: 10 }, limits())).length, 1, 'those that are')
      const rest = await claimOne(db, relay, 'me')
      same([idsOf([rest]), rest.decision], [{ a: ['a2'] }, undefined], 'what comes behind it')
    },
  ),
  messageCase(
    'store.letter.03',
    'MUST hand out an edit and a relay’s discard as they were decided, after the time that was given',
    async ({ db }, messages) => {
      await register(db, relay)
      const edit = { is: 'edit', id: 'a1-edited', codec: undefined, data: '{"of":"ann"}' } as const
      for (const [key, decision, state] of [
        ['a', edit, 'redriving'],
        ['b', { is: 'discard', reason: 'nobody needs it' }, 'discarding'],
      ] as const) {
        await emit(db, key, `${key}1`)
        const which = { reader: 'relay', source: sourceOf(await park(db)), id: `${key}1` }
        same(await messages.decide(which, decided(decision), limits()), true, `the decision to ${decision.is}`)
        same((await messages.letter(which, limits()))?.state, state, 'the letter')
        const lane = await claimOne(db, relay, 'me')
        same([idsOf([lane]), lane.decision], [{ [key]: [`${key}1`] }, decision], 'the lane')
        await endAll(db, relay, 'me', lane)
        same((await messages.letter(which, limits()))?.state, 'closed', 'the letter in the end')
      }
      await emit(db, 'c', 'c1')
      const which = { reader: 'relay', source: sourceOf(await park(db)), id: 'c1' }
      await messages.decide(which, { ...decided({ is: 'redrive' }), inMs: 60_000 }, limits())
      const { lanes, nextDueMs = 0 } = await claim(db, relay, 'me')
      holds(
        lanes.length === 0 && nextDueMs > 0 && nextDueMs <= 60_000,
        'a redrive that is spread over time is due later',
      )
    },
  ),
  messageCase(
    'store.letter.04',
    'MUST carry out a consumer’s discard at once, and go on behind it',
    async ({ db }, messages) => {
      await register(db, local)
      await emit(db, 'a', 'a1', 'a2')
      const which = { reader: 'local', source: sourceOf(await park(db, local)), id: 'a1' }
      same(await messages.decide(which, decided({ is: 'discard', reason: 'x' }), limits()), true, 'the decision')
      same((await messages.letter(which, limits()))?.state, 'closed', 'the letter')
      const lane = await claimOne(db, local, 'me')
      same([idsOf([lane]), lane.decision], [{ a: ['a2'] }, undefined], 'the lane')
      same(await messages.decide(which, decided({ is: 'redrive' }), limits()), false, 'a decision about what is over')
      await endAll(db, local, 'me', lane)
      await emit(db, 'b', 'b1')
      const last = { ...which, source: sourceOf(await park(db, local)), id: 'b1' }
      await messages.decide(last, decided({ is: 'discard', reason: 'x' }), limits())
      same(await claim(db, local, 'me'), { lanes: [], nextDueMs: undefined }, 'a lane with nothing behind it')
    },
  ),
  messageCase(
    'store.letter.05',
    'MUST list letters by reader, key, code and state, the oldest first, and count them by cause',
    async ({ db }, messages) => {
      await register(db, relay, other)
      for (const [key, code] of [
        ['a', 'X'],
        ['b', 'X'],
        ['c', 'Y'],
      ] as const) {
        await emit(db, key, `${key}1`)
        await park(db, relay, code)
      }
      const { lanes } = await claim(db, other, 'me', { lanes: 1 })
      const [lane] = lanes as [ClaimedLane]
      await end(db, ended(other, 'me', lane, undefined, { is: 'park', letter: letterAbout(lane, 0, 'X') }))
      const ids = async (query: object): Promise<readonly string[]> =>
        (await messages.letters({ limit: 10, ...query }, limits())).map(
          ({ reader, message }) => `${reader} ${message.id}`,
        )
      const all = await ids({ reader: 'relay' })
      same(all, ['relay a1', 'relay b1', 'relay c1'], 'of a reader, the oldest first')
      same(await ids({ key: 'b', reader: 'relay' }), ['relay b1'], 'of a key')
      same([(await ids({ code: 'X' })).length, await ids({ code: 'Y' })], [3, ['relay c1']], 'of a code')
      same(
        [await ids({ limit: 2, reader: 'relay' }), await ids({ state: 'redriving' })],
        [all.slice(0, 2), []],
        'some of them',
      )
      const groups = (await messages.groups(limits())).map(({ reader, code, letters }) => [reader, code, letters])
      same(groups[0], ['relay', 'X', 2], 'the most common cause')
      same(groups.length, 3, 'causes')
      const [{ oldestMs, newestMs } = { oldestMs: 1, newestMs: 0 }] = await messages.groups(limits())
      holds(oldestMs > 1e12 && oldestMs <= newestMs, 'times in ms since 1970')
      await failing(messages.letters({ limit: 0 }, limits()), 'ARGUMENT_INVALID')
    },
  ),
  messageCase(
    'store.letter.06',
    'MUST know of each reader how many messages it has not done, in how many lanes, and how old the oldest is',
    async (world, messages) => {
      const { db } = world
      await register(db, relay, other, inbox)
      await emit(db, 'a', 'a1', 'a2', 'a3')
      await emit(db, 'b', 'b1')
      const { lanes } = await claim(db, relay, 'me')
      const a = lanes.find(({ key }) => key === 'a') as ClaimedLane
      const b = lanes.find(({ key }) => key === 'b') as ClaimedLane
      await end(db, ended(relay, 'me', a, placeAt(a, 0), { is: 'park', letter: letterAbout(a, 1) }))
      await endAll(db, relay, 'me', b)
      await keeping(world, arrivalOf('m1', 'key'))
      await arriving(world, arrivalOf('m2', 'key'))
      const states = async () =>
        (await messages.readers(limits()))
          .map(({ name, kind, behind, depth, parked, letters, oldestMs }) => [
            name,
            [kind, behind, depth, parked, letters, oldestMs === undefined ? oldestMs : oldestMs >= 0],
          ])
          .sort(([one], [two]) => (String(one) < String(two) ? -1 : 1))
      same(
        await states(),
        [
          ['inbox', ['consumer', 1, 2, 0, 0, true]],
          ['other', ['relay', 2, 4, 0, 0, true]],
          ['relay', ['relay', 1, 2, 1, 1, true]],
        ],
        'readers',
      )
      await messages.newEpochs(limits())
      await emit(db, 'a', 'a4')
      for (const lane of (await claim(db, other, 'me', { key: 'b' })).lanes) await endAll(db, other, 'me', lane)
      same(
        (await states()).slice(1),
        [
          ['other', ['relay', 1, 4, 0, 0, true]],
          ['relay', ['relay', 1, 3, 1, 1, true]],
        ],
        'readers of a key with two epochs',
      )
    },
  ),
  messageCase(
    'store.letter.07',
    'MUST forget a reader with its lanes, its inbox and its processed rows, and let nobody wait for it',
    async (world, messages) => {
      const { db } = world
      await register(db, relay, other, inbox)
      await emit(db, 'a', 'a1')
      await arriving(world, arrivalOf('m1', 'key'))
      await keeping(world, arrivalOf('m2', 'key'))
      await endAll(db, relay, 'me', await claimOne(db, relay, 'me'))
      same(await messages.forget('other', limits()), true, 'a reader that was there')
      same(await messages.forget('other', limits()), false, 'one that was not')
      await forgetAll(db, { sentAfterMs: 0 }, { messages: 1 })
      same(await messages.forget('inbox', limits()), true, 'a consumer')
      await register(db, inbox)
      same((await claim(db, inbox, 'me')).lanes, [], 'what waits in its inbox')
      same(await arriving(world, arrivalOf('m1', 'key')), { is: 'new' }, 'what it had processed')
      same((await messages.readers(limits())).map(({ name }) => name).sort(), ['inbox', 'relay'], 'readers')
    },
  ),
  messageCase(
    'store.letter.08',
    'MUST forget a message only when every reader has done it, and none while there is no reader',
    async (world, messages) => {
      const { db } = world
      const purge = async (): Promise<number> =>
        (await messages.purge({ ...nothing, sentAfterMs: 0 }, limits())).messages
      await emit(db, 'a', 'a1', 'a2', 'a3')
      const nowMs = await storeNowMs(world)
      await until('the message is older than nothing', async () => (await storeNowMs(world)) > nowMs)
      same(await purge(), 0, 'without a reader')
      await register(db, relay)
      same(await purge(), 0, 'done by nobody')
      const { lanes } = await claim(db, relay, 'me', { key: 'a' })
      const [lane] = lanes as [ClaimedLane]
      await end(db, ended(relay, 'me', lane, placeAt(lane, 1)))
      await register(db, inbox)
      await forgetAll(db, { sentAfterMs: 0 }, { messages: 2 })
      same(await purge(), 0, 'the third one is not done')
      const { lanes: rest } = await claim(db, relay, 'me', { key: 'a' })
      same(idsOf(rest), { a: ['a3'] }, 'what is left')
      await end(db, ended(relay, 'me', rest[0] as ClaimedLane, placeAt(rest[0] as ClaimedLane, 0)))
      // Known by its name, and told of nothing yet.
      await messages.register(other, limits())
      same(await purge(), 0, 'while another reader has not done it')
    },
  ),
  messageCase(
    'store.letter.09',
    'MUST remember a version whose message is forgotten, and forget the heads of idle keys without one in time',
    async ({ db }, messages) => {
      await register(db, relay)
      const versioned = (id: string, version: number) =>
        db.transact((tx) => tx.emit({ type: 'tested', subject: 's', id, version, data: 1 }))
      await versioned('s1', 1)
      await versioned('s4', 4)
      await emit(db, 'a', 'a1')
      for (const lane of (await claim(db, relay, 'me')).lanes) await endAll(db, relay, 'me', lane)
      await forgetAll(db, { sentAfterMs: 0 }, { messages: 3 })
      await failing(versioned('s4-again', 4), 'VERSION_TAKEN')
      await failing(versioned('s1-again', 1), 'VERSION_TAKEN')
      // Never emitted; but whether it was, nobody knows any more.
      const older = await versioned('s3', 3).catch((error: unknown) => error)
      holds(/or one with a higher version was purged/.test(String(older)), 'why a lower version is refused')
      await versioned('s5', 5)
      // A head is kept for a minute at least, so that none of these is old enough.
      same((await messages.purge({ ...nothing, headsAfterMs: 0 }, limits())).heads, 0, 'heads')
    },
  ),
  messageCase(
    'store.letter.10',
    'MUST forget processed rows and closed letters by their age, open letters never, no more than are wanted',
    async (world, messages) => {
      const { db } = world
      await register(db, inbox)
      for (const id of ['m1', 'm2', 'm3']) await arriving(world, arrivalOf(id, 'key'))
      const dead = (id: string) => letterOfArrival(arrivalOf(id, 'key'))
      for (const id of ['d1', 'd2']) await db.transact((tx) => messages.bury(tx, inbox, dead(id)))
      const which = { reader: 'inbox', source: 'elsewhere', id: 'd1' }
      same(await messages.decide(which, decided({ is: 'discard', reason: 'x' }), limits()), true, 'a discard')
      same((await arriving(world, arrivalOf('d1', 'key'))).is, 'duplicate', 'what was discarded, once more')
      const old = { processedAfterMs: 3_600_000, lettersAfterMs: 3_600_000 }
      same(
        await messages.purge({ ...nothing, ...old }, limits()),
        { messages: 0, processed: 0, heads: 0, letters: 0 },
        'nothing is old',
      )
      let forgotten = 0
      await until('all of them are forgotten', async () => {
        const { processed } = await messages.purge({ ...nothing, processedAfterMs: 0, limit: 2 }, limits())
        holds(processed <= 2, 'no more than are wanted')
        forgotten += processed
        return forgotten === 4
      })
      await forgetAll(db, { lettersAfterMs: 0 }, { letters: 1 })
      same(
        (await messages.letters({ limit: 10 }, limits())).map(({ message }) => message.id),
        ['d2'],
        'letters that are left',
      )
      same((await arriving(world, arrivalOf('m1', 'key'))).is, 'new', 'a message that was forgotten')
    },
  ),
  messageCase(
    'store.letter.11',
    'MUST open the decided letters of a forgotten reader again, and carry out a redrive when one of its name comes back',
    async (world, messages) => {
      const { db } = world
      await register(db, relay, inbox)
      await emit(db, 'a', 'a1', 'a2')
      const ofRelay = { reader: 'relay', source: sourceOf(await park(db)), id: 'a1' }
      const arrival = arrivalOf('m1', 'key')
      await keeping(world, arrival, { is: 'park', letter: letterOfArrival(arrival) })
      const ofInbox = { reader: 'inbox', source: arrival.message.source, id: 'm1' }
      for (const [reader, which, behind] of [
        [relay, ofRelay, ['a1', 'a2']],
        [inbox, ofInbox, ['m1']],
      ] as const) {
        const state = async () => (await messages.letter(which, limits()))?.state
        same(await messages.decide(which, decided({ is: 'redrive' }), limits()), true, 'a redrive')
        await messages.forget(reader.name, limits())
        same(await state(), 'open', 'the letter, when its reader is forgotten')
        same(await messages.decide(which, decided({ is: 'redrive' }), limits()), true, 'a redrive without a reader')
        same(await state(), 'redriving', 'the letter, while nobody is there')
        await register(db, reader)
        const lane = await claimOne(db, reader, 'me')
        same(
          [Object.values(idsOf([lane])), lane.decision],
          [[behind], { is: 'redrive' }],
          'what a reader of that name gets',
        )
        await endAll(db, reader, 'me', lane)
        same(await state(), 'closed', 'the letter in the end')
        same((await claim(db, reader, 'me')).lanes, [], 'what is left')
      }
    },
  ),
  messageCase(
    'store.letter.12',
    'MUST forget no processed row before the longest memory that a reader was registered with, the last one it gave',
    async (world, messages) => {
      const { db } = world
      await register(db, { ...inbox, memoryMs: 3_600_000 }, { ...inbox, name: 'short', memoryMs: 0 })
      // One that says nothing of it, as somebody who handles single messages under the same name, changes nothing.
      await register(db, inbox)
      await arriving(world, arrivalOf('m1', 'key'))
      const nowMs = await storeNowMs(world)
      await until('the row is older than nothing', async () => (await storeNowMs(world)) > nowMs + 1)
      const query = { ...nothing, processedAfterMs: 0 }
      same((await messages.purge(query, limits())).processed, 0, 'what is forgotten within the memory')
      same((await arriving(world, arrivalOf('m1', 'key'))).is, 'duplicate', 'the message, once more')
      await register(db, { ...inbox, memoryMs: 0 })
      await forgetAll(db, { processedAfterMs: 0 }, { processed: 1 })
    },
  ),
  messageCase(
    'store.letter.13',
    'MUST forget the lanes of keys from brokers in which nothing waits, and keep for a time those that know numbers',
    async (world, messages) => {
      const { db } = world
      await register(db, inbox)
      await arriving(world, arrivalOf('a1', 'key', { key: 'a' }))
      await arriving(world, arrivalOf('n5', 'gapless', { key: 'n', number: 5 }))
      await keeping(world, arrivalOf('w1', 'key', { key: 'w' }))
      const arrival = arrivalOf('p1', 'key', { key: 'p' })
      await keeping(world, arrival, { is: 'park', letter: letterOfArrival(arrival) })
      await keeping(world, arrivalOf('d1', 'key', { key: 'd' }))
      const { lanes } = await claim(db, inbox, 'me', { key: 'd' })
      await endAll(db, inbox, 'me', lanes[0] as ClaimedLane)
      const { heads } = await messages.purge({ ...nothing, headsAfterMs: 0 }, limits())
      // A store that makes no lane where nothing waits has one less of them.
      holds(heads === 1 || heads === 2, 'lanes in which nothing waits are forgotten')
      same((await messages.purge({ ...nothing, headsAfterMs: 0 }, limits())).heads, 0, 'what else is')
      same((await arriving(world, arrivalOf('a1', 'key', { key: 'a' }))).is, 'duplicate', 'a message of such a key')
      same((await arriving(world, arrivalOf('n4', 'gapless', { key: 'n', number: 4 }))).is, 'late', 'a lower number')
      same((await arriving(world, arrivalOf('p2', 'key', { key: 'p' }))).is, 'stored', 'behind what is parked')
      same(idsOf((await claim(db, inbox, 'me')).lanes), { w: ['w1'] }, 'what waits')
    },
  ),
]

function sourceOf({ messages }: ClaimedLane): string {
  return messages[0]?.source ?? ''
}

/** Forgets until that many are gone: what was written in this very ms is not older than it. */
async function forgetAll(
  db: ConformanceDomain,
  query: Partial<MessagePurgeQuery>,
  wanted: Readonly<Record<string, number>>,
): Promise<void> {
  const gone: Record<string, number> = {}
  await until('all that is old is forgotten', async () => {
    const purged = await messagesOf(db).purge({ ...nothing, ...query }, limits())
    for (const [name, count] of Object.entries(purged)) gone[name] = (gone[name] ?? 0) + count
    return Object.entries(wanted).every(([name, count]) => (gone[name] ?? 0) >= count)
  })
  for (const [name, count] of Object.entries(wanted)) same(gone[name], count, name)
}
