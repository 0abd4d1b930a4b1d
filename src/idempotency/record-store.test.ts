import { describe, expect, it } from 'vitest'
import type { RecordStore, Records } from '../atomicity/index.js'
import { type Key, mintKey, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import { didNotHappen, happened, hold, leased, lookup, operations, purge, rerunKeyed, settle, sweep } from './index.js'

/** A store of records that belongs to no domain: five methods and a manifest, no inspection. */
function recordStore(): RecordStore {
  const inner: Records = memory({ name: 'inner' }).records
  const records: Records = {
    read: async (id, limits) => inner.read(id, limits),
    insert: async (id, draft, limits) => inner.insert(id, draft, limits),
    swap: async (id, over, change, limits, note) => inner.swap(id, over, change, limits, note),
    due: async (query, limits) => inner.due(query, limits),
    purge: async (query, limits) => inner.purge(query, limits),
  }
  const manifest = { engine: 'map', reach: 'process', durability: 'process', because: {} } as const
  return { name: 'plain', manifest, records }
}

const identity = { scope: () => scope('shop'), key: (key: Key) => key, window: '24h', lease: '30s' } as const
const why = { reason: 'seen', actor: 'ops' }

describe('a store of records without a domain', () => {
  it('carries a leased operation out once, by the system’s clock', async () => {
    const store = recordStore()
    let runs = 0
    const run = () => ({ charge: ++runs })
    const charge = leased('charge', { ...identity, store, recover: rerunKeyed('24h'), run })
    const key = mintKey()
    expect([await charge(key), await charge(key)]).toEqual([{ charge: 1 }, { charge: 1 }])
    expect(charge.answers.domain).toEqual({ name: 'plain', engine: 'map', holds: 'marker' })
    expect(operations()).toContain(charge.answers)
    expect(await lookup({ operation: charge, scope: scope('shop'), key })).toMatchObject({
      state: 'succeeded',
      outcome: { outcome: 'succeeded', value: { charge: 1 }, replayed: true },
      notes: [],
    })
    expect(await purge({ store })).toEqual({
      finished: 0,
      unknown: 0,
      audit: 0,
      markers: 0,
      unconfirmed: 0,
      interrupted: false,
    })
  })

  it('is swept and settled', async () => {
    const store = recordStore()
    const run = (): number => {
      throw new Error('nobody knows')
    }
    const base = { ...identity, store, lookAfter: 0, run }
    const asked = leased('asked', { ...base, recover: () => didNotHappen() })
    const held = leased('held', { ...base, recover: hold() })
    const key = mintKey()
    for (const operation of [asked, held]) {
      await expect(operation(key)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
    }
    expect(await sweep({ store, operations: [asked, held] })).toMatchObject({ taken: 1, released: 1 })
    expect(await lookup({ operation: 'asked', scope: scope('shop'), key, store })).toMatchObject({ state: 'absent' })
    await settle({ operation: held, scope: scope('shop'), key }, happened(7), why)
    expect(await held(key)).toBe(7)
  })

  it('needs a name, a manifest and records', () => {
    const { name, manifest, records } = recordStore()
    for (const store of [
      { manifest, records },
      { name, records },
      { name, manifest },
      { name, manifest, records: {} },
    ]) {
      const define = () => leased('charge', { ...identity, store: store as never, recover: hold(), run: () => 1 })
      expect(define).toThrow(expect.objectContaining({ code: 'OPERATION_INVALID', details: { option: 'store' } }))
    }
  })
})
