import { describe, expect, it } from 'vitest'
import { gate } from '../../../test/gate.js'
import { code, only, process, world } from '../../../test/idempotency/leased-world.js'
import { eventLoopTurn } from '../../kernel/index.js'
import type { Lease } from './lease.js'
import { rerunKeyed } from './recovery.js'

describe('a call to the outside', () => {
  it('is made at once while the lease is fresh, and after a confirmed renewal where it is not', async () => {
    const one = world()
    const first = gate<void>()
    const sent: number[] = []
    const owner = process(one, async (lease) => {
      await lease.effect('a', () => sent.push(only(one)?.version ?? 0))
      await first.opened
      await lease.effect('b', () => sent.push(only(one)?.version ?? 0))
      return { charge: 1 }
    })
    const call = owner.charge(one.order())
    await eventLoopTurn()
    // The process stands still for longer than leftForCall, and for less than the lease.
    owner.clock.pause()
    await one.clock.advance('16s')
    first.open()
    expect(await call).toEqual({ charge: 1 })
    expect(sent).toEqual([1, 2])
  })

  it('is not made on a renewal that is not confirmed', async () => {
    const one = world()
    const first = gate<void>()
    const owner = process(one, async (lease) => {
      await first.opened
      return lease.effect('a', () => expect.unreachable())
    })
    const call = code(owner.charge(one.order()))
    await eventLoopTurn()
    owner.clock.pause()
    await one.clock.advance('16s')
    owner.faults.now = 'answer-lost'
    owner.clock.resume()
    first.open()
    await one.clock.advance('17s')
    expect(await call).toBe('LEASE_LOST')
  })

  it('notices a machine that was suspended by its wall clock', async () => {
    const one = world()
    const first = gate<void>()
    const versions: unknown[] = []
    const owner = process(one, async (lease) => {
      await first.opened
      return lease.effect('a', () => {
        versions.push(only(one)?.version)
        return { charge: 1 }
      })
    })
    const call = owner.charge(one.order())
    await eventLoopTurn()
    one.clock.setWallMs(one.clock.wallMs() + 20_000)
    first.open()
    await call
    expect(versions).toEqual([2])
  })

  it('is not repeated when the receiver may have forgotten its key, however late in a run that is', async () => {
    const one = world()
    const slow = gate<void>()
    let runs = 0
    const run = async (lease: Lease) => {
      runs += 1
      if (runs === 1) throw new Error('lost')
      await slow.opened
      return lease.effect('a', () => expect.unreachable())
    }
    const owner = process(one, run, { recover: rerunKeyed('5m') })
    const order = one.order()
    expect(await code(owner.charge(order))).toBe('OPERATION_UNKNOWN')
    await one.clock.advance('4m')
    const call = owner.charge(order).catch((error: unknown) => error)
    await one.clock.advance('46s')
    slow.open()
    expect(await call).toMatchObject({ code: 'OPERATION_UNKNOWN', details: { because: 'rerun-window-over' } })
    expect(only(one)).toMatchObject({ state: 'unknown', because: 'rerun-window-over', claims: 2 })
  })

  it('takes its step at once: two calls of one step are refused also where they are made side by side', async () => {
    const one = world()
    const sent: string[] = []
    const refused: unknown[] = []
    const owner = process(one, async (lease) => {
      const mails = ['ann', 'bob', 'cy'].map((name) => lease.effect('mail', () => sent.push(name)))
      for (const { status, ...rest } of await Promise.allSettled(mails)) if (status === 'rejected') refused.push(rest)
      return { charge: 1 }
    })
    await owner.charge(one.order())
    expect(sent).toEqual(['ann'])
    expect(refused).toMatchObject([{ reason: { code: 'STEP_INVALID' } }, { reason: { code: 'STEP_INVALID' } }])
  })

  it('is waited for where the body did not, and a failure that comes then is the body’s', async () => {
    const one = world()
    const answer = gate<void>()
    const owner = process(one, async (lease) => {
      void lease.effect('a', async () => {
        await answer.opened
        throw new Error('late')
      })
      return { charge: 1 }
    })
    const call = code(owner.charge(one.order()))
    await eventLoopTurn()
    answer.open()
    expect(await call).toBe('OPERATION_UNKNOWN')
  })

  it('is refused once the body has ended', async () => {
    const one = world()
    let kept: Lease | undefined
    const owner = process(one, async (lease) => {
      kept = lease
      return { charge: 1 }
    })
    await owner.charge(one.order())
    expect(await code(kept?.effect('a', () => expect.unreachable()) as Promise<unknown>)).toBe('LEASE_LOST')
    expect(await code(kept?.renew() as Promise<unknown>)).toBe('LEASE_LOST')
  })
})
