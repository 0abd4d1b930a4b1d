import { describe, expect, it } from 'vitest'
import { type Key, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import type { ValueCodec } from './index.js'
import { operationSettings } from './settings.js'

interface Order {
  readonly key: Key
}

const identity = { scope: () => scope('shop'), key: (order: Order) => order.key, window: '24h' } as const
const sound = { ...identity, run: () => 'done' }
const db = () => memory({ name: 'shop' })
const define = (options: object, name = 'pay') => db().operation(name, options as never)

describe('a definition that cannot be safe is refused', () => {
  const codec: ValueCodec<string> = { name: 'c', encode: (text) => text, decode: (text) => text }
  const { scope: _scope, ...unscoped } = sound

  it.each([
    ['SCOPE_MISSING', unscoped],
    ['SCOPE_MISSING', { ...sound, scope: 'shop' }],
    ['WINDOW_SHORTER_THAN_HORIZON', { ...sound, window: '1h', retryHorizon: '2h' }],
    ['DURATION_INVALID', { ...sound, window: '1 day' }],
    ['DURATION_INVALID', { ...sound, window: 0 }],
    ['DURATION_INVALID', { ...sound, window: undefined }],
    ['DURATION_INVALID', { ...sound, wait: -1 }],
    ['DURATION_INVALID', { ...sound, retryHorizon: 'soon' }],
    ['DURATION_INVALID', { ...sound, lockWait: 0 }],
  ])('%s: case %#', (code, options) => {
    expect(() => define(options)).toThrow(expect.objectContaining({ code }))
  })

  it.each([
    ['name', sound, ''],
    ['name', sound, 'two words'],
    ['options', undefined as never],
    ['key', { ...sound, key: undefined }],
    ['run', { ...sound, run: undefined }],
    ['content', { ...sound, content: 'all' }],
    ['terminal', { ...sound, terminal: [] }],
    ['duplicates', { ...sound, duplicates: 'ignore' }],
    ['waiters', { ...sound, waiters: -1 }],
    ['largestOutcome', { ...sound, largestOutcome: 0.5 }],
    ['failures', { ...sound, failures: ['not a code'] }],
    ['failures', { ...sound, failures: 'no' }],
    ['reversibility', { ...sound, reversibility: 'maybe' }],
    ['mintedBy', { ...sound, mintedBy: '' }],
    ['oldestKey', { ...sound, oldestKey: '48h' }],
    ['codec', { ...sound, codec: { ...codec, name: 'tombstone' } }],
    ['codec', { ...sound, codec: { name: 'c' } }],
    ['earlierCodecs', { ...sound, codec, earlierCodecs: [codec] }],
    ['earlierCodecs', { ...sound, earlierCodecs: codec }],
    ['isolation', { ...sound, isolation: 'read-committed' }],
    ['attempts', { ...sound, attempts: 0 }],
    ['fields', { ...sound, content: 'none', fields: { only: ['/a'] } }],
    ['fields', { ...sound, fields: {} }],
    ['fields', { ...sound, fields: ['/a'] }],
    ['fields', { ...sound, fields: null }],
    ['fields', { ...sound, fields: { only: ['/a'], omit: ['/b'] } }],
    ['fields', { ...sound, fields: { only: [] } }],
    ['fields', { ...sound, fields: { omit: ['a'] } }],
    ['fields', { ...sound, fields: { except: ['/a'] } }],
    ['budget', { ...sound, budget: 5 }],
    ['budget', { ...sound, budget: null }],
    ['budget', { ...sound, budget: 'none' }],
    ['budget', { ...sound, budget: { succeeded: () => undefined } }],
    ['backoff', { ...sound, backoff: 100 }],
    ['backoff', { ...sound, backoff: { baseMs: 5 } }],
    ['ttl', { ...sound, ttl: '1h' }],
    ['lease', { ...sound, lease: '1h' }],
  ])('OPERATION_INVALID: the option %s, case %#', (option, options, name = 'pay') => {
    expect(() => define(options, name)).toThrow(
      expect.objectContaining({ code: 'OPERATION_INVALID', details: { option } }),
    )
  })

  it('says why a duration is none', () => {
    expect(() => define({ ...sound, window: Number.POSITIVE_INFINITY })).toThrow(
      expect.objectContaining({
        message: expect.stringContaining('finite'),
        details: { option: 'window', reason: 'not-finite' },
      }),
    )
  })

  it('WINDOW_SHORTER_THAN_LEASE, where there is a lease', () => {
    const leased = { mode: 'leased', names: [], leaseMs: 3_600_001 } as const
    expect(() => operationSettings('pay', { ...sound, window: '1h' }, leased)).toThrow(
      expect.objectContaining({
        code: 'WINDOW_SHORTER_THAN_LEASE',
        details: { windowMs: 3_600_000, leaseMs: 3_600_001 },
      }),
    )
    expect(operationSettings('pay', { ...sound, window: '1h' }, { ...leased, leaseMs: 3_600_000 }).windowMs).toBe(3.6e6)
  })

  it('OPERATION_DEFINED_TWICE, in one domain', () => {
    const one = db()
    one.operation('pay', sound)
    expect(() => one.operation('pay', sound)).toThrow(expect.objectContaining({ code: 'OPERATION_DEFINED_TWICE' }))
    expect(one.operations()).toHaveLength(1)
    expect(db().operation('pay', sound).answers.name).toBe('pay')
  })

  it('leaves no trace in the registry', () => {
    const one = db()
    expect(() => one.operation('pay', { ...sound, waiters: -1 })).toThrow()
    expect(one.operations()).toEqual([])
    one.operation('pay', sound)
  })
})
