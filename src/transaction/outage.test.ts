import { describe, expect, it } from 'vitest'
import { storeUnreachable } from './outage.js'

describe('a store that could not be reached', () => {
  it('is named, with what its driver said, also of several addresses', () => {
    const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432')
    expect(storeUnreachable('payments', refused)).toMatchObject({
      code: 'STORE_UNREACHABLE',
      cause: refused,
      message: 'The store payments could not be reached: connect ECONNREFUSED 127.0.0.1:5432.',
    })
    expect(storeUnreachable('payments', new AggregateError([refused])).message).toContain('ECONNREFUSED')
    expect(storeUnreachable('payments', 'odd').message).toBe('The store payments could not be reached.')
    expect(storeUnreachable('payments', new Error('x'.repeat(10_000))).message.length).toBeLessThan(300)
  })
})
