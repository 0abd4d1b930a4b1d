import diagnostics from 'node:diagnostics_channel'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import {
  chargeOptions,
  code,
  type Order,
  type Receipt,
  type StoreFault,
  type World,
  world,
} from '../../../test/idempotency/leased-world.js'
import { type OperationLeaseEvent, operationLease } from '../../telemetry/index.js'
import { faultPoints } from '../../testing/index.js'
import { fail } from '../outcome.js'
import { leasedFaultPoints } from './fault-points.js'
import { leased } from './leased.js'
import type { LeasedOptions } from './plan.js'
import { happened, rerunKeyed, resolve } from './recovery.js'

const reached = new Set<string>()
let points = faultPoints()

afterEach(() => {
  for (const point of points.reached) reached.add(point)
  points.disarm()
  points = faultPoints()
})

afterAll(() => points.disarm())

type Run = LeasedOptions<Order, Receipt, 'declined'>['run']
const unsent = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })

// How a run can end: what it does, what the caller hears, what the record is, and how many calls went out.
const endings: readonly (readonly [string, Run, string, string | undefined, number])[] = [
  ['succeeds', (lease) => lease.effect('a', () => ({ charge: 1 })), 'fulfilled', 'succeeded', 1],
  ['fails for good', async (lease) => lease.effect('a', () => fail('declined')), 'OPERATION_FAILED', 'failed', 1],
  ['sends nothing', (lease) => lease.effect('a', () => Promise.reject(unsent)), 'ECONNREFUSED', undefined, 1],
  [
    'may have sent',
    (lease) => lease.effect('a', () => Promise.reject(new Error('x'))),
    'OPERATION_UNKNOWN',
    'unknown',
    1,
  ],
]

function rig(one: World, run: Run, fault: (nth: number) => StoreFault) {
  let statements = 0
  let calls = 0
  const counting: Run = (lease, input) => {
    const effect: typeof lease.effect = (step, call) =>
      lease.effect(step, (given) => {
        calls += 1
        return call(given)
      })
    return run(Object.assign(Object.create(lease), { effect, renew: () => lease.renew() }), input)
  }
  const store = one.store(() => {
    statements += 1
    return fault(statements)
  })
  const parts = chargeOptions<'declined'>({
    store,
    run: async (lease, input) => {
      await lease.renew()
      return counting(lease, input)
    },
    failures: ['declined'],
  })
  const charge = leased<Order, Receipt, 'declined'>('charge', parts)
  return { charge, statements: () => statements, calls: () => calls }
}

describe.each(endings)('an operation that %s', (_how, run, heard, state, calls) => {
  it.each([1, 2, 3].flatMap((nth) => [[nth, 'answer-lost'] as const, [nth, 'not-sent'] as const]))(
    'ends in the same way when statement %d of its runner meets: %s',
    async (nth, fault) => {
      const one = world()
      const { charge, statements, calls: made } = rig(one, run, (at) => (at === nth ? fault : 'fine'))
      const call = code(charge(one.order()))
      await one.clock.advance('5s')
      expect(await call).toBe(heard)
      expect([...one.records.committed.values()].map((record) => record.state)).toEqual(
        state === undefined ? [] : [state],
      )
      expect([...one.records.committed.values()].map((record) => record.claims)).toEqual(state === undefined ? [] : [1])
      expect(made()).toBe(calls)
      // Claim, renewal and end, and one more for the one that was lost.
      expect(statements()).toBeGreaterThan(3)
      expect(one.clock.pendingTimers).toBe(0)
    },
  )
})

describe('a completion that cannot be written', () => {
  it('is tried until lease and margin are over, then the caller hears that the outcome is unknown, and recovery follows', async () => {
    const one = world()
    let away = false
    const keys: string[] = []
    const store = one.store(() => (away ? 'not-sent' : 'fine'))
    const run: Run = (lease) =>
      lease.effect('a', ({ key }) => {
        keys.push(key)
        away = keys.length === 1
        return { charge: keys.length }
      })
    const recover = rerunKeyed('24h')
    const charge = leased<Order, Receipt>('charge', chargeOptions({ store, run: run as never, recover }))
    const order = one.order()
    const call = charge(order, { deadline: '5s' }).catch((error: unknown) => error)
    await one.clock.advance('32s')
    expect(await Promise.race([call, 'trying'])).toBe('trying')
    await one.clock.advance('1s')
    expect(await call).toMatchObject({
      code: 'OPERATION_UNKNOWN',
      details: { because: 'outcome-not-stored', ran: true },
      cause: expect.any(Error),
    })
    expect([...one.records.committed.values()]).toMatchObject([{ state: 'claimed' }])
    away = false
    await one.clock.advance('1s')
    expect(await charge(order)).toEqual({ charge: 2 })
    expect(keys[0]).toBe(keys[1])
  })
})

