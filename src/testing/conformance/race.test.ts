import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../test/stores/conformance/memory-world.js'
import { runConformanceCase, type StoreWorld } from './conformance-case.js'
import { ConformanceFailure } from './expectations.js'
import { gate } from './gate.js'
import { keyCases } from './key-cases.js'
import { race } from './race.js'
import { rowCases } from './rows/row-cases.js'
import { transactionCases } from './transaction-cases.js'

const outcome = async (id: string, world: StoreWorld): Promise<string> => {
  const subject = [...transactionCases, ...keyCases, ...rowCases].find((candidate) => candidate.id === id)
  if (subject === undefined) throw new Error(`no case ${id}`)
  return runConformanceCase(subject, world)
}

describe('a race', () => {
  it('gives every answer in order, and counts the bodies', async () => {
    const end = await race(
      3,
      ({ number, call, body, meet }) =>
        call(async () => {
          await body(meet)
          if (number === 1) await body(meet) // a repeat does not wait again
          return number
        }),
      'bodies',
    )
    expect(end).toEqual({ results: [0, 1, 2], bodies: 4 })
  })

  it('fails when one called after another had ended', async () => {
    const ended = gate(1)
    const oneAfterTheOther = race(2, async ({ number, call, body }) => {
      if (number === 1) await ended.waiting(1)
      await call(() => body(async () => number))
      await ended.arrive()
    })
    await expect(oneAfterTheOther).rejects.toThrow('2 of 2 calls began, and not all of them before the first one ended')
  })

  it('fails when bodies took turns, and waits for none that does not come', async () => {
    let turn: Promise<unknown> = Promise.resolve()
    const takesTurns = (work: () => Promise<void>): Promise<unknown> => {
      turn = turn.then(work)
      return turn
    }
    const turns = race(2, ({ call, body, meet }) => call(() => takesTurns(() => body(async () => meet()))), 'calls')
    await expect(turns).resolves.toMatchObject({ bodies: 2 })
    const gone = new Error('gave up waiting')
    const alone = race(
      2,
      ({ number, call, body, meet }) => call(() => (number === 0 ? body(meet) : Promise.reject(gone))),
      'bodies',
    )
    await expect(alone).rejects.toBeInstanceOf(ConformanceFailure)
    await expect(alone).rejects.toMatchObject({ message: expect.stringMatching(/^1 of 2 bodies/), cause: gone })
  })

  it('hands out a racer’s own error when they did race', async () => {
    const own = new Error('of the racer')
    const failed = race(2, ({ number, call }) => call(() => (number === 1 ? Promise.reject(own) : Promise.resolve())))
    await expect(failed).rejects.toBe(own)
  })
})

describe('a store that says that writers run side by side', () => {
  const sideBySide = ({ db, ...world }: StoreWorld): StoreWorld => {
    const claiming = { ...db, manifest: { ...db.manifest, writers: 'many' as const } }
    return { ...world, db: claiming, second: async () => claiming }
  }

  it.each(['store.transaction.12', 'store.rows.02', 'store.rows.06'])(
    'and lets them take turns is caught by %s',
    async (id) => {
      const { db, ...world } = sideBySide(await memoryWorld())
      const transact: StoreWorld['db']['transact'] = (body, options) =>
        db.transact(body, { ...options, connectionWait: '20ms' })
      const hasty = { ...db, transact }
      const takingTurns: StoreWorld = { ...world, db: hasty, second: async () => hasty }
      await expect(outcome(id, takingTurns)).rejects.toThrow(/^1 of 2 bodies began.* they did not race$/)
    },
  )

  it('and never has a conflict is caught', async () => {
    const world = sideBySide(await memoryWorld())
    await expect(outcome('store.rows.09', world)).rejects.toThrow('somebody had to decide again does not hold')
    // Both bodies are run once, side by side, and the sum is right nevertheless: nobody can have read before the other
    // wrote.
    const handle = { readRow: async () => ({ amount: 0 }), updateRows: async () => 1 }
    const transact = ((body: (tx: unknown) => unknown) => body(handle)) as unknown as StoreWorld['db']['transact']
    const db = { ...world.db, transact }
    const blessed: StoreWorld = { ...world, db, second: async () => db, item: async () => ({ amount: 2 }) }
    await expect(outcome('store.transaction.12', blessed)).rejects.toThrow('run its body again does not hold')
  })
})
