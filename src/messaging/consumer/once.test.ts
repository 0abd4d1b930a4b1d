import { describe, expect, it } from 'vitest'
import { memory } from '../../stores/memory/index.js'
import { once } from './once.js'

const db = memory({ name: 'shop' })
const invalid = (option: string) =>
  expect.objectContaining({ code: 'ARGUMENT_INVALID', details: expect.objectContaining({ option }) })

describe('once', () => {
  it.each<[string, object]>([
    ['consumer', { consumer: '' }],
    ['id', { id: '' }],
    ['id', { id: 7 }],
    ['source', { source: '' }],
  ])('refuses %s: %j', (option, options) => {
    expect(() => once(db, { consumer: 'mail', id: '1', ...options })).toThrow(invalid(option))
  })

  it('lets a message take effect once, for each consumer and source', async () => {
    let calls = 0
    const mail = (options: object = {}) =>
      once(db, { consumer: 'mail', id: '1', content: { to: 'a' }, ...options })(() => ++calls)
    expect(await mail()).toEqual({ handled: true, value: 1 })
    expect(await mail()).toEqual({ handled: false, because: 'duplicate' })
    expect(await mail({ source: 'other' })).toEqual({ handled: true, value: 2 })
    expect(await mail({ consumer: 'other' })).toEqual({ handled: true, value: 3 })
    await expect(mail({ content: { to: 'b' } })).rejects.toMatchObject({ code: 'MESSAGE_MISMATCH' })
    expect(calls).toBe(3)
  })

  it('remembers nothing of a handler that failed', async () => {
    let calls = 0
    const paid = once(db, { consumer: 'ledger', id: '1' })
    await expect(
      paid(() => {
        calls += 1
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect(await paid(() => ++calls)).toEqual({ handled: true, value: 2 })
  })

  it('runs the handler of one of two calls at the same time', async () => {
    let calls = 0
    const both = await Promise.all([1, 2].map(() => once(db, { consumer: 'race', id: '1' })(() => ++calls)))
    expect(calls).toBe(1)
    expect(both.filter(({ handled }) => handled)).toHaveLength(1)
  })
})
