import pg from 'pg'
import { expect, it } from 'vitest'
import { postgres } from './index.js'

it.each([
  ['nothing', undefined],
  ['an address', 'postgres://localhost/shop'],
  ['settings', { connectionString: 'postgres://localhost/shop' }],
  ['a single client', new pg.Client()],
])('refuses %s in place of a pool', (_what, pool) => {
  const refusal = expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option: 'pool' } })
  expect(() => postgres({ name: 'shop', pool: pool as never })).toThrow(refusal)
})

it('takes a pool, and asks it for nothing yet', () => {
  const pool = new pg.Pool()
  postgres({ name: 'shop', pool })
  expect(pool.totalCount).toBe(0)
})