describe('a claim that cannot be made', () => {
  it('gives up at the deadline with the store’s error, and nothing has run', async () => {
    const one = world()
    const { charge, calls } = rig(
      one,
      () => expect.unreachable(),
      () => 'not-sent',
    )
    const call = code(charge(one.order(), { deadline: '2s' }))
    await one.clock.advance('2s')
    expect(await call).toBe('Error: connection refused')
    expect(calls()).toBe(0)
  })
})

describe('fault points', () => {
  it('that throw before the call leave nothing behind, and after it leave the outcome unknown', async () => {
    for (const [point, state] of [
      ['leased.before-effect', []],
      ['leased.after-effect', ['unknown']],
      ['leased.claimed', ['unknown']],
    ] as const) {
      const one = world()
      const { charge } = rig(
        one,
        (lease) => lease.effect('a', () => ({ charge: 1 })),
        () => 'fine',
      )
      points.throwAt(point)
      await charge(one.order()).catch(() => undefined)
      expect([...one.records.committed.values()].map((record) => record.state)).toEqual(state)
      points.disarm()
      points = faultPoints()
    }
  })

  it.each([
    ['leased.before-release', 'leased.released', unsent],
    ['leased.before-lose', 'leased.unknown', new Error('maybe')],
  ] as const)(
    'after %s, %s stands for a write that was confirmed, and is not reached where none was',
    async (before, after, error) => {
      const one = world()
      const body: Run = (lease) => lease.effect('a', () => Promise.reject(error))
      // Claim and renewal arrive, nothing after them.
      const { charge } = rig(one, body, (nth) => (nth > 2 ? 'not-sent' : 'fine'))
      const call = code(charge(one.order()))
      await one.clock.advance('1m')
      await call
      expect([points.count(before), points.count(after)]).toEqual([1, 0])
      expect([...one.records.committed.values()]).toMatchObject([{ state: 'claimed' }])
    },
  )

  it('are all reached', async () => {
    const one = world()
    const asks = leased<Order, Receipt>(
      'charge',
      chargeOptions({
        store: one.store(),
        run: () => Promise.reject(new Error('lost')),
        recover: resolve(() => happened({ charge: 1 })),
      }),
    )
    const order = one.order()
    expect(await code(asks(order))).toBe('OPERATION_UNKNOWN')
    expect(await asks(order)).toEqual({ charge: 1 })
    for (const [, run] of endings) {
      const { charge } = rig(one, run, () => 'fine')
      await charge(one.order()).catch(() => undefined)
    }
    for (const point of points.reached) reached.add(point)
    expect([...reached].filter((point) => point.startsWith('leased.')).sort()).toEqual([...leasedFaultPoints].sort())
  })
})

describe('events', () => {
  it('tell the life of each claim', async () => {
    const heard: OperationLeaseEvent[] = []
    const listen = (message: unknown): void => void heard.push(message as OperationLeaseEvent)
    diagnostics.subscribe(operationLease.name, listen)
    const one = world()
    for (const [, run] of endings) {
      let lost = false
      const { charge } = rig(one, run, (nth) => {
        const now = nth === 2 && !lost ? 'not-sent' : 'fine'
        lost ||= nth === 2
        return now
      })
      const call = code(charge(one.order()))
      await one.clock.advance('2s')
      await call
    }
    diagnostics.unsubscribe(operationLease.name, listen)
    const of = (fence: number) => heard.filter((event) => event.fence === fence).map(({ what, why }) => [what, why])
    const begun = [
      ['claimed', undefined],
      ['renewal-failed', undefined],
    ]
    expect(of(1)).toEqual([...begun, ['completed', 'succeeded']])
    expect(of(2)).toEqual([...begun, ['completed', 'failed']])
    expect(of(3)).toEqual([...begun, ['released', undefined]])
    expect(of(4)).toEqual([...begun, ['unknown', 'unclassified']])
    // The digest that names the record tells of the key, and no other: neither key nor content is in there.
    const digests = JSON.stringify(heard).match(/sha256:[\w-]+/g)
    expect(digests).toEqual(heard.map(({ id }) => id))
    expect([...one.records.committed.keys()].every((id) => digests?.includes(id))).toBe(true)
  })
})
