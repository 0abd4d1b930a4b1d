import { describe, expect, it } from 'vitest'
import {
  chargeOptions,
  code,
  type Order,
  type Receipt,
  type StoreFault,
  world,
} from '../../../test/idempotency/leased-world.js'
import { mintKey, scope } from '../../identity/index.js'
import { operationId } from '../call-identity.js'
import { leased } from '../leased/leased.js'
import type { LeasedOptions } from '../leased/plan.js'
import { didNotHappen, failedFinally, happened, stillUnknown } from '../leased/recovery.js'
import { fail } from '../outcome.js'
import { lookup } from './lookup.js'
import { purge } from './purge.js'
import { settle } from './settle.js'

const by = { reason: 'seen in the statement', actor: 'ada' }

function rig(run: LeasedOptions<Order, Receipt, 'declined'>['run']) {
  const one = world()
  const faults: { next: StoreFault[] } = { next: [] }
  const store = one.store(() => faults.next.shift() ?? 'fine')
  const { clock } = one
  const charge = leased<Order, Receipt, 'declined'>(
    'charge',
    chargeOptions<'declined'>({ store, run, failures: ['declined'] }),
  )
  const order = one.order()
  const which = { operation: charge, scope: scope('tenant'), key: order.key }
  const look = () => lookup(which, { clock })
  return { ...one, faults, store, charge, order, which, look }
}

const lost = async (): Promise<Receipt> => {
  throw new Error('lost')
}

