import { afterEach, describe, expect, it, vi } from 'vitest'
import { afterMicrotasks, eventLoopTurn } from './clock.js'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

async function manyPromises(done: () => void): Promise<void> {
  for (let index = 0; index < 1000; index += 1) await undefined
  done()
}

describe('eventLoopTurn', () => {
  it('lets every chain of promises come to its end first', async () => {
    const done = vi.fn()
    void manyPromises(done)
    await eventLoopTurn()
    expect(done).toHaveBeenCalledOnce()
  })

  it('does the same where there is no setImmediate, and leaves no open port behind', async () => {
    vi.stubGlobal('setImmediate', undefined)
    vi.resetModules()
    const copy = await import('./clock.js')
    const ports = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length
    const before = ports()
    const done = vi.fn()
    void manyPromises(done)
    await copy.eventLoopTurn()
    expect(done).toHaveBeenCalledOnce()
    await expect.poll(ports).toBeLessThanOrEqual(before)
  })

  it('does not wait for fake timers', async () => {
    vi.useFakeTimers()
    await eventLoopTurn()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('afterMicrotasks', () => {
  it('comes after the promises at hand and before the next turn', async () => {
    const order: string[] = []
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        setImmediate(() => {
          order.push('turn')
          resolve()
        })
        afterMicrotasks(() => order.push('after'))
        void Promise.resolve().then(() => order.push('microtask'))
        queueMicrotask(() => order.push('another'))
      })
    })
    expect(order).toEqual(expect.arrayContaining(['microtask', 'another', 'after', 'turn']))
    expect(order.at(-1)).toBe('turn')
  })

  it('calls also where there is no process', async () => {
    vi.stubGlobal('process', {})
    const called = vi.fn()
    afterMicrotasks(called)
    await eventLoopTurn()
    expect(called).toHaveBeenCalledOnce()
  })
})
