import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Gate, gate } from '../../test/gate.js'
import { detached, scopeKind } from './live-scope.js'
import { eventLoopTurn } from './time/clock.js'

const colour = scopeKind<string>('colour')
const size = scopeKind<number>('size')

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a scope', () => {
  it('is seen by its work, before and after an await, and not outside', async () => {
    const seen: unknown[] = [colour.current()]
    const running = colour.run('red', async () => {
      seen.push(colour.current())
      await undefined
      seen.push(colour.current())
      await eventLoopTurn()
      seen.push(colour.current())
      return 'done'
    })
    expect(colour.current()).toBeUndefined()
    expect(await running).toBe('done')
    expect(colour.current()).toBeUndefined()
    expect(seen).toEqual([undefined, 'red', 'red', 'red'])
  })

  it('is seen by what its work calls, and starts, while it is live', async () => {
    await colour.run('red', async () => {
      const fromTimer = await new Promise((resolve) => setTimeout(() => resolve(colour.current()), 1))
      const fromPromise = await Promise.resolve().then(() => colour.current())
      const fromTick = await new Promise((resolve) => process.nextTick(() => resolve(colour.current())))
      expect([fromTimer, fromPromise, fromTick]).toEqual(['red', 'red', 'red'])
    })
  })

  it('gives a synchronous result back as it is', () => {
    const result = { some: 'object' }
    expect(colour.run('red', () => result)).toBe(result)
    expect(colour.run('red', () => undefined)).toBeUndefined()
    expect(colour.run('red', () => colour.current())).toBe('red')
  })

  it('of the same kind hides the outer one; of another kind does not', async () => {
    await colour.run('red', async () => {
      await size.run(1, async () => {
        await undefined
        expect([colour.current(), size.current()]).toEqual(['red', 1])
        await colour.run('blue', async () => {
          await undefined
          expect([colour.current(), size.current()]).toEqual(['blue', 1])
        })
        expect([colour.current(), size.current()]).toEqual(['red', 1])
      })
      expect([colour.current(), size.current()]).toEqual(['red', undefined])
    })
  })

  it('is apart from other kinds of the same name, and shows its name to people', () => {
    const other = scopeKind<string>('colour')
    colour.run('red', () => expect(other.current()).toBeUndefined())
    expect(String(colour)).toBe('[object ScopeKind colour]')
    expect(Object.isFrozen(colour)).toBe(true)
  })

  it('may carry any value, falsy ones too', () => {
    const any = scopeKind<unknown>('any')
    for (const value of [0, '', false, null, Number.NaN]) any.run(value, () => expect(any.current()).toBe(value))
    any.run(1, () => any.run(undefined, () => expect(any.current()).toBeUndefined()))
  })

  it('does not mix with others that run at the same time', async () => {
    const work = async (name: string): Promise<void> => {
      for (let round = 0; round < 20; round += 1) {
        expect(colour.current()).toBe(name)
        await (round % 3 === 0 ? eventLoopTurn() : undefined)
      }
    }
    const names = Array.from({ length: 20 }, (_, index) => `colour ${index}`)
    await Promise.all(names.map((name) => colour.run(name, () => work(name))))
    expect(colour.current()).toBeUndefined()
  })
})

