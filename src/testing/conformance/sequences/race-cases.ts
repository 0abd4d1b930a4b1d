// What every store must do with producers and numbers that arrive at the same time.

import type { Accepted } from '../../../sequence/index.js'
import type { ConformanceCase } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { gate } from '../gate.js'
import { overlapOf, race } from '../race.js'

const patient = { connectionWait: '30s', lockWait: '30s', deadline: '60s' } as const

/** Cases of the group `store.sequence` in which several are at work at once. */
export const sequenceRaceCases: readonly ConformanceCase[] = [
  {
    id: 'store.sequence.13',
    title:
      'MUST carry out a number once where several bring it at once, at every isolation level, and give all its result',
    async run(world) {
      const domains = [world.db, await world.second()] as const
      const overlap = overlapOf(world.db.manifest)
      const count = overlap === 'bodies' ? Math.min(world.connections, 4) : 4
      for (const isolation of world.db.manifest.isolation) {
        const name = `orders.${isolation}`
        const at = { producer: 'till', epoch: await world.db.sequence(name).open('till'), number: 1 }
        let runs = 0
        const { results } = await race<Accepted<number>>(
          count,
          ({ number, call, body, meet }) => {
            const domain = domains[number % 2 === 0 ? 0 : 1]
            const orders = domain.sequence(name)
            return call(() =>
              domain.transact(
                (tx) =>
                  body(async () => {
                    await meet()
                    return orders.accept(tx, at, async () => {
                      await world.effect(tx, name)
                      return ++runs
                    })
                  }),
                { isolation, ...patient },
              ),
            )
          },
          overlap,
        )
        const news = results.filter(({ result }) => result === 'new')
        same([news.length, await world.effectsOf(name)], [1, 1], `new ones and effects at ${isolation}`)
        holds(
          results.every(({ value }) => value === news[0]?.value),
          `all get one result at ${isolation}`,
        )
      }
    },
  },
  {
    id: 'store.sequence.14',
    title: 'MUST give each of several opens at once an epoch of its own, and leave the highest one open',
    async run(world) {
      const domains = [world.db, await world.second()] as const
      // The first time there is no row to lock; the second time there is.
      for (const round of ['first', 'second']) {
        const { results } = await race(6, ({ number, call }) =>
          call(() => domains[number % 2 === 0 ? 0 : 1].sequence('orders').open('till')),
        )
        const [highest, ...lower] = [...results].sort((a, b) => b - a)
        same(new Set(results).size, 6, `different epochs, the ${round} time`)
        const orders = world.db.sequence('orders')
        const accept = (epoch: number) =>
          world.db.transact((tx) => orders.accept(tx, { producer: 'till', epoch, number: 1 }))
        for (const epoch of lower) await failing(accept(epoch), 'SEQUENCE_FENCED')
        same((await accept(Number(highest))).result, 'new', `the highest, the ${round} time`)
      }
    },
  },
  {
    id: 'store.sequence.15',
    title: 'MUST let an open wait for a number that is being accepted, so that none is accepted after it',
    async run(world) {
      const orders = world.db.sequence('orders')
      const other = (await world.second()).sequence('orders')
      const epoch = await orders.open('till')
      const [inside, asked] = [gate(2), gate(2)]
      let ended = ''
      const accepted = world.db.transact(async (tx) => {
        const answer = await orders.accept(tx, { producer: 'till', epoch, number: 1 }, () => world.effect(tx, 'a'))
        await inside.arrive()
        await asked.arrive()
        ended += 'accepted '
        return answer.result
      }, patient)
      await inside.arrive()
      const opened = other.open('till').then((next) => {
        ended += 'opened'
        return next
      })
      await asked.arrive()
      const next = await opened
      same([await accepted, ended], ['new', 'accepted opened'], 'what the number came to, and who was first')
      const late = (number: number) => world.db.transact((tx) => orders.accept(tx, { producer: 'till', epoch, number }))
      for (const number of [1, 2]) await failing(late(number), 'SEQUENCE_FENCED')
      holds(next > epoch, 'the next epoch is higher')
      same(await world.effectsOf('a'), 1, 'effects')
    },
  },
  {
    id: 'store.sequence.16',
    title: 'MUST give a higher epoch to an open whose producer is purged at the same time',
    async run(world) {
      const [orders, other] = [world.db.sequence('orders'), (await world.second()).sequence('orders')]
      let [highest, purged] = [await orders.open('till'), 0]
      // A producer counts as idle when the store's clock has gone on, so most rounds of a fast store purge nothing.
      for (let round = 0; purged < 100 && round < 20_000; round += 1) {
        const [epoch, forgotten] = await Promise.all([orders.open('till'), other.purge({ idle: 1 })])
        holds(Number.isSafeInteger(epoch) && epoch > highest, `epoch ${epoch} is higher than ${highest}`)
        highest = epoch
        purged += forgotten
      }
      holds(purged > 0, 'purges met opens')
    },
  },
]
