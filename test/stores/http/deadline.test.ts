// The caller's own deadline on a real PostgreSQL: whatever ends the work first, our timer or the limit that the session
// was given, the caller reads 503 and nothing was carried out.

import { setTimeout as passes } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { atomicRoute } from '../../../src/http/core/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { send, usual } from '../../http/route-world.js'
import { postgresWorld, type World } from '../postgres/world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

it.each([
  ['hands it on', false],
  ['swallows it and throws another', true],
])('a session that ended by its own limit is a 503, where the handler %s', async (_what, swallows) => {
  // Our own time stands still, so the server's limit is first for certain.
  const db = postgres({ pool: world.pool, name: 'idle', clock: manualClock({ wallMs: 1_750_000_000_000 }) })
  const codes: unknown[] = []
  const id = mintKey()
  const route = atomicRoute(db, { ...usual, name: `idle-${swallows}` }, async ({ tx }) => {
    await tx.query('insert into item (id) values ($1)', [id])
    for (;;) {
      await passes(20)
      try {
        await tx.query('select 1')
        // Idle for longer than the limit from here on.
        await passes(1_600)
      } catch (error) {
        codes.push((error as { code?: unknown }).code)
        throw swallows ? new Error('my own') : error
      }
    }
  })
  const answer = await send(route, { headers: { 'reprise-deadline-ms': '1000' } })
  expect(answer).toMatchObject({ status: 503, problem: 'deadline-exceeded' })
  // It was the server that ended it.
  expect(codes).toEqual(['25P03'])
  expect((await world.raw.query('select 1 from item where id = $1', [id])).rowCount).toBe(0)
})

it('a transaction whose session ended so fails with DEADLINE_EXCEEDED, and the server’s error is its cause', async () => {
  const db = postgres({ pool: world.pool, name: 'idle-too', clock: manualClock({ wallMs: 1_750_000_000_000 }) })
  const work = db.transact(
    async (tx) => {
      await tx.query('select 1')
      await passes(1_600)
      await tx.query('select 1')
    },
    { deadline: 1_000 },
  )
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  expect(isRepriseError(error, 'DEADLINE_EXCEEDED')).toBe(true)
  expect((error as Error).cause).toMatchObject({ code: '25P03' })
})
