import { expect, it } from 'vitest'
import { leased, rerunKeyed } from '../../src/idempotency/index.js'
import { type Key, scope } from '../../src/identity/index.js'
import { isRepriseError } from '../../src/kernel/index.js'
import { memory } from '../../src/stores/memory/index.js'

const identity = { scope: () => scope('north'), key: (key: Key) => key, window: '24h' } as const

it('says which operation is there already, and where it was defined', () => {
  const db = memory({ name: 'shop' })
  db.operation('pay', { ...identity, run: async () => 1 })
  leased('charge', { ...identity, store: db, lease: '30s', recover: rerunKeyed('24h'), run: async () => 1 })
  for (const [operation, line] of [
    ['pay', 11],
    ['charge', 12],
  ] as const) {
    const error = refusal(() => db.operation(operation, { ...identity, run: async () => 2 }))
    expect(error).toMatchObject({ code: 'OPERATION_DEFINED_TWICE', details: { domain: 'shop', operation } })
    expect(error.message).toMatch(`The domain shop has an operation ${operation} already, defined at `)
    expect(error.details['definedAt']).toMatch(new RegExp(`defined-twice\\.test\\.ts:${line}$`))
  }
})

it('lets a new domain define it anew', () => {
  for (let run = 0; run < 2; run += 1) memory({ name: 'shop' }).operation('pay', { ...identity, run: async () => run })
})

function refusal(define: () => unknown) {
  try {
    define()
  } catch (error) {
    if (isRepriseError(error)) return error
  }
  throw new Error('It was not refused.')
}
