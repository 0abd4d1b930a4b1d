// A plain key is bound to its content, and remembered for its window.

import { describe, expect, it } from 'vitest'
import { mintKey, scope } from '../../identity/index.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'

const clock = manualClock()
const db = memory({ name: 'shop', clock })
const named = () => ({ scope: scope('shop'), key: mintKey() })
let runs = 0
const pay = (amount: number) => () => {
  runs += 1
  return { amount }
}

describe('the content of a key', () => {
  it('is compared: other content is refused as an operation refuses it, and the same content is a repeat', async () => {
    const key = named()
    const first = { key, content: { value: { amount: 100, to: 'bob' } } }
    expect(await db.transact(pay(100), first)).toEqual({ amount: 100 })
    const other = db.transact(pay(500), { key, content: { value: { amount: 500, to: 'bob' } } })
    await expect(other).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
    const same = { key, content: { json: '{"to":"bob","amount":1e2}' } }
    expect(await db.transact(pay(500), same)).toEqual({ amount: 100 })
  })

  it("is not compared where it is 'none' on purpose", async () => {
    const key = named()
    expect(await db.transact(pay(100), { key, content: 'none' })).toEqual({ amount: 100 })
    expect(await db.transact(pay(500), { key, content: 'none' })).toEqual({ amount: 100 })
  })

  it('is what it was when the call began', async () => {
    const key = named()
    const order = { amount: 100 }
    const changes = (): void => {
      order.amount = 500
    }
    await db.transact(changes, { key, content: { value: order } })
    expect(await db.transact(pay(1), { key, content: { value: { amount: 100 } } })).toBeUndefined()
  })

  it('cannot be left out, nor be given without a key', async () => {
    runs = 0
    const key = named()
    const refused = { code: 'ARGUMENT_INVALID', details: { option: 'content' } }
    // @ts-expect-error without content it does not compile
    await expect(db.transact(pay(100), { key })).rejects.toMatchObject(refused)
    // @ts-expect-error nor does content without a key
    await expect(db.transact(pay(100), { content: 'none' })).rejects.toMatchObject(refused)
    // @ts-expect-error nor a window
    await expect(db.transact(pay(100), { window: '1h' })).rejects.toMatchObject({ details: { option: 'window' } })
    // @ts-expect-error nor what is no content
    await expect(db.transact(pay(100), { key, content: 100 })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    // @ts-expect-error and a key finds its own outcome
    const both = db.transact(pay(100), { key, content: 'none', found: () => ({ amount: 1 }) })
    await expect(both).rejects.toMatchObject({ code: 'ARGUMENT_INVALID', details: { option: 'found' } })
    // @ts-expect-error what is found is what the body returns
    const text = db.transact(pay(100), { found: () => 'text' })
    await text
    expect(runs).toBe(1)
  })
})

describe('the window of a key', () => {
  it('ends its memory: the next call carries it out anew, with any content', async () => {
    const key = named()
    const window = '1h'
    expect(await db.transact(pay(100), { key, content: { value: 100 }, window })).toEqual({ amount: 100 })
    await clock.advance('59m')
    expect(await db.transact(pay(1), { key, content: { value: 100 }, window })).toEqual({ amount: 100 })
    await clock.advance('1m')
    expect(await db.transact(pay(500), { key, content: { value: 500 }, window })).toEqual({ amount: 500 })
  })

  it('decides when a purge forgets it', async () => {
    const store = memory({ name: 'other', clock })
    await store.transact(pay(1), { key: named(), content: 'none', window: '1h' })
    await store.transact(pay(1), { key: named(), content: 'none' })
    await clock.advance('1h')
    expect(await store.purge()).toMatchObject({ finished: 1, markers: 0 })
  })
})

describe('a memory that may end before a call does is refused', () => {
  const refused = { code: 'WINDOW_SHORTER_THAN_DEADLINE' }
  it.each([
    ['300ms', '10s'],
    ['10s', '10s'],
    ['12s', '10s'],
  ] as const)('of a key: %s under a deadline of %s', async (window, deadline) => {
    const call = db.transact(pay(1), { key: named(), content: 'none', window, deadline })
    await expect(call).rejects.toMatchObject({ ...refused, details: { option: 'window' } })
  })

  it('of a key: what is left of the deadline by a real clock is no whole number', async () => {
    const real = memory({ name: 'real' })
    const call = real.transact(pay(1), { key: named(), content: 'none', window: '5s' })
    await expect(call).rejects.toMatchObject({ ...refused, details: { option: 'window' } })
  })

  it('of an operation, when it is defined', () => {
    const rest = { scope: () => scope('shop'), key: () => mintKey(), run: () => 1 }
    expect(() => db.operation('brief', { ...rest, window: '300ms' })).toThrow(expect.objectContaining(refused))
    expect(() => db.operation('long', { ...rest, window: '13s' })).not.toThrow()
  })

  it('of a purge', async () => {
    await expect(db.purge({ markersAfter: '2s' })).rejects.toMatchObject({
      ...refused,
      details: { option: 'markersAfter' },
    })
    await expect(db.purge({ markersAfter: '13s' })).resolves.toMatchObject({ unknown: 0 })
  })
})
