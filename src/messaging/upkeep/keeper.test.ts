import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import type { Records } from '../../atomicity/index.js'
import { didNotHappen, leased, resolve } from '../../idempotency/index.js'
import { type Key, mintKey, scope } from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { operationUpkeep } from '../../telemetry/index.js'
import { manualClock } from '../../testing/index.js'
import { type UpkeepOptions, upkeepOf } from './keeper.js'

const identity = { scope: () => scope('shop'), key: (key: Key) => key, window: '24h' } as const

/** A store, its clock, and what can be done in it. */
function shop() {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const ending = new AbortController()
  const pay = db.operation('pay', { ...identity, run: async () => 'paid' })
  return { clock, db, ending, pay, signal: ending.signal }
}

const settled = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'done',
    (error) => error.code,
  )

describe('upkeep', () => {
  it('forgets what is over, soon after the start and then again and again, and says how much', async () => {
    const { clock, db, ending, pay, signal } = shop()
    await pay(mintKey())
    await clock.advance('25h')
    const upkeep = db.upkeep({ signal })
    await clock.advance('10s')
    await pay(mintKey())
    await clock.advance('24h')
    await clock.advance('12m')
    ending.abort()
    expect(await upkeep).toMatchObject({ records: { finished: 2 }, failures: 0 })
    expect((await upkeep).turns).toBeGreaterThan(130)
    expect((await upkeep).turns).toBeLessThanOrEqual(146)
  })

  it('sweeps what can be recovered', async () => {
    const { clock, db, ending, signal } = shop()
    const upkeep = db.upkeep({ signal })
    await clock.advance('1m')
    let asked = 0
    const mail = leased('mail', {
      ...identity,
      store: db,
      lease: '30s',
      recover: resolve<Key, string, never>(async () => {
        asked += 1
        return didNotHappen()
      }),
      run: async (): Promise<string> => {
        throw new Error('cut off')
      },
    })
    expect(await settled(mail(mintKey()))).toBe('OPERATION_UNKNOWN')
    await clock.advance('2m')
    ending.abort()
    expect(await upkeep).toMatchObject({ swept: { taken: 1, released: 1 } })
    expect(asked).toBe(1)
  })

  it('takes turns with others on the same store', async () => {
    const { clock, db, ending, signal } = shop()
    const all = [1, 2, 3].map(() => db.upkeep({ signal, purgeEvery: '10m' }))
    await clock.advance('10h')
    ending.abort()
    const turns = (await Promise.all(all)).map((report) => report.turns)
    const sum = turns.reduce((one, other) => one + other, 0)
    // Once in ten minutes and up to one more, not three times.
    expect(sum).toBeGreaterThan(53)
    expect(sum).toBeLessThanOrEqual(61)
  })

  it('forgets producers of the sequences that are named', async () => {
    const { clock, db, ending, signal } = shop()
    await db.sequence('orders').open('till-1')
    await clock.advance('2d')
    const upkeep = db.upkeep({ signal, sequences: { orders: '1d' } })
    await clock.advance('10s')
    ending.abort()
    expect(await upkeep).toMatchObject({ producers: 1 })
  })

  it.each<[string, object]>([
    ['ARGUMENT_INVALID', {}],
    ['ARGUMENT_INVALID', { signal: 'soon' }],
    ['ARGUMENT_INVALID', { every: '1m' }],
    ['ARGUMENT_INVALID', { batch: 0 }],
    ['DURATION_INVALID', { sweepEvery: '1ms' }],
    ['DURATION_INVALID', { purgeEvery: 'often' }],
    ['DURATION_INVALID', { sentAfter: 'late' }],
    ['DURATION_INVALID', { headsAfter: '1s' }],
    ['DURATION_INVALID', { auditAfter: '-1s' }],
    ['WINDOW_SHORTER_THAN_DEADLINE', { markersAfter: '1s' }],
    ['DURATION_INVALID', { sequences: { orders: 'x' } }],
    ['ARGUMENT_INVALID', { sequences: { '': '1d' } }],
  ])('refuses with %s before anything is done: %j', async (code, options) => {
    const { db, clock } = shop()
    const given =
      'signal' in options || Object.keys(options).length === 0 ? options : { signal: AbortSignal.any([]), ...options }
    expect(await settled(db.upkeep(given as UpkeepOptions))).toBe(code)
    expect(clock.pendingTimers).toBe(0)
  })

  it('refuses ages of messages where the store does not purge them', async () => {
    const { db, signal } = shop()
    const { upkeep } = upkeepOf({ ...db, messages: undefined })
    expect(await settled(upkeep({ signal, sentAfter: '1d' }))).toBe('CAPABILITY_UNSUPPORTED')
  })
})

