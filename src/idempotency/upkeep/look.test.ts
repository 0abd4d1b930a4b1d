import { describe, expect, it } from 'vitest'
import { chargeOptions, code, type Order, type Receipt, world } from '../../../test/idempotency/leased-world.js'
import type { StoredRecord } from '../../atomicity/index.js'
import { scope } from '../../identity/index.js'
import { operationId } from '../call-identity.js'
import { leased } from '../leased/leased.js'
import { didNotHappen, type Found, happened, type ResolveCall, rerunKeyed, resolve } from '../leased/recovery.js'
import { lookup } from './lookup.js'
import { settle } from './settle.js'
import { sweep } from './sweep.js'

const damages = [
  ['whose kept input is no JSON', { input: '{broken' }, 'the kept input cannot be read as JSON'],
  ['of a codec that nobody names', { codec: 'vault1' }, 'written by the codec vault1, which nobody names here'],
] as const
const recoveries = [
  ['run again', rerunKeyed('24h')],
  ['asked about', resolve(async (_call: ResolveCall<Order>): Promise<Found<Receipt, never>> => didNotHappen())],
] as const
const cases = damages.flatMap(([what, damage, why]) =>
  recoveries.map(([way, recover]) => [what, way, damage, why, recover] as const),
)

/** An unknown outcome whose record was changed by hand; each write to it is seen. */
async function damaged(damage: Partial<StoredRecord>, recover: (typeof recoveries)[number][1]) {
  const one = world()
  const states: string[] = []
  const store = one.store()
  let runs = 0
  const run = (): Promise<Receipt> => {
    runs += 1
    return Promise.reject(new Error('lost'))
  }
  const charge = leased<Order, Receipt>('charge', chargeOptions({ store, run, keepInput: true, recover }))
  const order = one.order()
  expect(await code(charge(order))).toBe('OPERATION_UNKNOWN')
  const id = operationId('charge', scope('tenant'), order.key)
  const before = one.records.committed.get(id) as StoredRecord
  one.records.committed.set(id, { ...before, ...damage })
  const swap = one.records.swap.bind(one.records)
  one.records.swap = async (...args) => {
    states.push(args[2]?.state ?? 'absent')
    return swap(...args)
  }
  const record = () => one.records.committed.get(id)
  const which = { operation: charge, scope: scope('tenant'), key: order.key }
  return { one, store, charge, order, before, record, states, which, runs: () => runs }
}

describe('an unknown outcome', () => {
  it.each(cases)('%s and is to be %s stays unknown with its reason and a note, and can be settled', async (...row) => {
    const [, , damage, why, recover] = row
    const { one, store, charge, order, before, record, states, which, runs } = await damaged(damage, recover)
    const counts = []
    for (let pass = 0; pass < 2; pass += 1) {
      await one.clock.advance('1h')
      counts.push(await sweep({ store, operations: [charge], clock: one.clock }))
    }
    expect(counts).toMatchObject([
      { taken: 1, held: 1, error: 0 },
      { taken: 0, error: 0 },
    ])
    // It was never claimed, so that no crash could have left it so.
    expect(states).toEqual(['unknown'])
    expect(before.because).toBe('unclassified')
    expect(record()).toMatchObject({
      state: 'unknown',
      because: before.because,
      claims: 1,
      dueAtMs: undefined,
      ...damage,
    })
    const { notes } = await lookup(which, { clock: one.clock })
    expect(notes).toMatchObject([
      { action: 'swept', actor: 'sweep', from: 'unknown', to: 'unknown', reason: `${why}: a person settles it` },
    ])
    const by = { reason: 'seen in the statement', actor: 'ada', clock: one.clock }
    await settle(which, happened({ charge: 7 }), by)
    expect(await charge(order)).toEqual({ charge: 7 })
    expect(runs()).toBe(1)
  })
})
