import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { rejection, settled, world } from '../../test/transaction/scripted-world.js'
import { type Key, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import { refuseInside } from './open-transaction.js'

describe('afterCommit', () => {
  it('that never ends keeps nobody waiting past the deadline, and is reported', async () => {
    const heard: unknown[] = []
    const listen = (message: unknown): void => void heard.push(message)
    diagnostics.subscribe('reprise.transaction.after-commit-failed', listen)
    try {
      const here = world()
      const ran: string[] = []
      const run = here.db.transact(
        (tx) => {
          tx.afterCommit(() => new Promise(() => undefined))
          tx.afterCommit(() => ran.push('the next one'))
          return 'committed'
        },
        { deadline: '1s' },
      )
      await expect(settled(here, run)).resolves.toBe('committed')
      expect(here.clock.monotonicMs()).toBeLessThan(2_000)
      expect(heard).toMatchObject([{ error: { code: 'DEADLINE_EXCEEDED' } }])
    } finally {
      diagnostics.unsubscribe('reprise.transaction.after-commit-failed', listen)
    }
  })

  it('takes functions only, and none after the body has settled', async () => {
    const here = world()
    let kept: (work: () => unknown) => void = () => undefined
    await here.db.transact((tx) => {
      expect(() => tx.afterCommit('nope' as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
      kept = (work) => tx.afterCommit(work)
    })
    expect(() => kept(() => undefined)).toThrow(expect.objectContaining({ code: 'TRANSACTION_OVER' }))
  })
})

describe('inside an open transaction', () => {
  it('nothing of the domain but its handle can be used', async () => {
    const { db } = world()
    expect(refuseInside()).toBeUndefined()
    for (const use of [() => db.resolve('rt1.x'), () => db.optimistic({} as never), () => db.transact(() => 1)])
      expect(await rejection(db.transact(use as () => Promise<unknown>))).toMatchObject({ code: 'TRANSACTION_NESTED' })
  })
})

describe('arguments that are none', () => {
  it('are refused before anything is opened', async () => {
    const { db, engine } = world()
    for (const options of [{ signal: null }, { signal: { aborted: false } }, { key: null }, { key: 'text' }])
      expect(await rejection(db.transact(() => 1, options as never))).toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(await rejection(db.transact('body' as never))).toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(engine.log).toEqual([])
  })
})

describe('an optimistic update with a key', () => {
  it('stores nothing under its key when somebody else was quicker', async () => {
    const db = memory({ name: 'memory' })
    db.table('items', { unique: [['id']] })
    await db.transact((tx) => tx.insertOnce('items', { id: 'x', amount: 0, version: 0 }, ['id']))
    const key = { scope: scope('tests'), key: 'update-1' as Key }
    let disturbed = false
    // Its first round loses: the row changes between reading and writing.
    const transact: typeof db.transact = (body, options) =>
      db.transact(async (tx) => {
        const quicker = {
          ...tx,
          readRow: async (table: string, where: never) => {
            const row = await tx.readRow(table, where)
            if (!disturbed) {
              disturbed = true
              return { ...row, version: 41 }
            }
            return row
          },
          updateRows: tx.updateRows.bind(tx),
        }
        return body(quicker as never)
      }, options)
    const { updateOptimistically } = await import('./optimistic.js')
    const update = { table: 'items', where: { id: 'x' }, decide: () => ({ amount: 7 }) }
    await expect(updateOptimistically(transact, update, { content: 'none', key })).resolves.toMatchObject({
      result: 'written',
      rounds: 2,
    })
    await expect(db.optimistic(update, { content: 'none', key })).resolves.toMatchObject({ result: 'written' })
    expect(db.rows('items')).toMatchObject([{ amount: 7, version: 1 }])
  })
})
