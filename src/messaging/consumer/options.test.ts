import { describe, expect, it } from 'vitest'
import { ScriptedSource } from '../../../test/messaging/consumer/scripted-source.js'
import { type MemoryTransaction, memory } from '../../stores/memory/index.js'
import { type ConsumeOptions, consume } from '../index.js'

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
