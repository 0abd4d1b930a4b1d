import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../../test/stores/conformance/memory-world.js'
import { systemClock } from '../../../kernel/index.js'
import { type ConformanceCase, runConformanceCase, type StoreWorld } from '../conformance-case.js'
import { ConformanceFailure } from '../expectations.js'
import { claimCases } from './claim-cases.js'
import { fenceCases } from './fence-cases.js'
import { leaseCases } from './lease-cases.js'
import { operationCases } from './operation-cases.js'
import { onEach, stoppableClock, until } from './operation-world.js'
import { replayCases } from './replay-cases.js'
import { purgeCases, settleCases, sweepCases } from './upkeep-cases.js'

const groups = { claimCases, replayCases, leaseCases, fenceCases, sweepCases, purgeCases, settleCases }

/** Runs a case on a store with a bug. */
async function outcome(id: string, world: StoreWorld): Promise<string> {
  return runConformanceCase(operationCases.find((subject) => subject.id === id) as ConformanceCase, world)
}

/** A store in memory, changed. */
async function planted(change: (db: StoreWorld['db']) => Partial<StoreWorld['db']>): Promise<StoreWorld> {
  const world = await memoryWorld()
  const db = { ...world.db, ...change(world.db) }
  return { ...world, db, second: async () => db }
}

describe.each(Object.entries(groups))('%s', (name, cases) => {
  it('are named after their group, and part of all', () => {
    const group = `store.operation.${name.replace('Cases', '')}.`
    expect(cases.filter(({ id }) => !id.startsWith(group) || !operationCases.some((one) => one.id === id))).toEqual([])
  })
})

describe('the cases of operations', () => {
  it('catches operations that run a repeat, or do not compare its content', async () => {
    let calls = 0
    const defining = (change: () => object) =>
      planted((db) => ({
        operation: (name, definition) => db.operation(name, { ...definition, ...change() } as typeof definition),
      }))
    const minted = await defining(() => ({ key: () => `call-${++calls}` }))
    await expect(outcome('store.operation.claim.01', minted)).rejects.toBeInstanceOf(ConformanceFailure)
    const blind = await defining(() => ({ content: 'none' }))
    await expect(outcome('store.operation.claim.02', blind)).rejects.toBeInstanceOf(ConformanceFailure)
    await expect(outcome('store.operation.claim.02', await planted(() => ({})))).resolves.toBe('passed')
  })

  it('catches a store whose purge forgets what is unknown', async () => {
    const careless = await planted((db) => ({ purge: (options) => db.purge({ ...options, unknownAfter: 0 }) }))
    await expect(outcome('store.operation.purge.01', careless)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it('catch a settlement that is not refused, and a sweep that asks nobody', async () => {
    const lax = await planted((db) => ({
      settle: (which, found, how) => db.settle(which, found, how).catch(() => undefined),
    }))
    await expect(outcome('store.operation.settle.03', lax)).rejects.toBeInstanceOf(ConformanceFailure)
    const idle = await planted((db) => ({ sweep: () => db.sweep([]) }))
    await expect(outcome('store.operation.sweep.02', idle)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it('catch a claim that is taken over too early', async () => {
    const early = await memoryWorld()
    const putRecord: StoreWorld['putRecord'] = (id, record) =>
      early.putRecord(id, { ...record, dueAtMs: record.claimedAtMs })
    await expect(outcome('store.operation.lease.03', { ...early, putRecord })).rejects.toBeInstanceOf(
      ConformanceFailure,
    )
  })

  it('catch a store that shows a longer lease than it keeps: its owner goes on when it is over', async () => {
    const boastful = await planted(({ records }) => {
      const insert: typeof records.insert = async (...given) => {
        const { record, ...rest } = await records.insert(...given)
        return { ...rest, record: record && { ...record, dueAtMs: (record.dueAtMs ?? 0) + 60_000 } }
      }
      const read: typeof records.read = (...given) => records.read(...given)
      const swap: typeof records.swap = (...given) => records.swap(...given)
      return { records: { ...records, insert, read, swap } }
    })
    await expect(outcome('store.operation.fence.06', boastful)).rejects.toBeInstanceOf(ConformanceFailure)
    await expect(outcome('store.operation.fence.06', await memoryWorld())).resolves.toBe('passed')
  })
})

describe('what they share', () => {
  it('defines once for domain objects that are one', async () => {
    const { db } = await memoryWorld()
    let count = 0
    expect(onEach([db, db], () => ++count)).toEqual([1, 1])
  })

  it('has a clock that stands still with its timers, and goes on for what is set later', async () => {
    const clock = stoppableClock()
    const rung: string[] = []
    clock.setTimer(1, () => rung.push('before'))
    clock.stop()
    const [monotonicMs, wallMs] = [clock.monotonicMs(), clock.wallMs()]
    clock.setTimer(5, () => rung.push('after'))
    await until('the later one rings', () => rung.length > 0)
    expect(rung).toEqual(['after'])
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([monotonicMs, wallMs])
    expect(systemClock.monotonicMs()).toBeGreaterThan(monotonicMs)
  })
})
