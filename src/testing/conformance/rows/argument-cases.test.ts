// The cases about arguments catch a store that sends what it should have refused, and one that is poisoned by a
// refusal.

import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../../test/stores/conformance/memory-world.js'
import { type ConformanceHandle, runConformanceCase, type StoreWorld } from '../conformance-case.js'
import { ConformanceFailure } from '../expectations.js'
import { rowArgumentCases } from './argument-cases.js'
import { rowCases } from './row-cases.js'

/** A world whose bodies get a handle that was tampered with. */
function tampered(world: StoreWorld, tamper: (tx: ConformanceHandle) => Partial<ConformanceHandle>): StoreWorld {
  const transact: StoreWorld['db']['transact'] = (body, options) =>
    world.db.transact((tx) => {
      const changed = tamper(tx)
      const get = (_: object, name: string): unknown => {
        const member: unknown = Reflect.get(name in changed ? changed : tx, name)
        return typeof member === 'function' ? member.bind(tx) : member
      }
      return body(new Proxy({}, { get }) as ConformanceHandle)
    }, options)
  return { ...world, db: { ...world.db, transact } }
}

const outcome = async (id: string, world: StoreWorld): Promise<unknown> => {
  const subject = rowArgumentCases.find((candidate) => candidate.id === id)
  return subject === undefined ? 'no such case' : runConformanceCase(subject, world)
}

describe('cases about arguments', () => {
  it('are among those of rows', () => {
    expect(rowArgumentCases.length).toBeGreaterThan(6)
    expect(rowCases).toEqual(expect.arrayContaining([...rowArgumentCases]))
  })

  it.each(['11', '12', '15', '16'])('store.rows.%s catches a store that reads whatever it is asked', async (number) => {
    const id = `store.rows.${number}`
    expect(
      await outcome(
        id,
        tampered(await memoryWorld(), () => ({})),
      ),
    ).toBe('passed')
    const careless = tampered(await memoryWorld(), () => ({ readRow: async () => undefined }))
    await expect(outcome(id, careless)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it.each(['11', '12', '13'])('store.rows.%s catches a store that takes any transition', async (number) => {
    const careless = tampered(await memoryWorld(), () => ({ transition: async () => ({ result: 'absent' }) }))
    await expect(outcome(`store.rows.${number}`, careless)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it('store.rows.14 catches a store that waits for whatever it is told', async () => {
    const careless = tampered(await memoryWorld(), (tx) => ({ lockRow: (table, where) => tx.lockRow(table, where) }))
    await expect(outcome('store.rows.14', careless)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it('store.rows.11 catches a store whose transaction does not go on', async () => {
    const world = await memoryWorld()
    const touchy = tampered(world, (tx) => ({
      readRow: (table, where) =>
        tx.readRow(table, where).catch(async (error: unknown) => {
          await world.offend(tx).catch(() => undefined)
          throw error
        }),
    }))
    await expect(outcome('store.rows.11', touchy)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  it('store.rows.18 catches a store that takes 7 and its text for two commands', async () => {
    const seen = new Set<unknown>()
    const literal = tampered(await memoryWorld(), () => ({
      transition: async (_table, { command }) => {
        const result = seen.has(command) ? 'already-applied' : 'applied'
        seen.add(command)
        return { result }
      },
    }))
    await expect(outcome('store.rows.18', literal)).rejects.toBeInstanceOf(ConformanceFailure)
  })
})
