import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { gate } from '../../test/gate.js'
import { scopeKind } from './live-scope.js'
import { eventLoopTurn } from './time/clock.js'

const colour = scopeKind<string>('colour')

afterEach(() => {
  vi.restoreAllMocks()
})

async function freshCopy(): Promise<typeof import('./live-scope.js')> {
  vi.resetModules()
  return await import('./live-scope.js')
}

describe('the storage', () => {
  it('is not made, nor Node asked for it, by code that carries nothing', async () => {
    const { detached, scopeKind } = await freshCopy()
    const asked = vi.spyOn(process, 'getBuiltinModule')
    const kind = scopeKind<number>('unused')
    expect(kind.current()).toBeUndefined()
    expect(await detached(async () => kind.current())).toBeUndefined()
    expect(asked).not.toHaveBeenCalled()
    expect(kind.run(1, () => kind.current())).toBe(1)
    expect(asked.mock.calls.map(([name]) => name)).toContain('node:async_hooks')
  })

  it('is one for all kinds', async () => {
    const { scopeKind } = await freshCopy()
    const runs = new Set<unknown>()
    const run = vi.spyOn(AsyncLocalStorage.prototype, 'run')
    scopeKind('a').run(1, () => scopeKind('b').run(2, () => undefined))
    expect(run).toHaveBeenCalledTimes(2)
    for (const storage of run.mock.contexts) runs.add(storage)
    expect(runs.size).toBe(1)
  })

  it('rests when the last scope has settled, and not before', async () => {
    await eventLoopTurn()
    const disable = vi.spyOn(AsyncLocalStorage.prototype, 'disable')
    const [first, second] = [gate(), gate()]
    const runs = [colour.run('red', () => first.opened), colour.run('blue', () => second.opened)]
    colour.run('green', () => undefined)
    await eventLoopTurn()
    first.open()
    await runs[0]
    await eventLoopTurn()
    expect(disable).not.toHaveBeenCalled()
    second.open()
    await runs[1]
    await eventLoopTurn()
    expect(disable).toHaveBeenCalledOnce()
    // And works again afterwards, for as long as needed.
    const seen = await colour.run('red', async () => {
      await eventLoopTurn()
      return colour.current()
    })
    expect(seen).toBe('red')
    await eventLoopTurn()
    expect(disable).toHaveBeenCalledTimes(2)
  })

  it('is not woken and laid to rest for each of many scopes in a row', async () => {
    await eventLoopTurn()
    const disable = vi.spyOn(AsyncLocalStorage.prototype, 'disable')
    for (let index = 0; index < 100; index += 1) await colour.run('red', async () => undefined)
    for (let index = 0; index < 100; index += 1) colour.run('red', () => undefined)
    await eventLoopTurn()
    expect(disable).toHaveBeenCalledOnce()
  })

  it('does not rest under a scope that began right after the last one', async () => {
    await colour.run('red', async () => undefined)
    const seen = await colour.run('blue', async () => {
      await eventLoopTurn()
      return colour.current()
    })
    expect(seen).toBe('blue')
  })

  it('is left awake where the runtime cannot disable it, and works on', async () => {
    await eventLoopTurn()
    const { scopeKind } = await freshCopy()
    const disable = vi.spyOn(AsyncLocalStorage.prototype, 'disable').mockImplementation(() => {
      throw new Error('asyncLocalStorage.disable() is not implemented')
    })
    const kind = scopeKind<string>('workers')
    for (const value of ['red', 'blue']) {
      const seen = await kind.run(value, async () => {
        await eventLoopTurn()
        return kind.current()
      })
      expect(seen).toBe(value)
      await eventLoopTurn()
    }
    expect(disable).toHaveBeenCalledTimes(2)
  })

  it('leaves storages of others alone', async () => {
    const theirs = new AsyncLocalStorage<string>()
    await theirs.run('theirs', async () => {
      await colour.run('red', async () => undefined)
      await eventLoopTurn() // ours rests now
      expect(theirs.getStore()).toBe('theirs')
      await colour.run('red', async () => {
        await theirs.run('inner', async () => {
          await eventLoopTurn()
          expect([colour.current(), theirs.getStore()]).toEqual(['red', 'inner'])
        })
      })
      await eventLoopTurn()
      expect(theirs.getStore()).toBe('theirs')
    })
    theirs.disable()
  })
})

describe('without AsyncLocalStorage', () => {
  it('holds for the synchronous part of the work, and for no other code', async () => {
    const { detached, scopeKind } = await freshCopy()
    const lookup = vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never)
    const kind = scopeKind<string>('browser')
    const seen: unknown[] = []
    const running = kind.run('red', async () => {
      seen.push(kind.current())
      kind.run('blue', () => seen.push(kind.current()))
      detached(() => seen.push(kind.current()))
      seen.push(kind.current())
      await undefined
      seen.push(kind.current())
      return 'done'
    })
    seen.push(kind.current())
    expect(await running).toBe('done')
    expect(() =>
      kind.run('red', () => {
        throw new Error('inside')
      }),
    ).toThrow('inside')
    seen.push(kind.current())
    lookup.mockRestore()
    expect(seen).toEqual(['red', 'blue', undefined, 'red', undefined, undefined, undefined])
  })

  it('does without process too', async () => {
    const { scopeKind } = await freshCopy()
    const kind = scopeKind<string>('browser')
    vi.stubGlobal('process', undefined)
    const seen = kind.run('red', () => kind.current())
    const after = kind.current()
    vi.unstubAllGlobals()
    expect([seen, after]).toEqual(['red', undefined])
    await eventLoopTurn()
  })
})
