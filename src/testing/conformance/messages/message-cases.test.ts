// The cases about messages pass on a store in memory, and catch one that does less than it must.

import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../../test/stores/conformance/memory-world.js'
import type { LaneEnd, LaneStore } from '../../../messaging/index.js'
import { type ConformanceHandle, runConformanceCase, type StoreWorld } from '../conformance-case.js'
import { emitCases } from './emit-cases.js'
import { emitRaceCases } from './emit-race-cases.js'
import { laneRaceCases } from './lane-race-cases.js'
import { messageCases } from './message-cases.js'
import { messagesOf } from './message-world.js'

type Lanes = LaneStore<ConformanceHandle>

/** A world whose lanes were tampered with. */
async function tampered(change: (lanes: Lanes) => Partial<Lanes>): Promise<StoreWorld> {
  const world = await memoryWorld()
  const messages = messagesOf(world.db)
  const db = { ...world.db, messages: { ...messages, ...change(messages) } } as unknown as StoreWorld['db']
  return { ...world, db, second: async () => db }
}

async function outcome(id: string, world: StoreWorld): Promise<unknown> {
  const subject = messageCases.find((one) => one.id === id)
  return subject === undefined ? 'no such case' : runConformanceCase(subject, world)
}

/** Bugs that a store may have, and the case that finds each. */
const bugs: Readonly<Record<string, readonly [id: string, change: (lanes: Lanes) => Partial<Lanes>]>> = {
  'says that every end was written': [
    'store.lane.03',
    (lanes) => ({
      end: async (ends: readonly LaneEnd[], limits) => {
        await lanes.end(ends, limits)
        return ends.map(() => true)
      },
    }),
  ],
  'lends a lane without a lease': [
    'store.lane.02',
    (lanes) => ({ claim: (query, limits) => lanes.claim({ ...query, leaseMs: 0 }, limits) }),
  ],
}

describe('cases about messages', () => {
  it('are in lists, with those of races in them, and no id twice', () => {
    const ids = [...messageCases, ...emitCases].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(messageCases).toEqual(expect.arrayContaining([...laneRaceCases]))
    expect(emitCases.map(({ id }) => id)).toEqual(expect.arrayContaining(emitRaceCases.map(({ id }) => id)))
  })

  it.each(Object.keys(bugs))('catch a store that %s', async (bug) => {
    const [id, change] = bugs[bug] as (typeof bugs)[string]
    expect(await outcome(id, await memoryWorld())).toBe('passed')
    await expect(outcome(id, await tampered(change))).rejects.toThrow()
  })
})
