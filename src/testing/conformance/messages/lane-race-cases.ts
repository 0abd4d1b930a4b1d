// What every store must do where several emit and several claim at the same time.

import type { ClaimedLane } from '../../../messaging/index.js'
import type { ConformanceCase } from '../conformance-case.js'
import { holds, same } from '../expectations.js'
import { until } from '../operations/operation-world.js'
import { race } from '../race.js'
import { limits } from '../record-world.js'
import { claim, emit, ended, idsOf, messageCase, messagesOf, placeAt, register, relay } from './message-world.js'

/** Cases of the group `store.lane` in which several are at work at once. */
export const laneRaceCases: readonly ConformanceCase[] = [
  messageCase(
    'store.lane.15',
    'MUST give no lane to two of several who claim at once, and all lanes to somebody',
    async ({ db, second }) => {
      await register(db, relay)
      const keys = Array.from({ length: 24 }, (_, place) => `k${String(place).padStart(2, '0')}`)
      for (const key of keys) await emit(db, key, `${key}-1`)
      const domains = [db, await second()] as const
      const taken: string[] = []
      // Each claims until there is none left: in one round others may have been about to claim the same.
      await until('all lanes are claimed', async () => {
        const { results } = await race(4, ({ number, call }) =>
          call(() => claim(domains[number % 2 === 0 ? 0 : 1], relay, `owner ${number}`, { lanes: 9 })),
        )
        for (const { lanes } of results) taken.push(...lanes.map(({ key }) => key))
        return taken.length >= keys.length
      })
      same(taken.sort(), keys, 'lanes, each as often as it was claimed')
    },
  ),
  messageCase(
    'store.lane.16',
    'MUST keep the order of a key and lose nothing while several emit, and several claim',
    async ({ db, second }) => {
      await register(db, relay)
      const domains = [db, await second()] as const
      const [emitters, each] = [4, 8]
      const seen: string[] = []
      const numbers: number[] = []
      let emitting = true
      const reading = async (number: number): Promise<void> => {
        const domain = domains[number % 2 === 0 ? 0 : 1]
        const owner = `owner ${number}`
        const work = async (lane: ClaimedLane): Promise<void> => {
          // Before the end: nobody else has the lane until then.
          seen.push(...(idsOf([lane])[lane.key] ?? []))
          numbers.push(...lane.messages.map(({ place }) => place.number))
          const last = placeAt(lane, lane.messages.length - 1)
          const [isMine] = await messagesOf(domain).end([ended(relay, owner, lane, last)], limits())
          holds(isMine === true, 'the end of a claim that holds is written')
        }
        for (let rounds = 0; emitting || seen.length < emitters * each; rounds += 1) {
          holds(rounds < 100_000, 'an end')
          const { lanes } = await claim(domain, relay, owner, { perLane: 3 })
          for (const lane of lanes) await work(lane)
        }
      }
      const readers = [reading(0), reading(1)]
      await race(emitters, ({ number, call }) =>
        call(async () => {
          const domain = domains[number % 2 === 0 ? 0 : 1]
          for (let place = 0; place < each; place += 1) await emit(domain, 'a', `${number}-${place}`)
        }),
      )
      emitting = false
      await Promise.all(readers)
      same(
        numbers,
        Array.from({ length: emitters * each }, (_, place) => place + 1),
        'numbers, in the order in which they were done',
      )
      same(new Set(seen).size, emitters * each, 'messages')
    },
  ),
]
