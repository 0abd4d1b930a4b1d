// COMMIT of a transaction that emits, hit by every fault at every moment: its messages are there exactly when its effect
// is, once for each intent, and whoever waits for messages in the process is woken also where the answer was lost.

import type pg from 'pg'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import type { PostgresTransaction } from '../../src/stores/postgres/index.js'
import { checkEffects, type IntentRecord } from '../../src/testing/index.js'
import { UnknownCommitError } from '../../src/transaction/index.js'
import { type Cell, cells, strike } from './commit-cells.js'
import { effectOf, inLanes, type Lanes, openLanes, parts, type Tried } from './lanes.js'

let world: Lanes
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 8, { lockWait: '2s', connectionWait: '20s' })
})

type Body = (tx: PostgresTransaction<pg.PoolClient>) => Promise<string>

/** The effect of an intent, and three messages: two of its own key, one of a key that nobody else has. */
const emitting =
  ({ id }: Tried): Body =>
  async (tx) => {
    await tx.emit({ type: 'begun', subject: id, data: null })
    const result = await effectOf(id)(tx)
    await tx.emit([
      { type: 'done', subject: id, data: { result } },
      { type: 'noted', key: `${id} beside`, data: { result } },
    ])
    return result
  }

interface MessageRow {
  readonly subject: string | null
  readonly key: string
  readonly number: string
  readonly type: string
  readonly data: string
}

/** Every intent has all of its messages, of the run that has its effect, or none. */
async function expectTogether(intents: readonly IntentRecord[]): Promise<void> {
  const results = new Map((await world.ledger()).map(({ intent, result }) => [intent, result]))
  const { rows } = await world.raw.query<MessageRow>('select * from reprise_message order by key, number')
  for (const { id } of intents) {
    const result = results.get(id)
    const told = rows.filter(({ key }) => key === id || key === `${id} beside`)
    const data = JSON.stringify({ result })
    const wanted = [
      [id, '1', 'begun', 'null'],
      [id, '2', 'done', data],
      [`${id} beside`, '1', 'noted', data],
    ]
    expect(told.map(({ key, number, type, data: text }) => [key, number, type, text])).toEqual(
      result === undefined ? [] : wanted,
    )
  }
}

describe('COMMIT with messages, cut in every way', () => {
  it.each([
    ['with a key', true],
    ['without a key', false],
  ])('%s: messages are there exactly when the effect is', { timeout: 900_000 }, async (_title, keyed) => {
    const intents: IntentRecord[] = []
    const found = { committed: 0, aborted: 0, unknown: 0 }
    const missed: string[] = []
    let woken = 0
    const ends = world.lanes.map(({ db }) =>
      db.messages.onEmit(() => {
        woken += 1
      }),
    )
    await inLanes(world.lanes, [...cells], async (lane, cell: Cell) => {
      const { fired, resolved } = await strike(lane, cell, {
        keyed,
        call: (tried, deadline) => tried.call(lane.db, deadline, {}, emitting(tried)),
        async settle(tried) {
          if (keyed && tried.last !== 'committed') await tried.settle(lane.db, emitting(tried))
          const { error } = tried
          if (!keyed && error instanceof UnknownCommitError && error.resolveToken !== undefined) {
            const { outcome } = await lane.db.resolve(error.resolveToken, '60s')
            tried.verdicts.push(outcome)
          }
          intents.push(tried.record())
        },
      })
      if (fired === 0) missed.push(cell.name)
      for (const { outcome } of resolved) found[outcome] += 1
    })
    for (const end of ends) end()
    await expectTogether(intents)
    const ids = new Set(intents.map(({ id }) => id))
    const effects = (await world.ledger()).filter(({ intent }) => ids.has(intent))
    expect(checkEffects({ intents, effects, parts, healed: true }).findings).toEqual([])
    expect(missed).toEqual([])
    // What has a key is called until it is settled; the rest proves little if it has met one truth alone.
    const stored = new Set(effects.map(({ intent }) => intent)).size
    if (keyed) expect(stored).toBe(ids.size)
    else expect([stored > 0, stored < ids.size]).toEqual([true, true])
    expect(woken).toBeGreaterThan(0)
    console.log(`${intents.length} intents, ${JSON.stringify(found)} looked up, woken ${woken} times`)
  })

  it('wakes who waits where the answer to COMMIT was lost and the transaction is found to have committed', async () => {
    const [lane] = world.lanes
    const cell = cells.find(({ name }) => name === 'before-answer rst, server close')
    if (lane === undefined || cell === undefined) return expect.unreachable('there is a lane and such a cell')
    let woken = 0
    const end = lane.db.messages.onEmit(() => {
      woken += 1
    })
    const { tried, resolved } = await strike(lane, cell, {
      keyed: true,
      call: (one, deadline) => one.call(lane.db, deadline, {}, emitting(one)),
      settle: async () => undefined,
    })
    expect([tried.last, resolved.map(({ outcome }) => outcome)]).toEqual(['committed', ['committed']])
    await expect.poll(() => woken).toBeGreaterThan(0)
    end()
  })
})