describe('a settled scope', () => {
  it('is over for whoever awaited it, and for the handlers of its promise', async () => {
    const { opened, open } = gate()
    let inHandler: unknown = 'not called'
    const running = colour.run('red', () => opened)
    const handled = colour.run('outer', () =>
      running.then(() => {
        inHandler = colour.current()
      }),
    )
    open()
    await handled
    expect(inHandler).toBe('outer')
  })

  it('is not inherited by timers, unawaited promises, listeners or bound resources', async () => {
    const seen: Record<string, unknown> = {}
    const look = (name: string) => () => {
      seen[name] = colour.current()
    }
    const later = gate()
    const emitter = new EventEmitter()
    const timers = gate()
    let snapshot: (look: () => void) => void = () => undefined
    let resource = new AsyncResource('test')
    let insideLive: unknown
    await colour.run('red', async () => {
      setTimeout(look('timeout'), 1)
      const interval = setInterval(() => {
        look('interval')()
        clearInterval(interval)
        timers.open()
      }, 2)
      setImmediate(look('immediate'))
      void later.opened.then(look('promise'))
      void (async () => {
        await later.opened
        look('async function')()
        await eventLoopTurn()
        look('async function, later')()
      })()
      emitter.on('event', look('listener'))
      emitter.on('bound event', AsyncResource.bind(look('bound listener')))
      snapshot = AsyncLocalStorage.snapshot()
      resource = new AsyncResource('test')
      await undefined
      insideLive = snapshot(() => colour.current())
    })
    expect(insideLive).toBe('red')
    // Another scope is live meanwhile, so that the storage is at work and answers.
    await colour.run('blue', async () => {
      later.open()
      await timers.opened
      await eventLoopTurn()
      emitter.emit('event')
      emitter.emit('bound event')
      snapshot(look('snapshot'))
      resource.runInAsyncScope(look('resource'))
    })
    expect(seen).toEqual({
      timeout: undefined,
      interval: undefined,
      immediate: undefined,
      promise: undefined,
      'async function': undefined,
      'async function, later': undefined,
      listener: 'blue', // called by the one that emits
      'bound listener': undefined,
      snapshot: undefined,
      resource: undefined,
    })
  })

  it('leaves what it started to the nearest live scope around it, and to none in the end', async () => {
    const [afterInner, afterMiddle, afterOuter] = [gate(), gate(), gate()]
    const seen: unknown[] = []
    let background: Promise<void> = Promise.resolve()
    await colour.run('bystander', async () => undefined)
    const outer = colour.run('outer', async () => {
      const middle = colour.run('middle', async () => {
        await colour.run('inner', async () => {
          background = (async () => {
            seen.push(colour.current())
            for (const next of [afterInner, afterMiddle, afterOuter]) {
              await next.opened
              seen.push(colour.current())
            }
          })()
        })
        afterInner.open()
        await eventLoopTurn()
      })
      await middle
      afterMiddle.open()
      await eventLoopTurn()
    })
    await outer
    await colour.run('bystander', async () => {
      afterOuter.open()
      await background
    })
    expect(seen).toEqual(['inner', 'middle', 'outer', undefined])
  })

  it('gives background work the outer scope also when the middle one ended first', async () => {
    const [innerEnd, look] = [gate(), gate()]
    let found: unknown
    await colour.run('outer', async () => {
      let inner: Promise<void> = Promise.resolve()
      let background: Promise<void> = Promise.resolve()
      await colour.run('middle', async () => {
        inner = colour.run('inner', async () => {
          background = look.opened.then(() => {
            found = colour.current()
          })
          await innerEnd.opened
          expect(colour.current()).toBe('inner')
        })
      })
      innerEnd.open()
      await inner
      look.open()
      await background
    })
    expect(found).toBe('outer')
  })

  it('is over after a throw, and the error is the same', () => {
    const error = new Error('sync')
    const late = vi.fn(() => colour.current())
    expect(() =>
      colour.run('red', () => {
        void Promise.resolve().then(late)
        throw error
      }),
    ).toThrow(error)
    expect(colour.current()).toBeUndefined()
    return colour.run('blue', async () => {
      await eventLoopTurn()
      expect(late).toHaveReturnedWith(undefined)
    })
  })

  it('is over after a rejection, and the reason is the same', async () => {
    const reason = { not: 'an error' }
    const running = colour.run('red', async () => {
      await undefined
      throw reason
    })
    await expect(running).rejects.toBe(reason)
    expect(colour.current()).toBeUndefined()
  })
})

