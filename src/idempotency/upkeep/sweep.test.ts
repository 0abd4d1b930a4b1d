import { describe, expect, it } from 'vitest'
import { chargeOptions, type Order, type Receipt, type World, world } from '../../../test/idempotency/leased-world.js'
import type { RecordStore, StoredRecord } from '../../atomicity/index.js'
import { scope } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { operationId } from '../call-identity.js'
import { leased } from '../leased/leased.js'
import type { LeasedOptions } from '../leased/plan.js'
import {
  didNotHappen,
  type Found,
  failedFinally,
  happened,
  hold,
  type ResolveCall,
  rerunKeyed,
  resolve,
  stillUnknown,
} from '../leased/recovery.js'
import { fail } from '../outcome.js'
import { type SweepCounts, type SweepOptions, sweep } from './sweep.js'

type Options = Partial<LeasedOptions<Order, Receipt, 'declined'>>

const define = (store: RecordStore, options: Options) =>
  leased<Order, Receipt, 'declined'>(
    'charge',
    chargeOptions<'declined'>({
      store,
      run: () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' })),
      failures: ['declined'],
      ...options,
    }),
  )

/** Orders whose outcome is unknown, due to be looked at. */
async function unknown(one: World, options: Options, count = 1) {
  const store = one.store()
  const charge = define(store, options)
  const orders = Array.from({ length: count }, () => one.order())
  for (const order of orders) await charge(order).catch(() => undefined)
  await one.clock.advance('30s')
  const run = (more: Partial<SweepOptions> = {}) => sweep({ store, operations: [charge], ...more })
  const id = operationId('charge', scope('tenant'), (orders[0] as Order).key)
  return {
    charge,
    orders,
    sweep: run,
    id,
    notes: () => one.records.notes(id),
    record: () => one.records.committed.get(id),
  }
}

const asking = (answer: (call: ResolveCall<Order>) => unknown): Options => ({
  recover: resolve(async (call: ResolveCall<Order>) => answer(call) as Found<Receipt, 'declined'>),
})
const none = { succeeded: 0, failed: 0, released: 0, unknown: 0, held: 0, waiting: 0, elsewhere: 0, error: 0 }
const counted = (taken: number, counts: Partial<SweepCounts>) => ({ ...none, ...counts, taken, interrupted: false })

