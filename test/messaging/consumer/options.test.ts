import { describe, expect, it } from 'vitest'
import { type ConsumeOptions, consume, once } from '../../../src/messaging/index.js'
import { type MemoryTransaction, memory } from '../../../src/stores/memory/index.js'
import { ScriptedSource } from './scripted-source.js'

const db = memory({ name: 'shop' })
const sound = { name: 'receipts', from: new ScriptedSource(), handle: () => undefined }
const invalid = (option: string) =>
  expect.objectContaining({ code: 'ARGUMENT_INVALID', details: expect.objectContaining({ option }) })

describe('a consumer', () => {
  it.each<[string, object]>([
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(256) }],
    ['name', { name: 'a\nb' }],
    ['from', { from: undefined }],
    ['from', { from: { open: 1 } }],
    ['from', { from: 'inbox' }],
    ['from', { from: memory({ name: 'elsewhere' }) }],
    ['handle', { handle: 'no' }],
    ['discarded', { discarded: 1 }],
    ['order', { order: 'any' }],
    ['order', { order: 'none', from: db }],
    ['concurrency', { concurrency: 0 }],
    ['concurrency', { concurrency: 1.5 }],
    ['inFlight', { concurrency: 4, inFlight: 3 }],
    ['batch', { batch: 0 }],
    ['attempts', { attempts: 0 }],
    ['crashes', { crashes: 0 }],
    ['classify', { classify: {} }],
    ['backoff', { backoff: 5 }],
    ['budget', { budget: true }],
    ['schemas', { schemas: { 'order.placed': () => true } }],
    ['memory', { memory: '30m' }],
    ['memory', { memory: '1d', redelivered: '2d' }],
    ['redelivered', { from: new ScriptedSource({ redeliveryMs: undefined }) }],
  ])('refuses %s: %j', (option, options) => {
    expect(() => consume(db, { ...sound, ...options } as ConsumeOptions<MemoryTransaction>)).toThrow(invalid(option))
  })

  it.each(['gapWait', 'deadline', 'lease', 'poll', 'storeLimit', 'memory', 'redelivered'])(
    'refuses a duration that is none, and names it: %s',
    (option) => {
      expect(() => consume(db, { ...sound, [option]: 'soon' })).toThrow(
        expect.objectContaining({ code: 'DURATION_INVALID', details: expect.objectContaining({ option }) }),
      )
    },
  )

  it('names both where its memory is shorter than what may come again', () => {
    expect(() => consume(db, { ...sound, memory: '1d', redelivered: '36h' })).toThrow(
      /memory is 1d, and a message may be redelivered after 36h/,
    )
    expect(consume(db, { ...sound, memory: '2d', redelivered: '36h' }).memoryMs).toBe(172_800_000)
    expect(
      consume(db, { ...sound, from: new ScriptedSource({ redeliveryMs: undefined }), redelivered: '7d' }).name,
    ).toBe('receipts')
  })

  it('refuses options that nobody knows, and what is no domain', () => {
    expect(() => consume(db, { ...sound, concurency: 3 } as never)).toThrow(/concurrency/)
    expect(() => consume({ name: 'no' } as never, sound)).toThrow(invalid('db'))
  })

  it('refuses a signal that is none', async () => {
    await expect(consume(db, sound).run({} as never)).rejects.toEqual(
      expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
    )
    await expect(consume(db, sound).drain({ quiet: 'x' as never })).rejects.toEqual(
      expect.objectContaining({ code: 'DURATION_INVALID' }),
    )
  })
})

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
