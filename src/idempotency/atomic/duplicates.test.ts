import { AsyncResource } from 'node:async_hooks'
import { afterEach, describe, expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { type FaultPoints, faultPoints, manualClock } from '../../testing/index.js'
import { UnknownCommitError } from '../../transaction/index.js'
import { operationDomain } from '../domain.js'
import { fail, OperationFailedError, operationId } from '../index.js'
import { operationFaultPoints } from './fault-points.js'

interface Order {
  readonly key: Key
  readonly amount?: number
}

const shop = scope('shop')
const identity = { scope: () => shop, key: (order: Order) => order.key, window: '24h' } as const
const outside = new AsyncResource('outside')

/** A domain with an operation whose runs the test ends by hand. */
function world(more = {}) {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock, queue: 10 })
  db.table('other', { unique: [['id']] })
  const domain = operationDomain(db)
  let runs = 0
  let gate: ((result: 'commit' | 'throw') => void) | undefined
  const pay = db.operation('pay', {
    ...identity,
    run: async (_tx, _order: Order) => {
      runs += 1
      const run = runs
      const how = await new Promise<'commit' | 'throw'>((resolve) => {
        gate = resolve
      })
      if (how === 'throw') throw new Error(`run ${run}`)
      return run
    },
    ...more,
  })
  const ending = async (how: 'commit' | 'throw') => {
    for (let turn = 0; turn < 100 && gate === undefined; turn++) await eventLoopTurn()
    gate?.(how)
    gate = undefined
  }
  return { db, clock, pay, ending, runs: () => runs, queue: domain.queue, domain }
}

const started = async (runs: () => number, count: number) => {
  for (let turn = 0; turn < 100 && runs() < count; turn++) await eventLoopTurn()
  expect(runs()).toBe(count)
}

describe('a thousand duplicates of one key', () => {
  it('wait without a place in the store, get the one outcome, and hold up nobody', async () => {
    const { db, pay, ending, runs, queue } = world()
    const key = mintKey()
    const calls = Array.from({ length: 1_000 }, () => pay({ key }))
    await started(runs, 1)
    expect(queue.waiting(operationId('pay', shop, key))).toBe(999)
    // The leader has the only writer's place; ten more may wait, and none of the duplicates does.
    const others = Array.from({ length: 10 }, (_, id) => db.transact((tx) => tx.insertOnce('other', { id }, ['id'])))
    await ending('commit')
    expect(new Set(await Promise.all(calls))).toEqual(new Set([1]))
    await Promise.all(others)
    expect([runs(), queue.size]).toEqual([1, 0])
  })

  it('get one executor after each rollback, and exactly one', async () => {
    const { pay, ending, runs, queue } = world()
    const key = mintKey()
    const calls = Array.from({ length: 1_000 }, () => pay({ key }).catch((error: Error) => error.message))
    for (let run = 1; run <= 3; run++) {
      await started(runs, run)
      await ending('throw')
    }
    await started(runs, 4)
    await ending('commit')
    const ends = await Promise.all(calls)
    expect(ends.filter((end) => end === 4)).toHaveLength(997)
    expect(ends.slice(0, 3)).toEqual(['run 1', 'run 2', 'run 3'])
    expect([runs(), queue.size]).toEqual([4, 0])
  })
})

