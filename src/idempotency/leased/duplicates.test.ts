import { describe, expect, it } from 'vitest'
import { chargeOptions, code, type Order, type Receipt, world } from '../../../test/idempotency/leased-world.js'
import { withIntent } from '../../identity/index.js'
import { eventLoopTurn, seededRandom, uuidv7Source } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import type { Lease } from './lease.js'
import { leased } from './leased.js'
import type { LeasedOptions } from './plan.js'

/** Two processes with the same operation, whose runs end when the test says so. */
function rig(options: Partial<LeasedOptions<Order, Receipt, never>> = {}) {
  const one = world()
  const reads: number[] = []
  const runs: {
    readonly lease: Lease
    readonly end: (value: Receipt) => void
    readonly fail: (error: unknown) => void
  }[] = []
  const run = (lease: Lease): Promise<Receipt> => new Promise((end, fail) => runs.push({ lease, end, fail }))
  let seed = 0
  const process = (more: Partial<LeasedOptions<Order, Receipt, never>> = {}) => {
    const count = (method: string) => {
      if (method === 'read') reads.push(one.clock.monotonicMs())
      return 'fine' as const
    }
    const store = one.store(count, { random: seededRandom(seed++) })
    return leased<Order, Receipt>('charge', chargeOptions<never>({ store, run, ...options, ...more }))
  }
  return { ...one, charge: process(), other: process(), process, runs, reads, order: one.order() }
}

/** An operation on a store that nobody can write to until it is opened. */
function slowStore(options: Partial<LeasedOptions<Order, Receipt, never>> = {}) {
  const one = Object.assign(world(), { tries: 0, isOpen: false, open: () => Object.assign(one, { isOpen: true }) })
  const runs: ((value: Receipt) => void)[] = []
  const store = one.store((method) => {
    if (method === 'insert') one.tries += 1
    return one.isOpen ? 'fine' : 'not-sent'
  })
  const run = (): Promise<Receipt> => new Promise((end) => runs.push(end))
  const charge = leased<Order, Receipt>('charge', chargeOptions<never>({ store, run, ...options }))
  return { world: one, charge, order: one.order(), runs }
}

describe('a duplicate in another process', () => {
  it('waits for the winner, looking now and then, and gets its outcome', async () => {
    const { charge, other, order, clock, runs, reads } = rig()
    const first = charge(order)
    await eventLoopTurn()
    const second = other.outcome(order)
    await clock.advance('3s')
    runs[0]?.end({ charge: 1 })
    await first
    await clock.advance('1s')
    expect(await second).toEqual({ outcome: 'succeeded', value: { charge: 1 }, replayed: true })
    expect(runs).toHaveLength(1)
    // 20 ms doubling up to 1 s, each between half and all of it.
    expect(reads.length).toBeGreaterThan(7)
    expect(reads.length).toBeLessThan(15)
    expect(reads.every((atMs) => Number.isInteger(atMs))).toBe(false)
  })

  it('waits no longer than it may, or not at all', async () => {
    const { charge, other, process, order, clock } = rig({ wait: '2s' })
    charge(order).catch(() => undefined)
    await eventLoopTurn()
    const waiting = other(order).catch((error: unknown) => error)
    await clock.advance(1_999)
    expect(await Promise.race([waiting, 'waiting'])).toBe('waiting')
    await clock.advance(1)
    expect(await waiting).toMatchObject({ code: 'OPERATION_IN_FLIGHT', details: { retryInMs: 31_000 } })
    const shorter = code(other(order, { deadline: '1s' }))
    await clock.advance('1s')
    expect(await shorter).toBe('OPERATION_IN_FLIGHT')
    expect(await code(process({ duplicates: 'refuse' })(order))).toBe('OPERATION_IN_FLIGHT')
  })

  it('has a signal of its own', async () => {
    const { charge, other, order, clock, runs } = rig()
    const first = charge(order)
    await eventLoopTurn()
    const stop = new AbortController()
    const second = other(order, { signal: stop.signal })
    await clock.advance('1s')
    stop.abort('enough')
    await expect(second).rejects.toBe('enough')
    runs[0]?.end({ charge: 1 })
    expect(await first).toEqual({ charge: 1 })
    expect(clock.pendingTimers).toBe(0)
    await expect(other(order, { signal: stop.signal })).rejects.toBe('enough')
  })

  it('becomes the one who runs when the key is released, and only one does', async () => {
    const { charge, other, order, clock, runs } = rig({ wait: '1m' })
    const calls = Array.from({ length: 10 }, (_, index) =>
      (index < 5 ? charge : other).outcome(order).catch((error: Error) => error.message),
    )
    await eventLoopTurn()
    expect(runs).toHaveLength(1)
    runs[0]?.fail(runs[0].lease.notSent(new Error('not sent')))
    await clock.advance('5s')
    expect(runs).toHaveLength(2)
    runs[1]?.end({ charge: 2 })
    await clock.advance('5s')
    const ended = await Promise.all(calls)
    expect(ended.filter((each) => each === 'not sent')).toHaveLength(1)
    expect(ended.filter((each) => typeof each === 'object' && !each.replayed)).toHaveLength(1)
    expect(ended.filter((each) => typeof each === 'object' && each.replayed)).toHaveLength(8)
    expect(runs).toHaveLength(2)
  })
})