describe('a sweep', () => {
  it.each([
    ['succeeded', () => happened({ charge: 4 }), { state: 'succeeded', value: '{"charge":4}' }, 'asked: it happened'],
    ['failed', () => failedFinally(fail('declined')), { state: 'failed' }, 'asked: it failed for good'],
    ['released', didNotHappen, undefined, 'asked: it did not happen'],
    [
      'unknown',
      stillUnknown,
      { state: 'unknown', because: 'resolve-still-unknown' },
      'still unknown: resolve-still-unknown',
    ],
    [
      'unknown',
      () => Promise.reject(new Error('down')),
      { state: 'unknown', because: 'resolve-failed' },
      'still unknown: resolve-failed',
    ],
  ] as const)('asks, writes what was found (%s), and a note beside it', async (what, answer, after, reason) => {
    const one = world()
    const keys: string[] = []
    const found = await unknown(
      one,
      asking((call) => {
        keys.push(call.key('capture'))
        expect(call.input).toBeUndefined()
        return answer()
      }),
    )
    expect(await found.sweep()).toEqual(counted(1, { [what]: 1 }))
    expect(keys).toHaveLength(1)
    if (after === undefined) expect(found.record()).toBeUndefined()
    else expect(found.record()).toMatchObject(after)
    expect(await found.notes()).toMatchObject([{ action: 'swept', actor: 'sweep', reason, from: 'claimed' }])
    expect(one.clock.pendingTimers).toBe(0)
  })

  it('never runs again what can be asked about, also where it has the input', async () => {
    const one = world()
    let runs = 0
    const inputs: unknown[] = []
    const found = await unknown(one, {
      ...asking((call) => {
        inputs.push(call.input)
        return stillUnknown()
      }),
      keepInput: true,
      run: async () => {
        runs += 1
        throw new Error('lost')
      },
    })
    expect(await found.sweep()).toEqual(counted(1, { unknown: 1 }))
    expect(inputs).toEqual(found.orders)
    expect(runs).toBe(1)
  })

  it('leaves alone what is held for a person', async () => {
    const one = world()
    let runs = 0
    const run = async () => {
      runs += 1
      throw new Error('lost')
    }
    const found = await unknown(one, { run, recover: hold(), keepInput: true })
    expect(found.record()).toMatchObject({ state: 'unknown', dueAtMs: undefined })
    await one.clock.advance('2h')
    expect(await found.sweep()).toEqual(counted(0, {}))
    expect(runs).toBe(1)
  })

  it('leaves an expired claim that nobody can ask about to a person, with a note', async () => {
    const one = world()
    const store = one.store()
    const charge = define(store, { run: () => new Promise(() => undefined), recover: hold(), deadline: '1s' })
    charge(one.order()).catch(() => undefined)
    await one.clock.advance('32s')
    expect(await sweep({ store, operations: [charge] })).toEqual(counted(0, {}))
    await one.clock.advance('1s')
    expect(await sweep({ store, operations: [charge] })).toEqual(counted(1, { held: 1 }))
    const [[id, record] = [] as never] = [...one.records.committed]
    expect(record).toMatchObject({ state: 'unknown', because: 'lease-expired', dueAtMs: undefined })
    expect(await one.records.notes(id)).toMatchObject([{ from: 'unknown', to: 'unknown', action: 'swept' }])
  })

  it('runs again with the input that was kept, and leaves the rest to callers', async () => {
    const inputs: unknown[] = []
    let runs = 0
    const options: Options = {
      recover: rerunKeyed('24h'),
      run: async (lease, input) => {
        runs += 1
        inputs.push(input)
        return lease.effect('capture', () => {
          if (runs === 1) throw new Error('lost')
          return { charge: runs }
        })
      },
    }
    const kept = await unknown(world(), { ...options, keepInput: true })
    expect(await kept.sweep()).toEqual(counted(1, { succeeded: 1 }))
    expect(inputs[1]).toEqual(kept.orders[0])
    expect(kept.record()).toMatchObject({ state: 'succeeded', claims: 2, input: undefined })
    expect(await kept.notes()).toMatchObject([{ reason: 'run again: it succeeded', to: 'succeeded' }])
    runs = 0
    const left = await unknown(world(), options)
    expect(await left.sweep()).toEqual(counted(1, { waiting: 1 }))
    expect(left.record()).toMatchObject({ state: 'unknown', looks: 1 })
  })

  it('stops running again when the receiver may have forgotten the key', async () => {
    const one = world()
    const found = await unknown(one, { recover: rerunKeyed('1m'), keepInput: true })
    await one.clock.advance('1m')
    expect(await found.sweep()).toEqual(counted(1, { held: 1 }))
    expect(await found.notes()).toMatchObject([
      { reason: 'the receiver may have forgotten the key: a person settles it' },
    ])
  })

  it('looks less and less often, up to the cap', async () => {
    const one = world()
    const asked: number[] = []
    const startMs = one.clock.monotonicMs() + 30_000
    const found = await unknown(
      one,
      asking(() => {
        asked.push((one.clock.monotonicMs() - startMs) / 1_000)
        return stillUnknown()
      }),
    )
    const stop = new AbortController()
    const running = found.sweep({ every: '1s', baseDelay: '10s', capDelay: '40s', signal: stop.signal })
    await one.clock.advance('150s')
    stop.abort()
    expect(await running).toEqual(counted(asked.length, { unknown: asked.length }))
    expect(asked).toEqual([0, 10, 30, 70, 110, 150])
  })

  it('takes each record once, however many sweeps there are, in batches', async () => {
    const one = world()
    const asked = new Map<string, number>()
    const found = await unknown(
      one,
      asking(async (call) => {
        const key = call.key('x')
        asked.set(key, (asked.get(key) ?? 0) + 1)
        await eventLoopTurn()
        return happened({ charge: 1 })
      }),
      25,
    )
    const progress: number[] = []
    const onProgress = ({ taken }: SweepCounts): void => void progress.push(taken)
    const all = await Promise.all([
      found.sweep({ batch: 10, onProgress }),
      found.sweep({ batch: 10 }),
      found.sweep({ batch: 1 }),
    ])
    expect(all.reduce((sum, { taken }) => sum + taken, 0)).toBe(25)
    expect(all.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(25)
    expect([...asked.values()]).toEqual(Array(25).fill(1))
    expect(progress.length).toBeGreaterThan(0)
    expect([...one.records.committed.values()].every(({ state }) => state === 'succeeded')).toBe(true)
  })

  it('is not held up by a resolving function that never answers', async () => {
    const one = world()
    let asked = 0
    const found = await unknown(
      one,
      asking(() => {
        asked += 1
        return asked === 1 ? new Promise(() => undefined) : happened({ charge: 1 })
      }),
      3,
    )
    const running = found.sweep({ concurrency: 1, limit: '5s' })
    await one.clock.advance('5s')
    expect(await running).toEqual(counted(3, { succeeded: 2, unknown: 1 }))
  })

  it('leaves to its new owner what was taken over while it asked', async () => {
    const one = world()
    let asked = 0
    const found = await unknown(
      one,
      asking(async () => {
        asked += 1
        if (asked > 1) return happened({ charge: 2 })
        // Somebody settles it, as the sweep stands still past its lease.
        const record = found.record()
        await one.records.swap(found.id, record as StoredRecord, { state: 'unknown', token: null, dueInMs: null }, {})
        return happened({ charge: 1 })
      }),
    )
    expect(await found.sweep()).toEqual(counted(1, { elsewhere: 1 }))
    expect(found.record()).toMatchObject({ state: 'unknown', value: undefined })
    expect(await found.charge(found.orders[0] as Order)).toEqual({ charge: 2 })
  })

  it('goes on after the store was away, and refuses what it cannot sweep', async () => {
    const one = world()
    let away = true
    const store = one.store((method) => (method === 'due' && away ? 'not-sent' : 'fine'))
    const charge = define(
      store,
      asking(() => happened({ charge: 1 })),
    )
    await charge(one.order()).catch(() => undefined)
    await one.clock.advance('30s')
    const stop = new AbortController()
    const running = sweep({
      store,
      operations: [charge],
      clock: one.clock,
      every: '1m',
      limit: '1s',
      signal: stop.signal,
    })
    await one.clock.advance('30s')
    away = false
    await one.clock.advance('1m')
    stop.abort()
    expect(await running).toEqual(counted(1, { succeeded: 1 }))
    await expect(sweep({ store: one.store(), operations: [charge] })).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    await expect(sweep({ store, operations: [(() => 1) as never] })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    await expect(sweep({ store, operations: [charge], batch: 0 })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })
})

describe('a sweep that runs again', () => {
  it('comes back less and less often, as one that asks does', async () => {
    const one = world()
    const begun: number[] = []
    const found = await unknown(one, {
      recover: rerunKeyed('24h'),
      keepInput: true,
      run: async () => {
        begun.push(one.clock.monotonicMs())
        throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      },
    })
    for (let seconds = 0; seconds < 3_600; seconds += 10) {
      await found.sweep()
      await one.clock.advance('10s')
    }
    const gaps = begun.slice(1).map((atMs, place) => (atMs - (begun[place] ?? 0)) / 1_000)
    expect(gaps).toEqual([30, 30, 60, 120, 240, 480, 960])
  })

  it('takes each record once in a pass, however soon it is due again', async () => {
    const one = world()
    let runs = 0
    const found = await unknown(one, {
      recover: rerunKeyed('24h'),
      keepInput: true,
      lookAfter: 0,
      run: async () => {
        runs += 1
        throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      },
    })
    runs = 0
    expect(await found.sweep({ batch: 1, baseDelay: 1, capDelay: 1 })).toEqual(counted(1, { unknown: 1 }))
    expect(runs).toBe(1)
  })
})