describe('looking a key up', () => {
  it('says what is known, with the outcome, and changes nothing', async () => {
    const { charge, order, which, look, records, clock, store } = rig(async () => ({ charge: 3 }))
    expect(await look()).toEqual({ state: 'absent', nowMs: clock.wallMs(), notes: [] })
    await charge(order)
    const before = structuredClone([...records.committed])
    expect(await look()).toMatchObject({
      state: 'succeeded',
      claims: 1,
      forgotten: false,
      outcome: { outcome: 'succeeded', value: { charge: 3 } },
    })
    expect(await lookup({ ...which, operation: 'charge', store }, { clock })).toMatchObject({
      state: 'succeeded',
      outcome: undefined,
    })
    expect([...records.committed]).toEqual(before)
    await clock.advance('24h')
    expect(await look()).toMatchObject({ state: 'succeeded', forgotten: true })
    expect(await lookup({ ...which, scope: scope('other') }, { clock })).toMatchObject({ state: 'absent' })
    await expect(lookup({ ...which, operation: 'charge' })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    await expect(lookup({ ...which, operation: 7 as never })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  it('says that it is done also where its outcome is a tombstone, or cannot be read', async () => {
    const { charge, order, look, records } = rig(async () => ({ charge: 3, at: new Date(0) }))
    await charge(order)
    expect(await look()).toMatchObject({ state: 'succeeded', outcome: undefined, unreadable: 'OUTCOME_UNREADABLE' })
    for (const [id, record] of records.committed) records.committed.set(id, { ...record, codec: 'tombstone' })
    expect(await look()).toMatchObject({ state: 'succeeded', outcome: undefined, unreadable: 'OUTCOME_TOO_LARGE' })
  })
})

describe('settling', () => {
  it.each([
    ['happened', happened({ charge: 9 }), 'succeeded'],
    ['failed for good', failedFinally(fail('declined', 1)), 'failed'],
  ] as const)(
    'an unknown outcome that %s replays it to every repeat, with a note',
    async (_what, settlement, state) => {
      const { charge, order, which, look, clock } = rig(lost)
      await expect(charge(order)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
      await settle(which, settlement, { ...by, clock })
      expect(await charge.outcome(order)).toMatchObject({ outcome: state, replayed: true })
      expect(await look()).toMatchObject({
        state,
        because: 'settled',
        notes: [{ action: 'settled', ...by, from: 'unknown', to: state, atMs: clock.wallMs() }],
      })
      await expect(settle(which, didNotHappen(), by)).rejects.toMatchObject({
        code: 'SETTLE_REFUSED',
        details: { because: 'finished' },
      })
    },
  )

  it('one that did not happen frees the key, with a note', async () => {
    let runs = 0
    const { charge, order, which, look, clock } = rig(async () => {
      runs += 1
      if (runs === 1) throw new Error('lost')
      return { charge: runs }
    })
    await charge(order).catch(() => undefined)
    await settle(which, didNotHappen(), { ...by, clock })
    expect(await look()).toMatchObject({ state: 'absent', notes: [{ to: 'absent' }] })
    expect(await charge(order)).toEqual({ charge: 2 })
  })

  it('is refused where there is nothing to settle', async () => {
    const { charge, order, which, clock, records } = rig(() => new Promise(() => undefined))
    const attempt = () => settle(which, didNotHappen(), { ...by, clock })
    await expect(attempt()).rejects.toMatchObject({ code: 'SETTLE_REFUSED', details: { because: 'absent' } })
    charge(order, { deadline: '1s' }).catch(() => undefined)
    await expect(attempt()).rejects.toMatchObject({ details: { because: 'in-flight', retryInMs: 33_000 } })
    await clock.advance('33s')
    await attempt()
    expect(records.committed.size).toBe(0)
  })

  it.each([
    ['no reason', happened(1), { ...by, reason: ' ' }],
    ['no actor', happened(1), { ...by, actor: '' }],
    ['no decision', stillUnknown(), by],
    ['nonsense', 'succeeded', by],
  ])('is refused with %s', async (_what, settlement, options) => {
    const { which } = rig(lost)
    await expect(settle(which, settlement as never, options)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  it('recognises its own work after a lost answer', async () => {
    for (const settlement of [happened({ charge: 9 }), didNotHappen()]) {
      const { charge, order, which, look, clock, faults } = rig(lost)
      await charge(order).catch(() => undefined)
      faults.next = ['fine', 'answer-lost']
      const settled = settle(which, settlement, { ...by, clock })
      await clock.advance('1s')
      await settled
      expect((await look()).notes).toHaveLength(1)
    }
  })

  it('recognises its own work by its note, where the freed key is in use again', async () => {
    const { charge, order, which, clock, store, faults } = rig(lost)
    await charge(order).catch(() => undefined)
    faults.next = ['fine', 'answer-lost', 'not-sent']
    const settled = settle(which, didNotHappen(), { ...by, clock })
    await clock.advance(0)
    faults.next = []
    charge(order).catch(() => undefined)
    await clock.advance('1s')
    await settled
    expect(
      (await store.records.inspection?.notes(operationId('charge', which.scope, order.key), {} as never))?.length,
    ).toBe(1)
  })

  it('says that it may have happened, where nobody answers any more', async () => {
    const { charge, order, which, look, clock, faults } = rig(lost)
    await charge(order).catch(() => undefined)
    faults.next = ['fine', 'answer-lost', ...Array(1_000).fill('not-sent')]
    const settled = code(settle(which, happened({ charge: 9 }), { ...by, clock }))
    await clock.advance('5s')
    expect(await settled).toBe('UPKEEP_UNKNOWN')
    faults.next = []
    expect(await look()).toMatchObject({ state: 'succeeded' })
    await settle(which, happened({ charge: 9 }), { ...by, clock })
    expect((await look()).notes).toHaveLength(1)
  })

  it('works by name, and is remembered for ever then', async () => {
    const { charge, order, which, look, store, clock } = rig(lost)
    await charge(order).catch(() => undefined)
    await settle({ ...which, operation: 'charge', store }, failedFinally(fail('declined')), { ...by, clock })
    expect(await look()).toMatchObject({ state: 'failed', expiresAtMs: undefined })
    await expect(charge(order)).rejects.toMatchObject({ failure: { code: 'declined' } })
  })
})

it('settles again what was settled the same way, and refuses another decision', async () => {
  const { charge, order, which, clock, records } = rig(lost)
  await charge(order).catch(() => undefined)
  for (let times = 0; times < 2; times += 1) await settle(which, happened({ charge: 7 }), { ...by, clock })
  await expect(settle(which, happened({ charge: 8 }), { ...by, clock })).rejects.toMatchObject({
    details: { because: 'finished' },
  })
  expect(await charge(order)).toEqual({ charge: 7 })
  expect(records.committed.size).toBe(1)
})

describe('a purge', () => {
  it('forgets what is finished and past its window, in batches with pauses, and nothing else', async () => {
    const { charge, clock, store, records } = rig(async (_lease, { amount }) => {
      if (amount === 0) throw new Error('lost')
      return { charge: amount }
    })
    for (let index = 0; index < 25; index += 1) await charge({ key: mintKey(), amount: 1 })
    await charge({ key: mintKey(), amount: 0 }).catch(() => undefined)
    await clock.advance(86_399_999)
    expect(await purge({ store, clock })).toEqual({
      finished: 0,
      unknown: 0,
      audit: 0,
      markers: 0,
      unconfirmed: 0,
      interrupted: false,
    })
    await clock.advance(1)
    const progress: number[] = []
    const startedMs = clock.monotonicMs()
    const running = purge({
      store,
      clock,
      batch: 10,
      pause: '1s',
      onProgress: ({ finished }) => progress.push(finished),
    })
    await clock.advance('10s')
    expect(await running).toEqual({
      finished: 25,
      unknown: 0,
      audit: 0,
      markers: 0,
      unconfirmed: 0,
      interrupted: false,
    })
    expect(progress).toEqual([10, 20, 25])
    expect(clock.monotonicMs() - startedMs).toBe(10_000)
    expect([...records.committed.values()]).toMatchObject([{ state: 'unknown' }])
  })

  it('forgets unknown outcomes only where told, each with a note, and old notes only where told', async () => {
    const { charge, order, which, look, clock, store } = rig(lost)
    await charge(order).catch(() => undefined)
    await clock.advance('90d')
    expect(await purge({ store, clock, unknownAfter: '91d' })).toMatchObject({ unknown: 0 })
    expect(await purge({ store, clock, unknownAfter: '90d' })).toMatchObject({ unknown: 1 })
    expect(await look()).toMatchObject({
      state: 'absent',
      notes: [{ action: 'dropped', from: 'unknown', to: 'absent' }],
    })
    await clock.advance('1d')
    expect(await purge({ store, clock, auditAfter: '1d' })).toMatchObject({ audit: 1 })
    expect(await look()).toMatchObject({ notes: [] })
    await expect(settle(which, didNotHappen(), by)).rejects.toMatchObject({ details: { because: 'absent' } })
  })

  it('counts what may have happened, and fails with it where nobody answers any more', async () => {
    const { charge, clock, store, faults } = rig(async () => ({ charge: 1 }))
    for (let index = 0; index < 3; index += 1) await charge({ key: mintKey(), amount: 1 })
    await clock.advance('24h')
    faults.next = ['answer-lost']
    const running = purge({ store, clock, batch: 1 })
    await clock.advance('10s')
    expect(await running).toMatchObject({ finished: 2, unconfirmed: 1, interrupted: false })
    await charge({ key: mintKey(), amount: 1 })
    await clock.advance('24h')
    faults.next = ['fine', 'answer-lost', ...Array(1_000).fill('not-sent')]
    const failing = purge({ store, clock, batch: 1 }).catch((error) => error)
    await clock.advance('1m')
    expect(await failing).toMatchObject({ code: 'UPKEEP_UNKNOWN', details: { finished: 1 } })
  })

  it('runs again and again until its signal, through failures of the store', async () => {
    const { charge, order, clock, store, faults } = rig(async () => ({ charge: 1 }))
    await charge(order)
    await clock.advance('24h')
    const stop = new AbortController()
    const errors: unknown[] = []
    faults.next = Array(1_000).fill('not-sent')
    const running = purge({ store, clock, every: '1h', signal: stop.signal, onError: (error) => errors.push(error) })
    await clock.advance('1m')
    faults.next = []
    await clock.advance('2h')
    stop.abort()
    expect(await running).toMatchObject({ finished: 1 })
    expect(errors).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })
})
