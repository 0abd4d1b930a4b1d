// A caller whose deadline ends while another process works under its key: no body of it ran, and the error says so.

import pg from 'pg'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { type Key, mintKey, scope } from '../../../src/identity/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { createDatabase } from '../../servers/fresh-database.js'

const pools: pg.Pool[] = []
let url: string
beforeAll(async () => {
  const database = await createDatabase(inject('postgresUrl'))
  url = database.url
  await domain().migrate()
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await database.drop()
  })
})

function domain(): PostgresDomain<pg.Pool> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pools.push(pool)
  return postgres({ name: 'shop', pool, lockWait: '20s' })
}

it('is told that it waited for the key, and never that it was in its body', async () => {
  const works = gate(2)
  let bodies = 0
  const charge = (work: () => Promise<void>) =>
    domain().operation('charge', {
      scope: () => scope('shop'),
      key: (input: { readonly key: Key }) => input.key,
      window: '1h',
      duplicates: 'wait',
      run: async () => {
        bodies += 1
        await work()
        return 'charged'
      },
    })
  const key = mintKey()
  const first = charge(() => works.arrive())({ key })
  await works.waiting(1)
  const other = charge(async () => undefined)
  const told = await other({ key }, { deadline: '700ms' }).then(
    () => ({ code: 'none' }),
    (error: { readonly code: string; readonly details?: { readonly phase?: string } }) => error,
  )
  works.open()
  expect(await first).toBe('charged')
  expect(bodies).toBe(1)
  expect(['DEADLINE_EXCEEDED', 'OPERATION_IN_FLIGHT']).toContain(told.code)
  if (told.code === 'DEADLINE_EXCEEDED') expect(told).toMatchObject({ details: { phase: 'waiting for its key' } })
})