describe('a duplicate', () => {
  it('is not aborted with its leader, and takes over', async () => {
    const { pay, ending, runs } = world()
    const key = mintKey()
    const control = new AbortController()
    const leader = expect(pay({ key }, { signal: control.signal })).rejects.toBe('gone')
    await started(runs, 1)
    const follower = pay({ key })
    control.abort('gone')
    await leader
    await started(runs, 2)
    await ending('commit')
    expect(await follower).toBe(2)
  })

  it('waits no longer than it may, by its own wait and its own deadline', async () => {
    const { clock, pay, ending, runs } = world({ wait: '1s' })
    const key = mintKey()
    const leader = pay({ key })
    await started(runs, 1)
    const patient = expect(pay({ key })).rejects.toMatchObject({
      code: 'OPERATION_IN_FLIGHT',
      details: { waitedMs: 1_000, retryable: true },
    })
    const hasty = expect(pay({ key }, { deadline: '300ms' })).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await clock.advance('1s')
    await Promise.all([patient, hasty])
    await ending('commit')
    expect(await leader).toBe(1)
  })

  it('with other content is refused at once, also before it would be told to come back', async () => {
    const { pay, ending, runs } = world({ duplicates: 'refuse' })
    const key = mintKey()
    const leader = pay({ key })
    await started(runs, 1)
    await expect(pay({ key, amount: 2 })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
    await expect(pay({ key })).rejects.toMatchObject({ code: 'OPERATION_IN_FLIGHT' })
    await ending('commit')
    expect(await leader).toBe(1)
    expect(await pay({ key })).toBe(1)
  })

  it('that would rather be refused is not, while the outcome is only being read', async () => {
    const { pay, ending } = world({ duplicates: 'refuse' })
    const key = mintKey()
    const leader = pay({ key })
    await ending('commit')
    await leader
    expect(await Promise.all([pay({ key }), pay({ key }), pay({ key })])).toEqual([1, 1, 1])
  })

  it('of a call with the wrong content is not refused with it', async () => {
    const { pay, ending, runs } = world()
    const key = mintKey()
    const first = pay({ key })
    await ending('commit')
    await first
    const wrong = expect(pay({ key, amount: 2 })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
    expect(await pay({ key })).toBe(1)
    await wrong
    expect(runs()).toBe(1)
  })

  it('is one too many where enough wait already', async () => {
    const { pay, ending, runs } = world({ waiters: 1 })
    const key = mintKey()
    const calls = [pay({ key }), pay({ key })]
    await started(runs, 1)
    await expect(pay({ key })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await ending('commit')
    expect(await Promise.all(calls)).toEqual([1, 1])
  })

  it('from inside another operation than its own is refused before it waits', async () => {
    const { db, pay, ending, runs } = world()
    const key = mintKey()
    const leader = pay({ key })
    await started(runs, 1)
    const nested = outside.runInAsyncScope(() => db.transact(async () => pay({ key }), { readOnly: true }))
    await expect(nested).rejects.toMatchObject({ code: 'TRANSACTION_NESTED' })
    await ending('commit')
    await leader
  })
})

describe('fault points', () => {
  let faults: FaultPoints | undefined
  afterEach(() => faults?.disarm())

  it('are all reached, each at its place', async () => {
    faults = faultPoints()
    const { db, pay, ending } = world()
    const key = mintKey()
    const first = pay({ key })
    await ending('commit')
    await first
    await pay({ key })
    const refusing = db.operation('refuse', {
      ...identity,
      failures: ['no'],
      terminal: () => fail('no'),
      run: () => {
        throw new Error('no')
      },
    })
    await refusing.outcome({ key })
    for (const point of operationFaultPoints) expect([point, faults.count(point)]).not.toEqual([point, 0])
    expect(faults.reached.filter((point) => point.startsWith('operation'))).toEqual([
      ...['operation.leading', 'operation.stored', 'operation.told'],
      ...['operation.leading', 'operation.looked', 'operation.stored', 'operation.told'],
      ...['operation.leading', 'operation.failing', 'operation.stored', 'operation.told'],
    ])
  })

  it.each(operationFaultPoints.filter((point) => point !== 'operation.failing'))(
    'a fault at %s executes nothing twice and strands no duplicate',
    async (point) => {
      faults = faultPoints()
      const { pay, ending, runs, queue, domain } = world({ terminal: () => undefined })
      const key = mintKey()
      faults.throwAt(point)
      if (point === 'operation.looked') domain.finished.add(operationId('pay', shop, key))
      const calls = [pay({ key }), pay({ key })].map((call) => call.catch((error: Error) => error.name))
      await ending('commit')
      const ends = await Promise.all(calls)
      expect(ends).toContain(1)
      expect(runs()).toBe(1)
      expect(queue.size).toBe(0)
      expect(ends).toContain('InjectedFault')
    },
  )

  it('a fault before a thrown failure is stored leaves the key free: nobody was told that it is final', async () => {
    faults = faultPoints()
    const { db } = world()
    let runs = 0
    const pay = db.operation('fail', {
      ...identity,
      failures: ['no'],
      run: () => {
        runs += 1
        throw new OperationFailedError(fail('no'))
      },
    })
    faults.throwAt('operation.failing')
    const key = mintKey()
    await expect(pay({ key })).rejects.toMatchObject({ name: 'InjectedFault' })
    await expect(pay({ key })).rejects.toMatchObject({ failure: { code: 'no' }, replayed: false })
    await expect(pay({ key })).rejects.toMatchObject({ failure: { code: 'no' }, replayed: true })
    expect(runs).toBe(2)
  })

  it('a leader that does not know its outcome lets the others find out', async () => {
    faults = faultPoints()
    const { pay, ending, runs } = world()
    const key = mintKey()
    faults.throwAt('transaction.before-commit', new UnknownCommitError('token', [], []))
    const leader = expect(pay({ key })).rejects.toBeInstanceOf(UnknownCommitError)
    const follower = pay({ key })
    await ending('commit')
    await leader
    await started(runs, 2)
    await ending('commit')
    expect(await follower).toBe(2)
  })
})

describe('the hint that a key is finished', () => {
  it('saves a repeat its transaction', async () => {
    const { db, pay, ending } = world()
    const key = mintKey()
    const first = pay({ key })
    await ending('commit')
    await first
    // Nobody gets a writer's place while this one has it.
    let release = (): void => undefined
    const holding = db.transact(
      () =>
        new Promise<void>((resolve) => {
          release = resolve
        }),
    )
    expect(await pay({ key })).toBe(1)
    release()
    await holding
  })

  it('is only a hint: wrong, or with a store that cannot read, it changes nothing', async () => {
    const { db, pay, ending, runs, domain } = world()
    const key = mintKey()
    const id = operationId('pay', shop, key)
    domain.finished.add(id)
    const { read } = db.records
    const first = pay({ key })
    await started(runs, 1)
    expect(domain.finished.has(id)).toBe(false)
    await ending('commit')
    expect(await first).toBe(1)
    Object.assign(db.records, { read: () => Promise.reject(new Error('down')) })
    expect(await pay({ key })).toBe(1)
    Object.assign(db.records, { read })
    expect(runs()).toBe(1)
  })
})