describe('a call', () => {
  it('whose caller gives up is still brought to its end', async () => {
    const { charge, order, runs } = rig()
    const stop = new AbortController()
    const call = charge(order, { signal: stop.signal })
    await eventLoopTurn()
    stop.abort('gone')
    await expect(call).rejects.toBe('gone')
    expect(runs[0]?.lease.signal.aborted).toBe(false)
    runs[0]?.end({ charge: 1 })
    await eventLoopTurn()
    expect(await charge.outcome(order)).toEqual({ outcome: 'succeeded', value: { charge: 1 }, replayed: true })
  })

  it('whose caller gives up before there is a claim sends nothing, and leaves the key free', async () => {
    const { world: one, charge, order, runs } = slowStore()
    const stop = new AbortController()
    const call = charge(order, { signal: stop.signal })
    await eventLoopTurn()
    stop.abort('gone')
    await expect(call).rejects.toBe('gone')
    one.open()
    await one.clock.advance('2s')
    expect([runs.length, one.tries, one.records.committed.size]).toEqual([0, 2, 0])
    const again = charge(order)
    await eventLoopTurn()
    runs[0]?.({ charge: 1 })
    expect(await again).toEqual({ charge: 1 })
  })

  it('may run for longer than its outcome is remembered: the window begins with the outcome', async () => {
    const { charge, order, runs, clock, records } = rig({ window: '1100ms', lease: '1s', deadline: '10s' })
    const call = charge(order)
    await clock.advance('8s')
    expect(runs[0]?.lease.signal.aborted).toBe(false)
    runs[0]?.end({ charge: 1 })
    expect(await call).toEqual({ charge: 1 })
    expect(await charge(order)).toEqual({ charge: 1 })
    expect([...records.committed.values()]).toMatchObject([{ state: 'succeeded', claims: 1 }])
  })

  it('gets no claim later than that: it could find forgotten what somebody else has carried out meanwhile', async () => {
    const { world: one, charge, order, runs } = slowStore({ window: '1100ms', lease: '1s', deadline: '10s' })
    const call = code(charge(order))
    await one.clock.advance('1100ms')
    expect(await call).toBe('Error: connection refused')
    one.open()
    await one.clock.advance('9s')
    expect(runs).toHaveLength(0)
  })

  it('takes the shorter of its own deadline and that of the intent around it', async () => {
    const { charge, order, runs, clock } = rig()
    const deadline = { expiresAtMs: clock.monotonicMs() + 500 }
    withIntent({ deadline }, () => charge(order)).catch(() => undefined)
    await eventLoopTurn()
    expect(runs[0]?.lease.deadline).toEqual(deadline)
    expect(await code(charge(order, { deadline: 0 }))).toBe('DEADLINE_EXCEEDED')
  })

  it('is refused inside a transaction, which would be repeated with it', async () => {
    const { charge, order, records } = rig()
    await memory({ name: 'other' }).transact(async () => {
      expect(await code(charge(order))).toBe('TRANSACTION_NESTED')
    })
    expect(records.committed.size).toBe(0)
  })

  it('is refused before anything is claimed where its signal is none', async () => {
    const { charge, order, records, runs } = rig()
    expect(await code(charge(order, { signal: null as never }))).toBe('ARGUMENT_INVALID')
    expect([records.committed.size, runs.length]).toEqual([0, 0])
  })

  it('is refused where its key is too old', async () => {
    const { charge, clock, runs } = rig({ oldestKey: '1h' })
    const order = { key: uuidv7Source({ clock })() as Order['key'], amount: 1 }
    const call = charge(order)
    await eventLoopTurn()
    runs[0]?.end({ charge: 1 })
    await call
    await clock.advance('2h')
    expect(await code(charge(order))).toBe('KEY_TOO_OLD')
  })

  it('from inside itself, with the same key, is refused', async () => {
    const { process, order } = rig()
    const charge: ReturnType<typeof process> = process({
      run: async () => {
        expect(await code(charge(order))).toBe('OPERATION_REENTERED')
        return { charge: 1 }
      },
    })
    expect(await charge(order)).toEqual({ charge: 1 })
  })

  it('executes anew after the window, which a replay does not extend', async () => {
    const { charge, order, clock, runs, records } = rig()
    const first = charge(order)
    await eventLoopTurn()
    await clock.advance('10s')
    runs[0]?.end({ charge: 1 })
    await first
    await clock.advance(86_399_999)
    expect(await charge(order)).toEqual({ charge: 1 })
    await clock.advance(1)
    const again = charge.outcome(order)
    await eventLoopTurn()
    runs[1]?.end({ charge: 2 })
    expect(await again).toEqual({ outcome: 'succeeded', value: { charge: 2 }, replayed: false })
    expect([...records.committed.values()]).toMatchObject([{ claims: 1, fence: 2 }])
  })

  it('does not touch a record of a newer format', async () => {
    const { charge, other, order, records } = rig()
    charge(order).catch(() => undefined)
    await eventLoopTurn()
    const [[id, record] = [] as never] = [...records.committed]
    records.committed.set(id, { ...record, format: 3 })
    expect(await code(other(order))).toBe('RECORD_FORMAT_NEWER')
    expect(records.committed.get(id)).toEqual({ ...record, format: 3 })
  })
})

