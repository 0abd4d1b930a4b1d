// What every store must do with the numbers of producers: each is accepted once, in order, from the open epoch only.

import { isRepriseError } from '../../../kernel/index.js'
import type { Accepted, Arrived, ForgetOptions, Sequence } from '../../../sequence/index.js'
import type { ConformanceCase, ConformanceHandle, StoreWorld } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { needsSavepoints } from '../savepoint-cases.js'
import { sequenceRaceCases } from './race-cases.js'

/** Accepts a number in a transaction of its own, with one effect of an intent. */
function accepting(
  { db, effect }: Pick<StoreWorld, 'db' | 'effect'>,
  sequence: Sequence<ConformanceHandle>,
  at: Arrived,
  intent: string,
): Promise<Accepted<string>> {
  return db.transact((tx) =>
    sequence.accept(tx, at, async () => {
      await effect(tx, intent)
      return `result of ${intent}`
    }),
  )
}

const asNew = (intent: string) => ({ result: 'new', value: `result of ${intent}` })
const asKept = (intent: string) => ({ result: 'duplicate', kept: true, value: `result of ${intent}` })
const forgotten = { result: 'duplicate', kept: false }

/** Cases of the group `store.sequence`. */
export const sequenceCases: readonly ConformanceCase[] = [
  {
    id: 'store.sequence.01',
    title: 'MUST carry out each number of a producer once, from 1 on, and hand out its first result to a repeat',
    async run(world) {
      const orders = world.db.sequence('orders')
      const epoch = await orders.open('till')
      for (const number of [1, 2, 3]) {
        const at = { producer: 'till', epoch, number }
        same(await accepting(world, orders, at, `n${number}`), asNew(`n${number}`), 'the first')
        same(await accepting(world, orders, at, `n${number}`), asKept(`n${number}`), 'its repeat')
        same(await world.effectsOf(`n${number}`), 1, 'effects')
      }
    },
  },
  {
    id: 'store.sequence.02',
    title: 'MUST leave nothing of a number whose transaction rolls back, and accept it again',
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till'), number: 1 }
      const own = new Error('of the body')
      const error = await failing(
        world.db.transact(async (tx) => {
          await orders.accept(tx, at, () => world.effect(tx, 'a'))
          throw own
        }),
      )
      holds(error === own, 'the error is the one that the body threw')
      same(await world.effectsOf('a'), 0, 'effects of what was rolled back')
      same(await accepting(world, orders, at, 'a'), asNew('a'), 'the next try')
    },
  },
  {
    id: 'store.sequence.03',
    title: 'MUST refuse a number beyond the next, and say which is the next',
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till') }
      const first = await failing(accepting(world, orders, { ...at, number: 2 }, 'a'), 'SEQUENCE_GAP')
      await accepting(world, orders, { ...at, number: 1 }, 'b')
      const second = await failing(accepting(world, orders, { ...at, number: 9 }, 'a'), 'SEQUENCE_GAP')
      const next = [first, second].map((error) => isRepriseError(error) && error.details['next'])
      same([next, await world.effectsOf('a')], [[1, 2], 0], 'the next numbers, and effects of those refused')
      same(await accepting(world, orders, { ...at, number: 2 }, 'c'), asNew('c'), 'the next number')
    },
  },
  {
    id: 'store.sequence.04',
    title: 'MUST fence the epoch before from the commit of an open on, and begin the next one at 1',
    async run(world) {
      const orders = world.db.sequence('orders')
      const old = { producer: 'till', epoch: await orders.open('till') }
      await accepting(world, orders, { ...old, number: 1 }, 'a')
      const epoch = await orders.open('till')
      holds(epoch > old.epoch, 'the next epoch is higher')
      // Neither a new number of the zombie nor a repeat is answered: its epoch is over.
      for (const number of [1, 2, 3]) {
        await failing(accepting(world, orders, { ...old, number }, 'zombie'), 'SEQUENCE_FENCED')
      }
      same(
        await accepting(world, orders, { producer: 'till', epoch, number: 1 }, 'b'),
        asNew('b'),
        'the first of the next',
      )
      await failing(accepting(world, orders, { ...old, number: 2 }, 'zombie'), 'SEQUENCE_FENCED')
      same(await world.effectsOf('zombie'), 0, 'effects of the zombie')
    },
  },
  {
    id: 'store.sequence.05',
    title: 'MUST refuse epochs that it did not give to this producer, also where nothing is known of the producer',
    async run(world) {
      const [orders, other] = [world.db.sequence('orders'), world.db.sequence('other')]
      await failing(accepting(world, orders, { producer: 'till', epoch: 1, number: 1 }, 'a'), 'SEQUENCE_FENCED')
      const epoch = await orders.open('till')
      await failing(accepting(world, orders, { producer: 'till', epoch: epoch + 1, number: 1 }, 'a'), 'SEQUENCE_FENCED')
      await failing(accepting(world, orders, { producer: 'desk', epoch, number: 1 }, 'a'), 'SEQUENCE_FENCED')
      await failing(accepting(world, other, { producer: 'till', epoch, number: 1 }, 'a'), 'SEQUENCE_FENCED')
      same(await world.effectsOf('a'), 0, 'effects')
    },
  },
  {
    id: 'store.sequence.06',
    title: 'MUST refuse the last number with other content, and take equal content for a repeat',
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till'), number: 1 }
      await accepting(world, orders, { ...at, content: { json: '{"amount": 5, "to": "b"}' } }, 'a')
      const repeat = accepting(world, orders, { ...at, content: { json: '{"to":"b","amount":5.0}' } }, 'a')
      same(await repeat, asKept('a'), 'equal content')
      same(await accepting(world, orders, at, 'a'), asKept('a'), 'without content')
      const changed = accepting(world, orders, { ...at, content: { json: '{"to":"b","amount":6}' } }, 'a')
      await failing(changed, 'SEQUENCE_MISMATCH')
      same(await world.effectsOf('a'), 1, 'effects')
    },
  },
  {
    id: 'store.sequence.07',
    title: 'MUST take numbers before the last one for duplicates, and say that their results are not kept',
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till') }
      for (const number of [1, 2, 3]) await accepting(world, orders, { ...at, number }, 'a')
      same(await accepting(world, orders, { ...at, number: 2 }, 'a'), forgotten, 'an older number')
      const large = 'x'.repeat(300_000)
      const accept = () => world.db.transact((tx) => orders.accept(tx, { ...at, number: 4 }, () => large))
      same((await accept()).value?.length, large.length, 'the result that the first caller gets')
      same(await accept(), forgotten, 'a repeat of a number whose result is too large')
      same(await world.effectsOf('a'), 3, 'effects')
    },
  },
  {
    id: 'store.sequence.08',
    title: 'MUST accept without a function, and keep values as JSON gives them back',
    async run({ db }) {
      const orders = db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till') }
      const bare = () => db.transact((tx) => orders.accept(tx, { ...at, number: 1 }))
      same([await bare(), await bare()], [{ result: 'new', value: undefined }, forgotten], 'without a function')
      const values: unknown[] = [undefined, null, '', 'ä\u0000"', 0.1, [{ a: [] }]]
      for (const [place, value] of values.entries()) {
        const accept = () => db.transact((tx) => orders.accept(tx, { ...at, number: place + 2 }, () => value))
        same([(await accept()).value, (await accept()).value], [value, value], `value ${place}`)
      }
      await failing(
        db.transact((tx) => orders.accept(tx, { ...at, number: 8 }, () => 1n)),
        'JSON_VALUE_UNSUPPORTED',
      )
    },
  },
  {
    id: 'store.sequence.09',
    title: 'MUST NOT carry out a number again where the body swallowed the error of its function',
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till'), number: 1 }
      await world.db.transact(async (tx) => {
        const half = orders.accept(tx, at, async () => {
          await world.effect(tx, 'a')
          throw new Error('of the function')
        })
        await half.catch(() => undefined)
      })
      same(await accepting(world, orders, at, 'a'), forgotten, 'the repeat')
      same(await world.effectsOf('a'), 1, 'effects')
    },
  },
  {
    id: 'store.sequence.10',
    title: 'MUST undo a number with the savepoint that it was accepted in',
    ...needsSavepoints,
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till'), number: 1 }
      await world.db.transact(async (tx) => {
        const work = tx.savepoint(async () => {
          await orders.accept(tx, at, () => world.effect(tx, 'a'))
          throw new Error('of the savepoint')
        })
        await work.catch(() => undefined)
        await world.effect(tx, 'b')
      })
      same([await world.effectsOf('a'), await world.effectsOf('b')], [0, 1], 'effects')
      same(await accepting(world, orders, at, 'a'), asNew('a'), 'the next try')
    },
  },
  {
    id: 'store.sequence.11',
    title: 'MUST forget idle producers only when asked, and re-arm no zombie by it: epochs never come again',
    async run(world) {
      const [orders, other] = [world.db.sequence('orders'), world.db.sequence('other')]
      const at = { producer: 'till', epoch: await orders.open('till') }
      await accepting(world, orders, { ...at, number: 1 }, 'a')
      const kept = { producer: 'till', epoch: await other.open('till'), number: 1 }
      const highest = await orders.open('desk')
      same(await orders.purge({ idle: '1h' }), 0, 'producers forgotten that were at work just now')
      let gone = 0
      // Until the store's clock has gone on.
      for (let tries = 0; gone < 2 && tries < 10_000; tries += 1) gone += await orders.purge({ idle: 1, batch: 1 })
      same(gone, 2, 'producers forgotten')
      for (const number of [1, 2]) {
        await failing(accepting(world, orders, { ...at, number }, 'zombie'), 'SEQUENCE_FENCED')
      }
      const epoch = await orders.open('till')
      holds(epoch > highest, 'the next epoch is higher than all before')
      for (const number of [1, 2]) {
        await failing(accepting(world, orders, { ...at, number }, 'zombie'), 'SEQUENCE_FENCED')
      }
      same(await accepting(world, orders, { ...at, epoch, number: 1 }, 'b'), asNew('b'), 'the first of the next epoch')
      same(await accepting(world, other, kept, 'c'), asNew('c'), 'a producer of another sequence')
      same(await world.effectsOf('zombie'), 0, 'effects of the zombie')
    },
  },
  {
    id: 'store.sequence.12',
    title: 'MUST refuse names and numbers that cannot be, and ask nothing of the store for it',
    async run({ db }) {
      const wrong = (name: unknown) => Promise.resolve().then(() => db.sequence(name as string))
      for (const name of ['', 'x'.repeat(256), undefined]) await failing(wrong(name), 'ARGUMENT_INVALID')
      const orders = db.sequence('orders')
      for (const producer of ['', 'a b', 'ä', 'x'.repeat(256)]) await failing(orders.open(producer), 'ARGUMENT_INVALID')
      for (const at of [{ number: 0 }, { number: 1.5 }, { epoch: 0 }, { epoch: 1e15 }, { producer: 'a b' }]) {
        const given = { producer: 'till', epoch: 1, number: 1, ...at }
        await failing(
          db.transact((tx) => orders.accept(tx, given)),
          'ARGUMENT_INVALID',
        )
      }
      for (const options of [{ idle: 0 }, { idle: '1s', batch: 0 }, { idle: '1s', most: 1 }]) {
        await failing(orders.purge(options as ForgetOptions))
      }
    },
  },
  ...sequenceRaceCases,
  {
    id: 'store.sequence.17',
    title: 'MUST keep no result of a number under the next one, which was accepted before the first had ended',
    async run(world) {
      const orders = world.db.sequence('orders')
      const at = { producer: 'till', epoch: await orders.open('till') }
      const [first, second] = [
        { ...at, number: 1 },
        { ...at, number: 2 },
      ]
      const both = await world.db.transact(async (tx) => {
        let inner: unknown
        const outer = await orders.accept(tx, first, async () => {
          await world.effect(tx, 'a')
          inner = await orders.accept(tx, second, async () => {
            await world.effect(tx, 'b')
            return 'result of b'
          })
          return 'result of a'
        })
        return [outer, inner]
      })
      same(both, [asNew('a'), asNew('b')], 'both of them')
      same(await accepting(world, orders, second, 'b'), asKept('b'), 'a repeat of the second')
      same(await accepting(world, orders, first, 'a'), forgotten, 'a repeat of the first')
    },
  },
]
