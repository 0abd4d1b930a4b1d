// The answer to the COMMIT of an atomic operation is lost on the wire: the key says what became of it, and the caller
// gets the stored outcome, never a guess.

import { beforeAll, describe, expect, inject, it } from 'vitest'
import { fail } from '../../../src/idempotency/index.js'
import { mintKey } from '../../../src/identity/index.js'
import type { FaultActionName, FaultMoment } from '../../../src/testing/index.js'
import { type Lane, type Lanes, openLanes, parts } from '../../faults/lanes.js'
import { identity, type Order } from './worlds.js'

let world: Lanes
let lane: Lane
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1, { deadline: '60s', connectionWait: '20s', bodyLimit: '30s' })
  lane = world.lanes[0] as Lane
})

const order = (): Order => ({ key: mintKey(), amount: 5 })
const effects = async ({ key }: Order) => (await world.ledger()).filter(({ intent }) => intent === key).length
let defined = 0

/** An operation with the effect of two parts; how often its body ran. */
function paying(ends: 'well' | 'failed') {
  let runs = 0
  const pay = lane.db.operation(`pay-${++defined}`, {
    ...identity,
    failures: ['declined'],
    run: async (tx, { key }: Order) => {
      runs += 1
      for (const part of parts) {
        await tx.query('insert into ledger (intent, part, result) values ($1, $2, $3)', [key, part, String(runs)])
      }
      return ends === 'failed' ? fail('declined', { run: runs }) : { run: runs }
    },
  })
  return { pay, runs: () => runs }
}

const isCommit = (text: string): boolean => text.endsWith('COMMIT')
/** Where the answer is lost, and whether the server had got COMMIT by then. */
const cuts: readonly (readonly [at: FaultMoment, action: FaultActionName, arrives: boolean])[] = [
  ['before-forward', 'rst', false],
  ['before-forward', 'late', true],
  ['after-forward', 'fin', true],
  ['before-answer', 'rst', true],
  ['before-answer', 'half-open', true],
  ['between-answers', 'fin', true],
]

describe.each(cuts)('COMMIT cut %s by %s', (at, action, arrives) => {
  it.each(['well', 'failed'] as const)(
    'of an operation that ends %s gives the outcome that is stored',
    async (ends) => {
      const { pay, runs } = paying(ends)
      const one = order()
      lane.resolved = []
      const armed = lane.proxy.arm({ statement: isCommit, at, action, delayMs: 50 })
      const first = await pay.outcome(one)
      expect(armed.fired).toHaveLength(1)
      await lane.proxy.heal()
      const names = { operation: pay.answers.name, id: expect.stringMatching(/^sha256:/) }
      expect(lane.resolved).toMatchObject([{ by: 'key', ...names }])
      if (!arrives) expect(lane.resolved[0]?.outcome).toBe('aborted')
      const repeat = await pay.outcome(one)
      expect(repeat).toEqual({ ...first, replayed: true })
      // What was resolved to be there was not run again; what was not there was, and is there once.
      const committed = lane.resolved[0]?.outcome === 'committed'
      expect([first.replayed, runs(), await effects(one)]).toEqual([false, committed ? 1 : 2, parts.length])
      if (at !== 'before-forward') expect(committed).toBe(true)
    },
  )
})

it('a COMMIT that nobody can ask about any more is unknown, and the next call with the key has its outcome', async () => {
  const { pay, runs } = paying('well')
  const one = order()
  const armed = lane.proxy.arm({ statement: isCommit, at: 'after-forward', action: 'rst' })
  const refused = lane.proxy.arm({ statement: 'startup', at: 'before-forward', action: 'rst', times: 1_000 })
  const error = await pay(one, { deadline: '3s' }).catch((error: unknown) => error)
  expect([armed.fired.length, refused.fired.length > 0]).toEqual([1, true])
  refused.disarm()
  expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME' })
  expect(await pay(one)).toEqual({ run: 1 })
  expect([runs(), await effects(one)]).toEqual([1, parts.length])
})
