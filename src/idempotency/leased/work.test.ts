import { expect, it } from 'vitest'
import { gate } from '../../../test/gate.js'
import { chargeOptions, code, type Order, type Receipt, world } from '../../../test/idempotency/leased-world.js'
import { scope, withIntent } from '../../identity/index.js'
import { deadlineAfter, eventLoopTurn } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { operationId } from '../call-identity.js'
import { leased } from './leased.js'
import type { LeasedOptions } from './plan.js'
import { didNotHappen, rerunKeyed, resolve } from './recovery.js'
import { begin, workState } from './work.js'

const tenant = scope('tenant')

function working(more: Partial<LeasedOptions<Order, Receipt, never>> = {}) {
  const inner = world()
  const work = gate<Receipt>()
  let runs = 0
  const run = async () => {
    runs += 1
    return work.opened
  }
  const charge = leased<Order, Receipt>('charge', chargeOptions({ store: inner.store(), run, ...more }))
  const one = inner.order()
  const which = { id: operationId('charge', tenant, one.key), scopes: [tenant] }
  return { ...inner, work, charge, one, which, runs: () => runs }
}

it('returns when the claim is durable, and the work goes on to its outcome', async () => {
  const { charge, one, which, work, records, runs, clock } = working({ duplicates: 'refuse' })
  const begun = await begin(charge, one)
  if (begun.state !== 'working') return expect.unreachable()
  expect([...records.committed.values()]).toMatchObject([{ state: 'claimed', claims: 1 }])
  expect(await workState(charge, which)).toEqual({ state: 'working', sinceMs: clock.wallMs() })
  expect(await code(begin(charge, one))).toBe('OPERATION_IN_FLIGHT')
  expect(await code(begin(charge, { ...one, amount: 6 }))).toBe('OPERATION_MISMATCH')
  work.open({ charge: 7 })
  expect(await begun.end).toEqual({ outcome: 'succeeded', value: { charge: 7 }, replayed: false })
  const ended = { state: 'ended', outcome: { outcome: 'succeeded', value: { charge: 7 }, replayed: true } }
  expect(await begin(charge, one)).toEqual(ended)
  expect(await workState(charge, which)).toEqual(ended)
  expect([runs(), clock.pendingTimers]).toEqual([1, 0])
})

it('works under a renewed lease for as long as its limit says, whatever deadline is around', async () => {
  const { charge, one, which, work, clock } = working({ lease: '30s', deadline: '5s' })
  const soon = { deadline: deadlineAfter('1s', clock) }
  const begun = await withIntent(soon, () => begin(charge, one, { workLimit: '10m' }))
  if (begun.state !== 'working') return expect.unreachable()
  for (let minutes = 0; minutes < 9; minutes += 1) await clock.advance('1m')
  expect(await workState(charge, which)).toMatchObject({ state: 'working' })
  await clock.advance('59s')
  work.open({ charge: 1 })
  expect(await begun.end).toMatchObject({ outcome: 'succeeded' })
})

it('ends work at its limit: its lease is not renewed any more, and nobody knows what became of it', async () => {
  const { charge, one, which, clock } = working()
  const begun = await begin(charge, one, { workLimit: '1m' })
  if (begun.state !== 'working') return expect.unreachable()
  for (let seconds = 0; seconds < 120; seconds += 5) await clock.advance('5s')
  expect(await code(begun.end)).toBe('LEASE_LOST')
  expect(await workState(charge, which)).toEqual({ state: 'unknown' })
})

it.each([
  ['hold', undefined],
  ['rerun', rerunKeyed('1h')],
  ['resolve', resolve<unknown, Receipt>(() => didNotHappen())],
])('says that work is unknown when its owner is gone, and changes nothing: %s', async (_kind, recover) => {
  const { charge, one, which, records, clock, store } = working(recover === undefined ? {} : { recover })
  await begin(charge, one)
  // The same records, as another process sees them: the one that works is not heard of again.
  const other = leased<Order, Receipt>(
    'charge',
    chargeOptions({ store: store(), run: async () => ({ charge: 2 }), ...(recover === undefined ? {} : { recover }) }),
  )
  Object.assign(records, { swap: () => Promise.reject(new Error('connection refused')) })
  expect(await workState(other, which)).toMatchObject({ state: 'working' })
  await clock.advance('29s')
  expect(await workState(other, which)).toMatchObject({ state: 'working' })
  await clock.advance('10s')
  expect(await workState(other, which)).toEqual({ state: 'unknown' })
  expect([...records.committed.values()]).toMatchObject([{ state: 'claimed', claims: 1 }])
})

it('knows work of the scopes that are named alone, and none that is released or forgotten', async () => {
  const { charge, one, which, work, clock } = working()
  expect(await workState(charge, which)).toEqual({ state: 'absent' })
  const begun = await begin(charge, one)
  if (begun.state !== 'working') return expect.unreachable()
  expect(await workState(charge, { ...which, scopes: [scope('other')] })).toEqual({ state: 'absent' })
  expect(await workState(charge, { ...which, scopes: [scope('other'), tenant] })).toMatchObject({ state: 'working' })
  work.shut(Object.assign(new Error('connect'), { code: 'ECONNREFUSED', syscall: 'connect' }))
  expect(await code(begun.end)).toBe('OPERATION_UNKNOWN')
  expect(await workState(charge, which)).toEqual({ state: 'unknown' })
  const released = working({
    run: (lease) => {
      throw lease.notSent(new Error('nothing was sent'))
    },
  })
  const gone = await begin(released.charge, released.one)
  if (gone.state !== 'working') return expect.unreachable()
  await gone.end.catch(() => undefined)
  expect(await workState(released.charge, released.which)).toEqual({ state: 'absent' })
  const done = working({ run: async () => ({ charge: 1 }) })
  await await begin(done.charge, done.one).then((it) => (it.state === 'working' ? it.end : it.outcome))
  expect(await workState(done.charge, done.which)).toMatchObject({ state: 'ended' })
  await done.clock.advance('25h')
  expect(await workState(done.charge, done.which)).toEqual({ state: 'absent' })
  expect(clock.monotonicMs()).toBe(0)
})

it('knows the work of a store with a pepper', async () => {
  const db = memory({ name: 'hidden', pepper: 'the-secret-of-this-very-test' })
  const charge = leased<Order, Receipt>('charge', chargeOptions({ store: db, run: async () => ({ charge: 1 }) }))
  const one = world().order()
  await charge(one)
  const id = operationId('charge', tenant, one.key, db.records.pepper)
  expect(await workState(charge, { id, scopes: [tenant] })).toMatchObject({ state: 'ended' })
  expect(await workState(charge, { id, scopes: [scope('other')] })).toEqual({ state: 'absent' })
})

it('refuses what cannot be begun, and a rejection that nobody listens to ends nothing', async () => {
  const { charge, one, work } = working()
  expect(await code(begin(charge, one, { workLimit: 'soon' as never }))).toBe('DURATION_INVALID')
  expect(await code(begin(charge, one, { signal: 1 } as never))).toBe('ARGUMENT_INVALID')
  expect(await code(begin((() => undefined) as never, one))).toBe('ARGUMENT_INVALID')
  const db = memory({ name: 'shop' })
  expect(await code(db.transact(() => begin(charge, one)))).not.toBe('fulfilled')
  await begin(charge, one)
  work.shut(new Error('nobody hears this'))
  await eventLoopTurn()
  await eventLoopTurn()
})