/** Records whose purge is another one. */
function purgedBy(records: Records, purge: Records['purge']): Records {
  return new Proxy(records, {
    get: (target, name: keyof Records) => {
      const member = name === 'purge' ? purge : target[name]
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

describe('upkeep that fails', () => {
  /** A store whose purge of records fails as often as it is told to. */
  function failing(errors: unknown[]) {
    const one = shop()
    const faulty = purgedBy(one.db.records, async (query, limits) => {
      const error = errors.shift()
      if (error !== undefined) throw error
      return one.db.records.purge(query, limits)
    })
    return { ...one, ...upkeepOf({ ...one.db, records: faulty }), time: { clock: one.clock } }
  }
  const full = () => new RepriseError('STORE_FULL', 'no room')

  it('is told, and tried again', async () => {
    const { clock, ending, pay, signal, upkeep, time } = failing([full(), full()])
    await pay(mintKey())
    await clock.advance('25h')
    const heard: unknown[] = []
    const events: unknown[] = []
    const hear = (event: unknown): void => void events.push(event)
    subscribe(operationUpkeep.name, hear)
    const running = upkeep({
      signal,
      ...time,
      onError: (error, part) => heard.push([(error as RepriseError).code, part]),
    })
    await clock.advance('35m')
    ending.abort()
    unsubscribe(operationUpkeep.name, hear)
    expect(await running).toMatchObject({ failures: 2, records: { finished: 1 } })
    expect(heard).toEqual([
      ['STORE_FULL', 'records'],
      ['STORE_FULL', 'records'],
    ])
    expect(events).toContainEqual({ domain: 'shop', part: 'records', counts: {}, error: expect.anything() })
    expect(events).toContainEqual(
      expect.objectContaining({ part: 'records', counts: expect.objectContaining({ finished: 1 }) }),
    )
  })

  it('goes on where onError throws, and warns once where there is none', async () => {
    const { clock, ending, signal, upkeep, time } = failing([full(), full(), full(), full()])
    const warnings: unknown[] = []
    const warn = (warning: Error & { code?: string }): void => {
      if (warning.code === 'UPKEEP_FAILED') warnings.push(warning.message)
    }
    process.on('warning', warn)
    const quiet = new AbortController()
    const first = upkeep({ signal: quiet.signal, ...time })
    await clock.advance('25m')
    quiet.abort()
    await first
    const throwing = upkeep({
      signal,
      ...time,
      onError: () => {
        throw new Error('of the user')
      },
    })
    await clock.advance('25m')
    ending.abort()
    expect(await throwing).toMatchObject({ failures: 1 })
    process.off('warning', warn)
    expect(warnings).toEqual([expect.stringContaining('STORE_FULL')])
  })

  it('counts what was forgotten before it failed', async () => {
    const { clock, db, ending, pay, signal } = shop()
    for (let paid = 0; paid < 3; paid += 1) await pay(mintKey())
    await clock.advance('25h')
    let calls = 0
    const faulty = purgedBy(db.records, async (query, limits) => {
      calls += 1
      if (calls === 2) throw full()
      return db.records.purge(query, limits)
    })
    const upkeep = upkeepOf({ ...db, records: faulty }).upkeep({ signal, clock, batch: 2, onError: () => undefined })
    await clock.advance('15s')
    ending.abort()
    expect(await upkeep).toMatchObject({ failures: 1, records: { finished: 2 } })
  })

  it('ends where the store is closed', async () => {
    const { clock, db, signal } = shop()
    const upkeep = db.upkeep({ signal })
    await clock.advance('20s')
    await db.close()
    await clock.advance('12m')
    expect(await upkeep).toMatchObject({ failures: 0 })
    expect(clock.pendingTimers).toBe(0)
  })
})
