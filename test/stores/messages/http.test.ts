// A handler that emits: one message for a request, however often it arrives, and none where it is refused.

import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { idempotent, reply } from '../../../src/http/fetch/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { freshDatabase } from '../../servers/fresh-database.js'

let pool: pg.Pool
beforeAll(async () => {
  const { url } = await freshDatabase()
  pool = new pg.Pool({ connectionString: url, max: 4 })
  await postgres({ pool, name: 'shop' }).migrate()
})
afterAll(() => pool.end())

const patient = { deadline: '60s', connectionWait: '30s' } as const
const memoryStore = memory({ name: 'shop', ...patient })
const stores = {
  memory: {
    open: () => memoryStore,
    subjects: async () => memoryStore.rows('reprise_message').map((row) => row['subject']),
  },
  postgres: {
    open: () => postgres({ pool, name: 'shop', ...patient }),
    subjects: async () => (await pool.query('select subject from reprise_message')).rows.map((row) => row.subject),
  },
}

it.each(['memory', 'postgres'] as const)('emits once for a request that comes again: %s', async (store) => {
  const { open, subjects } = stores[store]
  const place = idempotent(open(), { name: 'place', principal: () => 'ada' }, async ({ tx, request }) => {
    const { order } = (await request.json()) as { order: string }
    const id = await tx.emit({ type: 'order.placed', subject: order, data: { by: 'ada' } })
    if (order === 'refused') throw new Error('of the handler')
    return reply(201, { id })
  })
  const key = mintKey()
  const send = (order: string, idempotencyKey = key): Promise<Response> =>
    place(
      new Request('http://shop.example/orders', {
        method: 'POST',
        headers: { 'idempotency-key': `"${idempotencyKey}"`, 'content-type': 'application/json' },
        body: JSON.stringify({ order }),
      }),
    )
  const answers = [await send('order/1'), ...(await Promise.all([send('order/1'), send('order/1')]))]
  const bodies = await Promise.all(answers.map((answer) => answer.text()))
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
  expect(new Set(bodies).size).toBe(1)
  await expect(send('refused', mintKey())).rejects.toThrow('of the handler')
  expect(await subjects()).toEqual(['order/1'])
})