describe('duplicates in one process', () => {
  it('wait in memory, ask the store nothing, and are all told what was stored', async () => {
    const { charge, order, clock, runs, reads } = rig()
    const calls = Array.from({ length: 1_000 }, () => charge.outcome(order))
    const wrong = code(charge({ ...order, amount: 6 }))
    await clock.advance('1s')
    expect(await wrong).toBe('OPERATION_MISMATCH')
    runs[0]?.end({ charge: 1 })
    const ended = await Promise.all(calls)
    expect(ended.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(ended.every((end) => end.outcome === 'succeeded' && end.value.charge === 1)).toBe(true)
    expect([runs.length, reads.length]).toEqual([1, 0])
  })

  it('go on when their leader gives up waiting for another process', async () => {
    const { charge, other, order, clock, runs } = rig({ wait: '1m' })
    const first = charge(order)
    await eventLoopTurn()
    const stop = new AbortController()
    const leader = other(order, { signal: stop.signal })
    const follower = other.outcome(order)
    await clock.advance('1s')
    stop.abort('enough')
    await expect(leader).rejects.toBe('enough')
    runs[0]?.end({ charge: 1 })
    await first
    await clock.advance('2s')
    expect(await follower).toEqual({ outcome: 'succeeded', value: { charge: 1 }, replayed: true })
    expect(runs).toHaveLength(1)
  })
})
