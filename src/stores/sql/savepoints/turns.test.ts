import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { gate } from '../../../../test/gate.js'
import { type HandleLife, handleLife } from '../../../atomicity/index.js'
import { eventLoopTurn } from '../../../kernel/index.js'
import { LockTimeoutError, savepointTurns } from '../index.js'

const lives: HandleLife[] = []
afterEach(() => {
  for (const life of lives.splice(0)) life.end()
})

function newTurns() {
  const life = handleLife()
  lives.push(life)
  return savepointTurns(life)
}

describe('savepoint turns', () => {
  it('lets statements through at once where nobody uses savepoints', () => {
    expect(newTurns().turn()).toBeUndefined()
  })

  it('makes what is outside wait until the savepoint is over, and lets its own work through', async () => {
    const turns = newTurns()
    const { open, opened } = gate()
    const order: string[] = []
    const inside = turns.enter(async () => {
      await opened
      expect(turns.turn()).toBeUndefined()
      order.push('inside')
    })
    const outside = turns.turn()?.then(() => order.push('outside'))
    await eventLoopTurn()
    expect(order).toEqual([])
    open()
    await Promise.all([inside, outside])
    expect(order).toEqual(['inside', 'outside'])
  })

  it('runs savepoints that were begun side by side one after the other, and nested ones at once', async () => {
    const turns = newTurns()
    const order: string[] = []
    const one = (name: string) =>
      turns.enter(async () => {
        order.push(`${name}+`)
        await turns.enter(async () => {
          await eventLoopTurn()
          order.push(`${name} nested`)
        })
        order.push(`${name}-`)
      })
    await Promise.all([one('a'), one('b'), one('c')])
    expect(order).toEqual(['a+', 'a nested', 'a-', 'b+', 'b nested', 'b-', 'c+', 'c nested', 'c-'])
  })

  it('goes on after work that failed', async () => {
    const turns = newTurns()
    await expect(turns.enter(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(turns.turn()).toBeUndefined()
  })

  it('refuses statements of work whose savepoint is over', async () => {
    const turns = newTurns()
    const { open, opened } = gate()
    let late: Promise<unknown> = Promise.resolve()
    await turns.enter(async () => {
      late = opened.then(() => turns.turn())
    })
    open()
    await expect(late).rejects.toThrow(expect.objectContaining({ code: 'TRANSACTION_OVER' }))
  })

  it('lets the storage rest after the transaction, also where work never ended', async () => {
    const disable = vi.spyOn(AsyncLocalStorage.prototype, 'disable')
    const life = handleLife()
    const turns = savepointTurns(life)
    await turns.enter(async () => undefined)
    void turns.enter(() => new Promise(() => undefined))
    await eventLoopTurn()
    expect(disable).not.toHaveBeenCalled()
    life.end()
    await eventLoopTurn()
    expect(disable).toHaveBeenCalledOnce()
    disable.mockRestore()
  })

  it('keeps two transactions apart', async () => {
    const first = newTurns()
    const second = newTurns()
    await first.enter(async () => {
      await second.enter(async () => {
        expect(first.turn()).toBeUndefined()
        expect(second.turn()).toBeUndefined()
      })
      expect(second.turn()).toBeUndefined()
    })
  })
})

describe('a lock that was not granted in time', () => {
  it('says who stood before us, and keeps the engine’s error', () => {
    const cause = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
    const blockers = [{ session: '7', openMs: 5, state: 'active', application: 'a' }]
    expect(new LockTimeoutError(cause, blockers)).toMatchObject({
      code: 'LOCK_TIMEOUT',
      cause,
      blockers,
      details: { blockers: 1 },
    })
  })
})
