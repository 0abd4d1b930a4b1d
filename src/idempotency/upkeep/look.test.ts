import { expect, it } from 'vitest'
import { chargeOptions, code, type Order, type Receipt, world } from '../../../test/idempotency/leased-world.js'
import { leased } from '../leased/leased.js'
import { rerunKeyed } from '../leased/recovery.js'
import { sweep } from './sweep.js'

it('leaves an outcome unknown whose kept input cannot be read, with a note, and does not take it again', async () => {
  const one = world()
  const store = one.store()
  const run = () => Promise.reject(new Error('lost'))
  const options = chargeOptions({ store, run, keepInput: true, recover: rerunKeyed('24h') })
  const charge = leased<Order, Receipt>('charge', options)
  expect(await code(charge(one.order()))).toBe('OPERATION_UNKNOWN')
  for (const [id, record] of one.records.committed) one.records.committed.set(id, { ...record, input: '{broken' })
  const counts = []
  for (let pass = 0; pass < 2; pass += 1) {
    await one.clock.advance('1h')
    counts.push(await sweep({ store, operations: [charge], clock: one.clock }))
  }
  expect(counts).toMatchObject([
    { taken: 1, held: 1, error: 0 },
    { taken: 0, error: 0 },
  ])
  expect([...one.records.committed.values()]).toMatchObject([{ state: 'unknown' }])
})
