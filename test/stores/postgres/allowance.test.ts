// A policy around transactions of a real server that end in 40001: both spend of one allowance.

import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import type * as Retry from '../../../src/retry/index.js'
import type { RetryLayersEvent } from '../../../src/telemetry/index.js'
import type * as Transaction from '../../../src/transaction/index.js'
import { postgresWorld, type World } from './world.js'

describe('a policy of 3 around transact', () => {
  let world: World
  let retry: typeof Retry
  let transaction: typeof Transaction
  let open: typeof import('../../../src/stores/postgres/index.js').postgres
  const events: RetryLayersEvent[] = []
  const listen = (event: unknown) => void events.push(event as RetryLayersEvent)
  beforeAll(async () => {
    world = await postgresWorld()
  })
  // A process of its own, so that its first call is the one that counts.
  beforeEach(async () => {
    vi.resetModules()
    retry = await import('../../../src/retry/index.js')
    transaction = await import('../../../src/transaction/index.js')
    open = (await import('../../../src/stores/postgres/index.js')).postgres
    events.length = 0
    diagnostics.subscribe('reprise.retry.layers', listen)
  })
  afterEach(() => void diagnostics.unsubscribe('reprise.retry.layers', listen))

  const policyOf = () =>
    retry.retryPolicy({
      name: 'orders',
      attempts: 3,
      backoff: retry.constantDelay(1),
      classify: transaction.transactionClassifier,
    })

  // The server itself ends the body, as after a serialization failure.
  const conflict = `do 'begin raise exception using errcode = ''40001'', message = ''could not serialize access''; end'`

  function setup(attempts?: number) {
    const db = open({
      pool: world.pool,
      name: 'orders',
      backoff: retry.constantDelay(1),
      ...(attempts && { attempts }),
    })
    let bodies = 0
    const transact = () =>
      db.transact(async (tx) => {
        bodies += 1
        await tx.query(conflict)
      })
    return { transact, bodies: () => bodies }
  }

  it.each(['at once', 'behind an await'])('runs at most 8 bodies, in the first call of a process: %s', async (how) => {
    const { transact, bodies } = setup()
    const body = async () => {
      if (how !== 'at once') await eventLoopTurn()
      return transact()
    }
    const error = await policyOf()
      .run(retry.repeatable('sets the same state'), body)
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: '40001' })
    expect(bodies()).toBe(8)
    expect(retry.historyOf(error)).toMatchObject({ stop: 'allowance', attempts: [{ number: 1 }] })
    const meeting = { policy: 'orders', kind: 'transaction', depth: 2, declared: 24, allowed: 8, allowance: 8 }
    expect(events).toMatchObject([meeting])
  })

  it('goes on while some is left: 2 transactions in each of 3 attempts are more than 3', async () => {
    const { transact, bodies } = setup(2)
    await expect(policyOf().once(transact)).rejects.toMatchObject({ code: '40001' })
    // The largest is 3: two bodies in the first transaction, one in the second.
    expect(bodies()).toBe(3)
  })

  it('never loses its own repeats to a caller who repeats', async () => {
    const { transact, bodies } = setup()
    const error = await retry.ownedByCaller(transact, 3).catch((reason: unknown) => reason)
    expect(bodies()).toBe(8)
    expect(transaction.transactionHistoryOf(error)?.because).toBe('attempts')
    expect(events).toMatchObject([{ kind: 'transaction', depth: 2, declared: 24, allowed: 8 }])
  })

  it('shares with a policy in its body: the product is reported, and what that one repeats is spent', async () => {
    const db = open({ pool: world.pool, name: 'orders', backoff: retry.constantDelay(1) })
    const reads = retry.retryPolicy({ name: 'reads', attempts: 3, backoff: retry.constantDelay(1) })
    const calls = { bodies: 0, reads: 0 }
    const run = db.transact(async (tx) => {
      calls.bodies += 1
      await reads.run(retry.readOnly(), async ({ number }) => {
        calls.reads += 1
        if (number < 3) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
      })
      await tx.query(conflict)
    })
    await expect(run).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    // Seven repeats in all, of which a run of the body takes two, and a new transaction one.
    expect(calls).toEqual({ bodies: 3, reads: 8 })
    expect(events[0]).toMatchObject({ policy: 'reads', kind: 'policy', depth: 2, declared: 24, allowance: 8, spent: 0 })
  })
})
