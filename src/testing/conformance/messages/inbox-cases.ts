// What every store must do with messages that come from brokers: each has one effect, and those that wait keep their
// order.

import type { Arrived, ClaimedLane } from '../../../messaging/index.js'
import type { ConformanceCase } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { overlapOf, race } from '../race.js'
import { limits } from '../record-world.js'
import {
  arrivalOf,
  arriving,
  claim,
  claimOne,
  end,
  endAll,
  ended,
  idsOf,
  inbox,
  keeping,
  letterOfArrival,
  messageCase,
  messagesOf,
  patient,
  placeAt,
  register,
} from './message-world.js'

/** Cases of the group `store.inbox`. */
export const inboxCases: readonly ConformanceCase[] = [
  messageCase(
    'store.inbox.01',
    'MUST take a message for new once, for a duplicate after that, and for a mismatch with other content',
    async (world) => {
      await register(world.db, inbox)
      for (const order of ['key', 'gapless', 'none'] as const) {
        const arrival = arrivalOf(`of ${order}`, order, { key: order, number: 5 })
        const changed = { ...arrival, fingerprint: 'of something else' }
        const is: string[] = []
        for (const one of [arrival, arrival, changed]) is.push((await arriving(world, one)).is)
        same([is, await world.effectsOf(`of ${order}`)], [['new', 'duplicate', 'mismatch'], 1], `of order ${order}`)
      }
      same((await claim(world.db, inbox, 'me')).lanes, [], 'what waits')
    },
  ),
  messageCase(
    'store.inbox.02',
    'MUST leave nothing of a message whose transaction rolls back',
    async (world, messages) => {
      await register(world.db, inbox)
      for (const order of ['key', 'gapless', 'none'] as const) {
        const arrival = arrivalOf(`of ${order}`, order, { key: order, number: 5 })
        const own = new Error('of the handler')
        const failed = world.db.transact(async (tx) => {
          same(await messages.arrive(tx, arrival, 1), { is: 'new' }, 'the one that is rolled back')
          throw own
        }, patient)
        holds((await failing(failed)) === own, 'the error is the one that the handler threw')
        same(await arriving(world, arrival), { is: 'new' }, `the next try, of order ${order}`)
      }
    },
  ),
  messageCase(
    'store.inbox.03',
    'MUST store what comes behind a message that waits, once, and hand it out in the order of arrival',
    async (world, messages) => {
      const { db } = world
      await register(db, inbox)
      const [m1, m2, m3] = ['m1', 'm2', 'm3'].map((id) => arrivalOf(id, 'key')) as [
        ReturnType<typeof arrivalOf>,
        ReturnType<typeof arrivalOf>,
        ReturnType<typeof arrivalOf>,
      ]
      await keeping(world, m1)
      const is: Arrived[] = []
      for (const one of [m2, m2, m1, m3, { ...m2, fingerprint: 'of something else' }])
        is.push(await arriving(world, one))
      same(
        is.map((arrived) => arrived.is),
        ['stored', 'stored', 'stored', 'stored', 'mismatch'],
        'what comes while one waits',
      )
      same(await arriving(world, arrivalOf('x1', 'key', { key: 'x' })), { is: 'new' }, 'another key')
      const lane = await claimOne(db, inbox, 'me')
      same([idsOf([lane]), lane.failures, lane.history], [{ k: ['m1', 'm2', 'm3'] }, 1, '[1]'], 'the lane')
      const { source, data, type } = lane.messages[1] as ClaimedLane['messages'][number]
      same([source, data, type], ['elsewhere', '"m2"', 'tested'], 'what was stored')
      // Two of them are done, with their effects; the last one waits.
      const isMine = await db.transact(async (tx) => {
        await world.effect(tx, 'm1')
        return messages.endIn(tx, ended(inbox, 'me', lane, placeAt(lane, 1)))
      }, patient)
      same(isMine, true, 'the end')
      const after: string[] = []
      for (const one of [m1, m2, m3]) after.push((await arriving(world, one)).is)
      same(after, ['duplicate', 'duplicate', 'stored'], 'repeats after that')
      await endAll(db, inbox, 'me', await claimOne(db, inbox, 'me'))
      same((await arriving(world, m3)).is, 'duplicate', 'a repeat of the last one')
      same(await arriving(world, arrivalOf('m4', 'key')), { is: 'new' }, 'what comes when nothing waits')
    },
  ),
  messageCase(
    'store.inbox.04',
    'MUST keep the numbers of a key: wait for those that are missing, and refuse what is late or of an epoch that is over',
    async (world) => {
      const { db } = world
      await register(db, inbox)
      const at = (number: number, epoch = 3) => arrivalOf(`e${epoch}n${number}`, 'gapless', { number, epoch })
      same(await arriving(world, at(5)), { is: 'new' }, 'the first number starts the key')
      same(await arriving(world, at(6)), { is: 'new' }, 'the next')
      same(await arriving(world, at(4)), { is: 'late' }, 'a lower one')
      same(await arriving(world, at(9, 2)), { is: 'outdated', epoch: 3 }, 'one of an epoch that is over')
      same(await arriving(world, at(8)), { is: 'gap', expected: 7 }, 'one too many')
      same(await arriving(world, at(9)), { is: 'stored' }, 'what comes behind the gap')
      const { lanes, nextDueMs = 0 } = await claim(db, inbox, 'me')
      same(lanes, [], 'lanes while the gap is waited for')
      holds(nextDueMs > 0 && nextDueMs <= 60_000, 'the wait is the next that is due')
      same(await arriving(world, at(7)), { is: 'new' }, 'what was missing')
      const lane = await claimOne(db, inbox, 'me')
      same([idsOf([lane]), lane.done], [{ k: ['e3n8', 'e3n9'] }, { epoch: 3, number: 7 }], 'the rest, at once')
      await endAll(db, inbox, 'me', lane)
      same(await arriving(world, at(10)), { is: 'new' }, 'the next one')
      same(await arriving(world, at(2, 4)), { is: 'gap', expected: 1 }, 'a new epoch begins at 1')
      same(await arriving(world, at(1, 4)), { is: 'new' }, 'a new epoch')
      same(await arriving(world, at(11)), { is: 'outdated', epoch: 4 }, 'one of the epoch before')
    },
  ),
  messageCase('store.inbox.05', 'MUST hold nobody behind a message that is in no order', async (world) => {
    await register(world.db, inbox)
    await keeping(world, arrivalOf('m1', 'none'))
    same(await arriving(world, arrivalOf('m2', 'none')), { is: 'new' }, 'another one of its key')
    same(await arriving(world, arrivalOf('m1', 'none')), { is: 'stored' }, 'the same once more')
    const lane = await claimOne(world.db, inbox, 'me')
    same(idsOf([lane]), { k: ['m1'] }, 'what waits')
    await endAll(world.db, inbox, 'me', lane)
    same(await arriving(world, arrivalOf('m1', 'none')), { is: 'duplicate' }, 'the same when it is done')
  }),
  messageCase(
    'store.inbox.06',
    'MUST keep nothing that was processed meanwhile, or is kept already, and leave those in front alone',
    async (world) => {
      const { db } = world
      await register(db, inbox)
      for (const order of ['key', 'none'] as const) {
        const [done, first, second] = ['done', 'first', 'second'].map((id) =>
          arrivalOf(`${id} ${order}`, order, { key: order }),
        )
        await arriving(world, done as ReturnType<typeof arrivalOf>)
        await keeping(world, done as ReturnType<typeof arrivalOf>)
        same((await claim(db, inbox, 'me')).lanes, [], 'what waits when all is done')
        await keeping(world, first as ReturnType<typeof arrivalOf>)
        await keeping(world, second as ReturnType<typeof arrivalOf>, {
          is: 'rest',
          forMs: 60_000,
          failures: 9,
          history: '[9]',
        })
        await keeping(world, first as ReturnType<typeof arrivalOf>, {
          is: 'rest',
          forMs: 60_000,
          failures: 9,
          history: '[9]',
        })
        const lane = await claimOne(db, inbox, 'me')
        same([idsOf([lane])[order], lane.failures], [[`first ${order}`, `second ${order}`], 1], 'the lane')
        await endAll(db, inbox, 'me', lane)
      }
    },
  ),
  messageCase(
    'store.inbox.07',
    'MUST park a lane behind a message that is kept as dead, and go on when a person has decided',
    async (world, messages) => {
      const { db } = world
      await register(db, inbox)
      const [m1, m2] = [arrivalOf('m1', 'key'), arrivalOf('m2', 'key')]
      await keeping(world, m1, { is: 'park', letter: letterOfArrival(m1) })
      same((await arriving(world, m2)).is, 'stored', 'what comes behind it')
      same(await claim(db, inbox, 'me'), { lanes: [], nextDueMs: undefined }, 'lanes while it is parked')
      const which = { reader: inbox.name, source: 'elsewhere', id: 'm1' }
      const letter = await messages.letter(which, limits())
      same(
        [letter?.state, letter?.parks, letter?.kind, letter?.message.data],
        ['open', true, 'consumer', '"m1"'],
        'its letter',
      )
      const decided = { actor: 'ann', reason: 'not needed', inMs: 0 }
      same(
        await messages.decide(which, { ...decided, decision: { is: 'discard', reason: 'x' } }, limits()),
        true,
        'a discard',
      )
      same((await messages.letter(which, limits()))?.state, 'closed', 'its letter after it')
      const lane = await claimOne(db, inbox, 'me')
      same([idsOf([lane]), lane.decision], [{ k: ['m2'] }, undefined], 'what comes next')
      same((await arriving(world, m1)).is, 'duplicate', 'the discarded one, once more')
      await endAll(db, inbox, 'me', lane)
      same((await claim(db, inbox, 'me')).lanes, [], 'what is left')
    },
  ),
  messageCase(
    'store.inbox.08',
    'MUST bring back what was buried in a lane of its own, where a person wants that',
    async (world, messages) => {
      const { db } = world
      await register(db, inbox)
      const [late, waits] = [arrivalOf('late', 'key'), arrivalOf('m1', 'key')]
      await db.transact((tx) => messages.bury(tx, inbox, letterOfArrival(late, 'LATE')), patient)
      same((await claim(db, inbox, 'me')).lanes, [], 'what waits for it')
      const which = { reader: inbox.name, source: 'elsewhere', id: 'late' }
      const letter = await messages.letter(which, limits())
      same([letter?.state, letter?.parks, letter?.code], ['open', false, 'LATE'], 'its letter')
      await keeping(world, waits)
      const decided = { actor: 'ann', reason: 'again', inMs: 0, decision: { is: 'redrive' } } as const
      same(await messages.decide(which, decided, limits()), true, 'a redrive')
      const { lanes } = await claim(db, inbox, 'me')
      same(Object.values(idsOf(lanes)).sort(), [['late'], ['m1']], 'two lanes')
      const back = lanes.find(({ messages: [first] }) => first?.id === 'late') as ClaimedLane
      same(back.decision, { is: 'redrive' }, 'what was decided')
      await end(db, ended(inbox, 'me', back, placeAt(back, 0)))
      same((await messages.letter(which, limits()))?.state, 'closed', 'its letter in the end')
    },
  ),
  messageCase(
    'store.inbox.09',
    'MUST let one of several who bring the same message at once have its effect',
    async (world) => {
      const { db, second } = world
      await register(db, inbox)
      const domains = [db, await second()] as const
      const overlap = overlapOf(db.manifest)
      const count = overlap === 'bodies' ? Math.min(world.connections, 4) : 4
      for (const order of ['key', 'gapless', 'none'] as const) {
        const arrival = arrivalOf(`of ${order}`, order, { key: order, number: 5 })
        const { results } = await race<string>(
          count,
          ({ number, call, body, meet }) => {
            const domain = domains[number % 2 === 0 ? 0 : 1]
            return call(() =>
              domain.transact(
                (tx) =>
                  body(async () => {
                    await meet()
                    const { is } = await messagesOf(domain).arrive(tx, arrival, 1)
                    if (is === 'new') await world.effect(tx, `of ${order}`)
                    return is
                  }),
                patient,
              ),
            )
          },
          overlap,
        )
        const wanted = ['new', ...Array.from({ length: count - 1 }, () => 'duplicate')].sort()
        same([[...results].sort(), await world.effectsOf(`of ${order}`)], [wanted, 1], `of order ${order}`)
      }
    },
  ),
]
