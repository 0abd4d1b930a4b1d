import { describe, expect, it } from 'vitest'
import { world } from '../../test/transaction/scripted-world.js'
import { openScopes } from '../kernel/index.js'
import { layerScope, type OpenLayer } from '../retry/index.js'
import type { ManualClock } from '../testing/index.js'
import type { TransactOptions } from './options.js'

/** A row that somebody else changes in every round, in virtual time. */
function contended(options: TransactOptions = {}, rounds = 5) {
  const atMs: number[] = []
  const here = world({
    rows: {
      readRow: async () => {
        atMs.push(here.clock.monotonicMs() - beganMs)
        return { id: 'x', version: 1 }
      },
      updateRows: async () => 0,
    },
  })
  const beganMs = here.clock.monotonicMs()
  const update = { table: 'items', where: { id: 'x' }, rounds, decide: () => ({ amount: 1 }) }
  return { clock: here.clock, atMs, run: () => here.db.optimistic(update, options) }
}

/** Lets virtual time run by single ms until the work settles. */
async function settle<Result>(clock: ManualClock, work: Promise<Result>): Promise<unknown> {
  let end: unknown
  work.then(
    (value) => {
      end = { value }
    },
    (error: unknown) => {
      end = { error }
    },
  )
  for (let ms = 0; ms < 20_000 && end === undefined; ms++) {
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (end === undefined) await clock.advance(1)
  }
  return end
}

describe('between the rounds of an optimistic update', () => {
  it('lies a wait that grows with them, drawn from the backoff of transactions', async () => {
    const asked: number[] = []
    const backoff = { delayMs: (failures: number) => asked.push(failures) && 10 * 2 ** failures }
    const { clock, run, atMs } = contended({ backoff } as never)
    expect(await settle(clock, run())).toMatchObject({
      error: { code: 'UPDATE_CONFLICT', details: { rounds: 5 } },
    })
    expect(atMs).toEqual([0, 20, 60, 140, 300])
    expect(asked.slice(0, 4)).toEqual([1, 2, 3, 4])
  })

  it('lies a wait of full jitter by default, with a cap', async () => {
    const { clock, run, atMs } = contended({}, 9)
    await settle(clock, run())
    const waits = atMs.slice(1).map((ms, place) => ms - (atMs[place] ?? 0))
    expect(waits).toHaveLength(8)
    for (const [place, wait] of waits.entries()) expect(wait).toBeLessThanOrEqual(Math.min(500, 15 * 2 ** place) + 1)
    expect(waits.reduce((sum, wait) => sum + wait)).toBeGreaterThan(100)
  })

  it('ends at the deadline, before a wait that would pass it', async () => {
    const backoff = { delayMs: () => 1_000 }
    const { clock, run, atMs } = contended({ backoff, deadline: '900ms' } as never)
    const beganMs = clock.monotonicMs()
    expect(await settle(clock, run())).toMatchObject({
      error: { code: 'UPDATE_CONFLICT', details: { rounds: 1 } },
    })
    expect(clock.monotonicMs() - beganMs).toBeLessThan(50)
    expect(atMs).toHaveLength(1)
  })

  it('ends the wait with the signal', async () => {
    const controller = new AbortController()
    const backoff = { delayMs: () => 5_000 }
    const { clock, run, atMs } = contended({ backoff, signal: controller.signal } as never)
    const ended = settle(clock, run())
    while (atMs.length === 0 || clock.pendingTimers === 0) await new Promise<void>((resolve) => setImmediate(resolve))
    await clock.advance(100)
    controller.abort(new Error('enough'))
    expect(await ended).toMatchObject({ error: { message: 'enough' } })
    expect(atMs).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })
})

it('spends of the allowance of the layers around it, and ends when nothing is left', async () => {
  const { clock, run, atMs } = contended({}, 10)
  // A policy of 3 around it, which has repeated five times: the largest on the way is 10, so there are four more.
  const layer: OpenLayer = { depth: 1, declared: 3, owns: false, allowance: { attempts: 3, spent: 5 } }
  const scope = openScopes([layerScope(layer)])
  expect(await settle(clock, scope.call(run))).toMatchObject({
    error: { code: 'UPDATE_CONFLICT', details: { rounds: 5 } },
  })
  scope.end()
  expect([atMs.length, layer.allowance]).toEqual([5, { attempts: 10, spent: 9 }])
})
