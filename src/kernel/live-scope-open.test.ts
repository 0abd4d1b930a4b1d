import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openScopes, scopeKind } from './live-scope.js'
import { eventLoopTurn } from './time/clock.js'

const colour = scopeKind<string>('colour')
const shape = scopeKind<string>('shape')

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a scope in the hands of its opener', () => {
  it('holds for what is called inside and all that it starts, until it is ended', async () => {
    const scope = colour.open('red')
    expect(colour.current()).toBeUndefined()
    const seen: unknown[] = []
    let later: () => void = () => undefined
    const running = scope.call(async () => {
      seen.push(colour.current())
      await eventLoopTurn()
      seen.push(colour.current())
      await new Promise<void>((resolve) => {
        later = resolve
      })
      seen.push(colour.current())
    })
    expect(colour.current()).toBeUndefined()
    while (seen.length < 2) await eventLoopTurn()
    scope.end()
    later()
    await running
    expect(seen).toEqual(['red', 'red', undefined])
  })

  it('hands back what the work gave, the very promise too, and what it threw', () => {
    const scope = colour.open('red')
    const promise = Promise.resolve()
    expect(scope.call(() => promise)).toBe(promise)
    expect(() =>
      scope.call(() => {
        throw new Error('inside')
      }),
    ).toThrow('inside')
    // A throw does not end it: its opener does.
    expect(scope.call(() => colour.current())).toBe('red')
    scope.end()
    expect(scope.call(() => colour.current())).toBeUndefined()
  })

  it('hangs on the live scopes around it, as any other', () => {
    colour.run('red', () => {
      const inner = shape.open('round')
      inner.call(() => expect([colour.current(), shape.current()]).toEqual(['red', 'round']))
      const innermost = inner.call(() => colour.open('blue'))
      inner.end()
      innermost.call(() => expect([colour.current(), shape.current()]).toEqual(['blue', undefined]))
      innermost.end()
      innermost.call(() => expect(colour.current()).toBe('red'))
    })
  })

  it('lets the storage rest when it was the last, and not before', async () => {
    await eventLoopTurn()
    const disable = vi.spyOn(AsyncLocalStorage.prototype, 'disable')
    const scope = colour.open('red')
    scope.call(() => undefined)
    colour.run('blue', () => undefined)
    await eventLoopTurn()
    expect(disable).not.toHaveBeenCalled()
    scope.end()
    await eventLoopTurn()
    expect(disable).toHaveBeenCalledOnce()
  })
})

it('opens several kinds together, seen inside and gone at once', async () => {
  const [one, two] = [scopeKind<number>('one'), scopeKind<string>('two')]
  const outer = one.open(1)
  const scope = outer.call(() => openScopes([one.with(2), two.with('b')]))
  expect([one.current(), two.current()]).toEqual([undefined, undefined])
  let left: Promise<unknown> | undefined
  await scope.call(async () => {
    await Promise.resolve()
    expect([one.current(), two.current()]).toEqual([2, 'b'])
    left = eventLoopTurn().then(() => [one.current(), two.current()])
  })
  scope.end()
  expect(await left).toEqual([1, undefined])
  outer.end()
})
