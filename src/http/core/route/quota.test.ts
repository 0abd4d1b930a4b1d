import { expect, it } from 'vitest'
import { effect, routeWorld, send } from '../../../../test/http/route-world.js'
import { inspectionOf } from '../../../atomicity/index.js'
import { mintKey } from '../../../identity/index.js'
import { reply } from '../answer/answer.js'

it('refuses one key more than a caller may have, and none that it has', async () => {
  const { clock, route, effects } = routeWorld()
  const charges = route({ liveKeys: 2, window: '1h' })
  const keys = [mintKey(), mintKey(), mintKey()]
  const [first = '', second = '', third = ''] = keys
  expect((await send(charges, { key: first })).status).toBe(201)
  expect((await send(charges, { key: second })).status).toBe(201)
  const refused = await send(charges, { key: third })
  expect(refused).toMatchObject({ status: 429, problem: 'too-many-keys', headers: { 'retry-after': '1' } })
  // Repeats, other callers and other routes have room.
  expect((await send(charges, { key: first })).headers['idempotent-replayed']).toBe('true')
  expect((await send(charges, { key: third, user: 'bob' })).status).toBe(201)
  expect((await send(route({ name: 'other', liveKeys: 1 }), { key: third })).status).toBe(201)
  expect(effects()).toBe(4)
  // What is past its window counts no more, purged or not.
  await clock.advance('1h')
  expect((await send(charges, { key: third })).status).toBe(201)
})

it('counts nothing that was not stored, and asks nothing where there is no limit', async () => {
  const { db, route } = routeWorld()
  let status = 503
  const charges = route({ liveKeys: 1 }, async ({ tx }) => {
    await effect(tx)
    return reply(status)
  })
  expect((await send(charges)).status).toBe(503)
  status = 200
  expect((await send(charges)).status).toBe(200)
  expect((await send(charges)).status).toBe(429)
  let asked = 0
  const inspection = inspectionOf(db.records)
  const { live } = inspection
  inspection.live = (...call) => {
    asked += 1
    return live.apply(inspection, call)
  }
  await send(route({ name: 'free' }))
  expect(asked).toBe(0)
  await send(charges)
  expect(asked).toBe(1)
})

it('counts the keys of a caller under a pepper, too', async () => {
  const { route } = routeWorld({ pepper: 'the-secret-of-the-shop' })
  const charges = route({ liveKeys: 1, window: '1h' })
  const keys = [mintKey(), mintKey()]
  expect((await send(charges, { key: keys[0] as string })).status).toBe(201)
  expect((await send(charges, { key: keys[0] as string })).headers['idempotent-replayed']).toBe('true')
  expect((await send(charges, { key: keys[1] as string })).status).toBe(429)
})
