// What every store must do with transactions that emit at the same time.

import type { ConformanceCase, ConformanceHandle } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { overlapOf, race } from '../race.js'
import type { OutboxWorld } from './outbox-world.js'

const patient = { connectionWait: '60s', lockWait: '60s', deadline: '120s', attempts: 50 } as const
const keys = ['a', 'b', 'c'] as const
const rounds = 5

/** Cases of the group `store.emit` in which several are at work at once. */
export const emitRaceCases: readonly ConformanceCase<OutboxWorld>[] = [
  {
    id: 'store.emit.15',
    title:
      'MUST number the messages of a key without a gap where several emit to the same keys at once, at every isolation level, also where some roll back',
    async run(world) {
      const domains = [world.db, await world.second()] as const
      const overlap = overlapOf(world.db.manifest)
      const count = overlap === 'bodies' ? Math.min(world.connections, 4) : 4
      let expected = 0
      for (const isolation of world.db.manifest.isolation) {
        await race(
          count,
          async ({ number, call, body, meet }) => {
            const domain = domains[number % 2 === 0 ? 0 : 1]
            const own = new Error('of the body')
            const emitting = async (tx: ConformanceHandle, round: number): Promise<void> => {
              await world.effect(tx, isolation)
              // In another order each time: the store has to lock them in one.
              const turned = [...keys.slice(number % 3), ...keys.slice(0, number % 3)]
              await tx.emit(turned.map((key) => ({ type: 'raced', key, data: [isolation, number, round] })))
              await tx.emit({ type: 'raced', key: 'a', data: null })
              if (round === 0) await meet()
              if (round % 2 === 1) throw own
            }
            const settings = { isolation, ...patient }
            await call(() => domain.transact((tx) => body(() => emitting(tx, 0)), settings))
            for (let round = 1; round < rounds; round += 1) {
              const work = domain.transact((tx) => emitting(tx, round), settings)
              if (round % 2 === 1) holds((await failing(work)) === own, 'the error is the one that the body threw')
              else await work
            }
          },
          overlap,
        )
        expected += count * Math.ceil(rounds / 2)
        const heads = await world.outboxRows('head')
        const rows = await world.outboxRows('message')
        for (const key of keys) {
          const numbers = rows.filter((row) => row['key'] === key).map((row) => Number(row['number']))
          const wanted = Array.from({ length: key === 'a' ? 2 * expected : expected }, (_, place) => place + 1)
          same(
            numbers.sort((one, other) => one - other),
            wanted,
            `the numbers of ${key} at ${isolation}`,
          )
          same(heads.find((head) => head['key'] === key)?.['number'], wanted.length, `the head of ${key}`)
        }
      }
    },
  },
]