describe('the promise of a scope', () => {
  const unhandled = vi.fn()

  // The runner listens too and would count the rejections made here on purpose.
  let others: NodeJS.UnhandledRejectionListener[] = []
  beforeEach(() => {
    others = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', unhandled)
  })
  afterEach(() => {
    process.removeAllListeners('unhandledRejection')
    for (const listener of others) process.on('unhandledRejection', listener)
    unhandled.mockReset()
  })

  it('that nobody looks at reports its rejection once', async () => {
    const reason = new Error('nobody looks')
    void colour.run('red', async () => {
      throw reason
    })
    await eventLoopTurn()
    expect(unhandled.mock.calls.map(([seen]) => seen)).toEqual([reason])
  })

  it('that somebody handles reports nothing', async () => {
    const running = colour.run('red', () => Promise.reject(new Error('handled')))
    await expect(running).rejects.toThrow('handled')
    await eventLoopTurn()
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('comes one turn of the microtask queue after its own', async () => {
    const order: string[] = []
    const inner = Promise.resolve()
    const running = colour.run('red', () => inner)
    void inner.then(() => order.push('one')).then(() => order.push('two'))
    void running.then(() => order.push('scope'))
    await eventLoopTurn()
    expect(order).toEqual(['one', 'scope', 'two'])
  })

  it('keeps its class', async () => {
    class Special<Value> extends Promise<Value> {}
    const running = colour.run('red', () => Special.resolve(5))
    expect(running).toBeInstanceOf(Special)
    expect(await running).toBe(5)
  })

  it('of another realm is waited for too', async () => {
    const foreign: Gate = runInNewContext(
      'let open; const opened = new Promise((resolve) => { open = resolve }); ({ opened, open })',
    )
    expect(foreign.opened).not.toBeInstanceOf(Promise)
    let late: unknown = 'not called'
    const running = colour.run('red', () => {
      setImmediate(() => {
        late = colour.current()
      })
      return foreign.opened
    })
    await eventLoopTurn()
    expect(late).toBe('red')
    foreign.open()
    await running
  })

  it('that fails to take handlers ends the scope', () => {
    const broken = Object.assign(Promise.resolve(), {
      // biome-ignore lint/suspicious/noThenProperty: the case is about a broken then
      then() {
        throw new Error('no handlers here')
      },
    })
    expect(() => colour.run('red', () => broken)).toThrow('no handlers here')
    expect(colour.current()).toBeUndefined()
  })

  it('is not asked of a lazy thenable, which comes back untouched', async () => {
    let executions = 0
    const query = {
      // biome-ignore lint/suspicious/noThenProperty: query builders look like this
      then(resolve: (value: unknown) => void) {
        executions += 1
        resolve(colour.current())
      },
      [Symbol.toStringTag]: 'Promise',
    }
    const result = colour.run('red', () => query)
    expect(result).toBe(query)
    await eventLoopTurn()
    expect(executions).toBe(0)
    await result
    expect(executions).toBe(1)
    // Awaited inside, it runs inside.
    expect(await colour.run('red', async () => query)).toBe('red')
    expect(executions).toBe(2)
  })
})

describe('detached', () => {
  it('runs outside every scope, and what it starts stays outside', async () => {
    await colour.run('red', () =>
      size.run(1, async () => {
        const seen = await detached(async () => {
          const before = [colour.current(), size.current()]
          await eventLoopTurn()
          const inner = await colour.run('blue', async () => {
            await undefined
            return [colour.current(), size.current()]
          })
          return [before, [colour.current(), size.current()], inner]
        })
        expect(seen).toEqual([
          [undefined, undefined],
          [undefined, undefined],
          ['blue', undefined],
        ])
        expect([colour.current(), size.current()]).toEqual(['red', 1])
      }),
    )
  })

  it('gives back and throws what its work does', () => {
    expect(detached(() => 5)).toBe(5)
    const fail = () => {
      throw new Error('inside')
    }
    expect(() => detached(fail)).toThrow('inside')
    colour.run('red', () => {
      expect(() => detached(fail)).toThrow('inside')
      expect(colour.current()).toBe('red')
    })
  })
})
