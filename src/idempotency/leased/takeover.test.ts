import { describe, expect, it } from 'vitest'
import { gate } from '../../../test/gate.js'
import {
  code,
  type Options,
  type Order,
  only,
  process,
  type Receipt,
  type Work,
  type World,
  world,
} from '../../../test/idempotency/leased-world.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { fail } from '../outcome.js'
import type { Lease } from './lease.js'
import {
  didNotHappen,
  failedFinally,
  happened,
  hold,
  type Recover,
  type ResolveCall,
  rerunKeyed,
  resolve,
  stillUnknown,
} from './recovery.js'

describe('the heartbeat', () => {
  it('keeps a claim for as long as the body works, at a third of the lease', async () => {
    const one = world()
    const work = gate<Receipt>()
    const owner = process(one, () => work.opened)
    const other = process(one, () => expect.unreachable(), { recover: rerunKeyed('24h'), wait: '200s' })
    const order = one.order()
    const first = owner.charge(order)
    await one.clock.advance('10s')
    expect(only(one)).toMatchObject({ version: 2, dueAtMs: one.clock.wallMs() + 30_000 })
    await one.clock.advance('60s')
    expect(only(one)).toMatchObject({ state: 'claimed', claims: 1, version: 8 })
    const second = other.charge.outcome(order)
    await one.clock.advance('60s')
    work.open({ charge: 1 })
    expect(await first).toEqual({ charge: 1 })
    await one.clock.advance('2s')
    expect(await second).toEqual({ outcome: 'succeeded', value: { charge: 1 }, replayed: true })
  })

  it('ends with the deadline, and the call with the lease', async () => {
    const one = world()
    let seen: Lease | undefined
    const owner = process(one, (lease) => {
      seen = lease
      return new Promise(() => undefined)
    })
    const call = code(owner.charge(one.order(), { deadline: '25s' }))
    await one.clock.advance('24s')
    expect(seen?.signal.aborted).toBe(false)
    await one.clock.advance('1s')
    expect(seen?.signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(await code(seen?.effect('late', () => expect.unreachable()) as Promise<unknown>)).toBe('DEADLINE_EXCEEDED')
    await one.clock.advance('30s')
    expect(await call).toBe('LEASE_LOST')
    expect(one.clock.pendingTimers).toBe(0)
  })

  it('goes on after failures, and gives up the claim when none is confirmed in time', async () => {
    const one = world()
    let seen: Lease | undefined
    const owner = process(one, (lease) => {
      seen = lease
      return new Promise(() => undefined)
    })
    const call = code(owner.charge(one.order()))
    await one.clock.advance('9s')
    owner.faults.now = 'not-sent'
    await one.clock.advance('15s')
    owner.faults.now = 'fine'
    await one.clock.advance('10s')
    expect(seen?.signal.aborted).toBe(false)
    owner.faults.now = 'answer-lost'
    await one.clock.advance('31s')
    expect(seen?.signal.reason).toMatchObject({ code: 'LEASE_LOST', details: { because: 'not-renewed' } })
    expect(await call).toBe('LEASE_LOST')
    owner.faults.now = 'fine'
    const { version } = only(one) ?? { version: 0 }
    await one.clock.advance('1h')
    expect(only(one)).toMatchObject({ version, state: 'claimed' })
  })
})

it('ends when lease and margin do, where a codec never comes to an end, and leaves the key to others', async () => {
  const one = world()
  const stuck = { name: 'stuck', encode: () => new Promise<string>(() => undefined), decode: () => ({ charge: 0 }) }
  const owner = process(one, async () => ({ charge: 1 }), { codec: stuck, deadline: '10s' })
  const order = one.order()
  const call = code(owner.charge(order))
  await one.clock.advance('2m')
  expect(await call).toBe('OPERATION_UNKNOWN')
  expect(only(one)).toMatchObject({ state: 'unknown', because: 'outcome-not-encoded' })
  const other = process(one, async () => ({ charge: 2 }), { recover: rerunKeyed('24h') })
  expect(await other.charge(order)).toEqual({ charge: 2 })
})

describe('a claim that was lost only because no heartbeat was confirmed in time', () => {
  const stopped = async (one: World, options: Options = {}) => {
    const work = gate<Receipt>()
    let signal: AbortSignal | undefined
    const run = (lease: Lease) => {
      signal = lease.signal
      return work.opened
    }
    const owner = process(one, run, { recover: rerunKeyed('24h'), ...options })
    const order = one.order()
    const call = owner.charge.outcome(order).catch((error: unknown) => error)
    await eventLoopTurn()
    owner.clock.pause()
    const goOn = async () => {
      owner.clock.resume()
      await eventLoopTurn()
      // The race happened: the owner took its claim for lost before its body returned.
      expect(signal?.reason).toMatchObject({ code: 'LEASE_LOST', details: { because: 'not-renewed' } })
    }
    return { call, goOn, work, owner, order }
  }

  it('is still completed where the store says that nobody has it', async () => {
    const one = world()
    const { call, goOn, work } = await stopped(one)
    await one.clock.advance('40s')
    await goOn()
    work.open({ charge: 1 })
    expect(await call).toEqual({ outcome: 'succeeded', value: { charge: 1 }, replayed: false })
    expect(only(one)).toMatchObject({ state: 'succeeded', claims: 1 })
    await one.clock.advance('1h')
    expect(one.clock.pendingTimers).toBe(0)
  })

  it('is still released, or told to be unknown, by what its body threw', async () => {
    const one = world()
    const { call, goOn, work } = await stopped(one)
    await one.clock.advance('40s')
    await goOn()
    work.shut(new Error('reset'))
    expect(await call).toMatchObject({ code: 'OPERATION_UNKNOWN', details: { because: 'unclassified' } })
    expect(only(one)).toMatchObject({ state: 'unknown', because: 'unclassified' })
  })

  it('is refused where somebody else has it, who decides', async () => {
    const one = world()
    const { call, goOn, work, order } = await stopped(one)
    const other = process(one, async () => ({ charge: 2 }), { recover: rerunKeyed('24h') })
    await one.clock.advance('40s')
    expect(await other.charge(order)).toEqual({ charge: 2 })
    await goOn()
    work.open({ charge: 1 })
    expect(await call).toMatchObject({ code: 'LEASE_LOST', details: { because: 'taken-over-before-completion' } })
    expect(await other.charge(order)).toEqual({ charge: 2 })
  })

  it('is refused where a sweep found its lease over', async () => {
    const one = world()
    const { call, goOn, work } = await stopped(one)
    await one.clock.advance('40s')
    const query = { operations: ['charge'], limit: 1, marginMs: 3_000, baseMs: 1_000, capMs: 1_000 }
    await one.records.due(query)
    await goOn()
    work.open({ charge: 1 })
    expect(await call).toMatchObject({ code: 'LEASE_LOST', details: { because: 'expired-before-completion' } })
    expect(only(one)).toMatchObject({ state: 'unknown', because: 'lease-expired' })
  })

  it('says that the outcome could not be stored where the store cannot be reached', async () => {
    const one = world()
    const { call, goOn, work, owner } = await stopped(one)
    await one.clock.advance('40s')
    owner.faults.now = 'not-sent'
    await goOn()
    work.open({ charge: 1 })
    await one.clock.advance('5s')
    expect(await call).toMatchObject({
      code: 'OPERATION_UNKNOWN',
      details: { because: 'outcome-not-stored', ran: true },
      cause: { message: 'connection refused' },
    })
  })

  it('is given up when its body has not returned a margin later', async () => {
    const one = world()
    const { call, goOn, work } = await stopped(one)
    await one.clock.advance('40s')
    await goOn()
    await one.clock.advance('3s')
    work.open({ charge: 1 })
    expect(await call).toMatchObject({ code: 'LEASE_LOST', details: { because: 'not-renewed' } })
    expect(only(one)).toMatchObject({ state: 'claimed', claims: 1 })
  })
})

describe('a claim whose owner is gone', () => {
  const abandoned = async (one: World, options: Options = {}) => {
    const owner = process(one, () => new Promise(() => undefined), options)
    const order = one.order()
    owner.charge(order).catch(() => undefined)
    await eventLoopTurn()
    owner.clock.pause()
    return { owner, order }
  }

  it('is left alone until lease and margin are over by the store’s clock, then run again under the same key', async () => {
    const one = world()
    const { order } = await abandoned(one)
    const attempts: number[] = []
    const run = async ({ attempt }: Lease) => {
      attempts.push(attempt)
      return { charge: 2 }
    }
    const other = process(one, run, { recover: rerunKeyed('24h'), duplicates: 'refuse' })
    await one.clock.advance(32_999)
    await expect(other.charge(order)).rejects.toMatchObject({ code: 'OPERATION_IN_FLIGHT', details: { retryInMs: 1 } })
    await one.clock.advance(1)
    expect(await other.charge.outcome(order)).toEqual({ outcome: 'succeeded', value: { charge: 2 }, replayed: false })
    expect(attempts).toEqual([2])
    expect(only(one)).toMatchObject({ fence: 2, claims: 2, state: 'succeeded' })
  })

  it('is held for a person where nothing else was declared, or the receiver may have forgotten the key', async () => {
    for (const recover of [hold(), rerunKeyed('34s')]) {
      const one = world()
      const { order } = await abandoned(one)
      const other = process(one, () => expect.unreachable(), { recover, margin: '1s' })
      await one.clock.advance('40s')
      await expect(other.charge(order)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
      expect(only(one)).toMatchObject({ state: 'unknown', token: undefined })
    }
  })

  const asked = async (answer: (call: ResolveCall<Order>) => unknown, run: () => Promise<Receipt>) => {
    const one = world()
    const { order } = await abandoned(one)
    const startedMs = one.clock.wallMs()
    const calls: ResolveCall<Order>[] = []
    const recover: Recover<Order, Receipt, 'declined'> = resolve(async (call: ResolveCall<Order>) => {
      calls.push(call)
      return answer(call) as never
    })
    const other = process(one, run, { recover })
    await one.clock.advance('40s')
    return { one, order, other, calls, startedMs, outcome: other.charge.outcome(order, { deadline: '20s' }) }
  }
  const unreachable = () => expect.unreachable() as never

  it('is asked about, and what happened is stored as its outcome', async () => {
    const { one, order, other, calls, startedMs, outcome } = await asked(() => happened({ charge: 7 }), unreachable)
    expect(await outcome).toEqual({ outcome: 'succeeded', value: { charge: 7 }, replayed: true })
    expect(calls).toMatchObject([{ operation: 'charge', claimedAtMs: startedMs, input: order }])
    expect(await other.charge(order)).toEqual({ charge: 7 })
    expect(calls).toHaveLength(1)
    expect(only(one)).toMatchObject({ state: 'succeeded', claims: 2 })
  })

  it('is asked about, and may have failed for good', async () => {
    const { outcome } = await asked(() => failedFinally(fail('declined')), unreachable)
    expect(await outcome).toMatchObject({ outcome: 'failed', failure: { code: 'declined' } })
  })

  it('is run where it did not happen, and released where that run sent nothing either', async () => {
    const ran = await asked(didNotHappen, async () => ({ charge: 8 }))
    expect(await ran.outcome).toEqual({ outcome: 'succeeded', value: { charge: 8 }, replayed: false })
    const unsent = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    const failed = await asked(didNotHappen, (async (lease: Lease) =>
      lease.effect('a', () => Promise.reject(unsent))) as never)
    await expect(failed.outcome).rejects.toBe(unsent)
    expect(only(failed.one)).toBeUndefined()
  })

  it.each([
    ['resolve-still-unknown', stillUnknown],
    ['resolve-answer-invalid', () => 'no idea'],
    [
      'resolve-failed',
      () => {
        throw new Error('down')
      },
    ],
    ['resolve-timeout', () => new Promise(() => undefined)],
  ])('stays unknown (%s), and can be asked about again', async (because, answer) => {
    const { one, order, other, calls, outcome } = await asked(answer, unreachable)
    const ended = code(outcome)
    await one.clock.advance('20s')
    expect(await ended).toBe('OPERATION_UNKNOWN')
    expect(only(one)).toMatchObject({ state: 'unknown', because, dueAtMs: expect.any(Number) })
    const again = code(other.charge(order, { deadline: '20s' }))
    await one.clock.advance('20s')
    expect(await again).toBe('OPERATION_UNKNOWN')
    expect(calls).toHaveLength(2)
    expect(calls[0]?.key('capture')).toBe(calls[1]?.key('capture'))
  })
})

describe.each(['stopped', 'suspended'] as const)('a zombie whose process was %s', (how) => {
  const paused = async (
    end: (work: Work) => void,
    before: (lease: Lease) => Promise<unknown> = async () => undefined,
  ) => {
    const one = world()
    const work = gate<Receipt>()
    let zombie: Lease | undefined
    const owner = process(one, async (lease) => {
      zombie = lease
      const receipt = await work.opened
      await before(lease)
      return receipt
    })
    const order = one.order()
    const call = code(owner.charge(order))
    await eventLoopTurn()
    owner.clock.pause(how)
    await one.clock.advance('34s')
    const other = process(one, async () => ({ charge: 2 }), { recover: rerunKeyed('24h') })
    expect(await other.charge(order)).toEqual({ charge: 2 })
    const taken = only(one)
    // What the body waited for arrives before any timer of the process has had its turn.
    end(work)
    await eventLoopTurn()
    owner.clock.resume()
    await one.clock.advance('1m')
    expect(only(one)).toEqual(taken)
    expect(await other.charge.outcome(order)).toEqual({ outcome: 'succeeded', value: { charge: 2 }, replayed: true })
    return { call: await call, zombie: zombie as unknown as Lease }
  }

  it('PT5b: cannot complete: the replay is the new owner’s', async () => {
    expect((await paused((work) => work.open({ charge: 1 }))).call).toBe('LEASE_LOST')
  })

  it('PT5: cannot free the key or make it unknown by failing late', async () => {
    expect((await paused((work) => work.shut(new Error('late')))).call).toBe('LEASE_LOST')
  })

  it('cannot store a final failure', async () => {
    expect((await paused((work) => work.open(fail('declined') as never))).call).toBe('LEASE_LOST')
  })

  it('cannot renew, and makes no call', async () => {
    const refusals: string[] = []
    const { call, zombie } = await paused(
      (work) => work.open({ charge: 1 }),
      async (lease) => {
        refusals.push(await code(lease.effect('capture', () => expect.unreachable())))
        refusals.push(await code(lease.renew()))
      },
    )
    expect([call, ...refusals]).toEqual(['LEASE_LOST', 'LEASE_LOST', 'LEASE_LOST'])
    expect(zombie.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  })
})

describe('a zombie that comes back while the new owner is at work', () => {
  it.each([
    ['complete', (work: Work) => work.open({ charge: 1 })],
    ['fail for good', (work: Work) => work.open(fail('declined') as never)],
    ['make it unknown', (work: Work) => work.shut(new Error('late'))],
    ['release', (work: Work, lease: Lease) => work.shut(lease.notSent(new Error('late')))],
    ['renew', (_work: Work, lease: Lease) => void lease.renew().catch(() => undefined)],
  ])(
    'cannot %s: the store refuses its token and fence, though its own clock says that it still holds the claim',
    async (_what, act) => {
      const one = world()
      const [late, present] = [gate<Receipt>(), gate<Receipt>()]
      let zombie: Lease | undefined
      const owner = process(one, (lease) => {
        zombie = lease
        return late.opened
      })
      const order = one.order()
      const call = code(owner.charge(order))
      await eventLoopTurn()
      owner.clock.pause('suspended')
      await one.clock.advance('34s')
      const other = process(one, () => present.opened, { recover: rerunKeyed('24h') })
      const second = other.charge(order)
      await eventLoopTurn()
      const taken = only(one)
      expect(taken).toMatchObject({ state: 'claimed', fence: 2 })
      act(late, zombie as unknown as Lease)
      await eventLoopTurn()
      expect(only(one)).toEqual(taken)
      present.open({ charge: 2 })
      expect(await second).toEqual({ charge: 2 })
      owner.clock.resume()
      await one.clock.advance('1m')
      expect(await call).toBe('LEASE_LOST')
      expect(await other.charge.outcome(order)).toMatchObject({ value: { charge: 2 }, replayed: true })
    },
  )
})
