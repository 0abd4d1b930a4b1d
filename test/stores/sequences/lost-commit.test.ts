// The answer to the COMMIT of an accepted number is lost on the wire: whatever the caller is told, the number has one
// effect after the repeat, and the repeat has its first result.

import { beforeAll, describe, expect, inject, it } from 'vitest'
import type { FaultActionName, FaultMoment } from '../../../src/testing/index.js'
import { type Lane, type Lanes, openLanes } from '../../faults/lanes.js'

let world: Lanes
let lane: Lane
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1, { deadline: '60s', connectionWait: '20s', bodyLimit: '30s' })
  lane = world.lanes[0] as Lane
})

const isCommit = (text: string): boolean => text.endsWith('COMMIT')
const cuts: readonly (readonly [at: FaultMoment, action: FaultActionName])[] = [
  ['before-forward', 'rst'],
  ['after-forward', 'fin'],
  ['before-answer', 'rst'],
]

describe.each(cuts)('COMMIT cut %s by %s', (at, action) => {
  it('leaves a number that is carried out once', async () => {
    const orders = lane.db.sequence('orders')
    const producer = `cut.${at}.${action}`
    const place = { producer, epoch: await orders.open(producer), number: 1 }
    let runs = 0
    const accept = () =>
      lane.db.transact((tx) =>
        orders.accept(tx, place, async () => {
          runs += 1
          await tx.query('insert into ledger (intent, part, result) values ($1, $2, $3)', [
            producer,
            'one',
            String(runs),
          ])
          return runs
        }),
      )
    const armed = lane.proxy.arm({ statement: isCommit, at, action })
    const first = await accept().catch((error: unknown) => error)
    expect(armed.fired).toHaveLength(1)
    await lane.proxy.heal()
    const again = await accept()
    const effects = (await world.ledger()).filter(({ intent }) => intent === producer)
    expect(effects).toHaveLength(1)
    expect(again).toEqual({ result: 'duplicate', kept: true, value: Number(effects[0]?.result) })
    if (!(first instanceof Error)) expect(first).toMatchObject({ value: again.value })
  })

  it('leaves one epoch open, the highest that was told', async () => {
    const orders = lane.db.sequence('orders')
    const producer = `open.${at}.${action}`
    const before = await orders.open(producer)
    const armed = lane.proxy.arm({ statement: isCommit, at, action })
    await orders.open(producer).catch(() => undefined)
    expect(armed.fired).toHaveLength(1)
    await lane.proxy.heal()
    const epoch = await orders.open(producer)
    const accept = (tried: number) => lane.db.transact((tx) => orders.accept(tx, { producer, epoch: tried, number: 1 }))
    await expect(accept(before)).rejects.toMatchObject({ code: 'SEQUENCE_FENCED' })
    expect((await accept(epoch)).result).toBe('new')
  })
})
