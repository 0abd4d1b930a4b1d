import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventLoopTurn } from '../kernel/index.js'
import { type HandleLife, handleLife } from './handle-life.js'
import type { Emission } from './outbox/message.js'

function recorder() {
  const calls: string[] = []
  const note = (what: string) => (name: string) => {
    calls.push(`${what} ${name}`)
  }
  return { calls, open: note('open'), release: note('release'), undo: note('undo') }
}

const boom = new Error('boom')

it('keeps the first error that poisoned it, and refuses with it until it is over', () => {
  const life = handleLife()
  life.check()
  life.failed(boom)
  life.poison(new Error('later'))
  expect(life.poisoned).toEqual({ error: boom })
  expect(() => life.check()).toThrow(boom)
  life.end()
  expect(() => life.check()).toThrow(expect.objectContaining({ code: 'TRANSACTION_OVER' }))
})

it('scopes an error by a savepoint: the transaction goes on', async () => {
  const life = handleLife()
  const steps = recorder()
  await expect(
    life.savepoint(steps, async () => {
      life.failed(boom)
      expect(() => life.check()).toThrow(boom)
      throw boom
    }),
  ).rejects.toBe(boom)
  life.check()
  expect(life.poisoned).toBeUndefined()
  expect(steps.calls).toEqual(['open reprise_1', 'undo reprise_1'])
})

it('does not let an error be swallowed inside a savepoint', async () => {
  const life = handleLife()
  const steps = recorder()
  await expect(life.savepoint(steps, () => life.failed(boom))).rejects.toBe(boom)
  expect(steps.calls).toEqual(['open reprise_1', 'undo reprise_1'])
})

it('nests savepoints: an error in the inner one leaves the outer one whole', async () => {
  const life = handleLife()
  const steps = recorder()
  const result = await life.savepoint(steps, async () => {
    await life.savepoint(steps, () => Promise.reject(boom)).catch(() => {})
    return 'outer'
  })
  expect(result).toBe('outer')
  expect(steps.calls).toEqual(['open reprise_1', 'open reprise_2', 'undo reprise_2', 'release reprise_1'])
})

it('is poisoned by savepoints that cross', async () => {
  const life = handleLife()
  const steps = recorder()
  let endFirst = () => {}
  const first = life.savepoint(steps, () => new Promise<void>((resolve) => (endFirst = resolve)))
  let endSecond = () => {}
  await Promise.resolve()
  const second = life.savepoint(steps, () => new Promise<void>((resolve) => (endSecond = resolve)))
  await Promise.resolve()
  endFirst()
  await expect(first).rejects.toMatchObject({ code: 'SAVEPOINT_ORDER' })
  endSecond()
  await expect(second).rejects.toMatchObject({ code: 'SAVEPOINT_ORDER' })
  expect(steps.calls).toEqual(['open reprise_1', 'open reprise_2'])
})

it('is poisoned by a savepoint that cannot be opened or undone', async () => {
  const life = handleLife()
  const failing = { ...recorder(), undo: () => Promise.reject(new Error('cannot undo')) }
  await expect(life.savepoint(failing, () => Promise.reject(boom))).rejects.toThrow('cannot undo')
  expect(life.poisoned?.error).toMatchObject({ message: 'cannot undo' })
})

it('refuses the result of a savepoint that outlived its transaction', async () => {
  const life = handleLife()
  const steps = recorder()
  const late = life.savepoint(steps, async () => {
    life.end()
    return 1
  })
  await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
  expect(steps.calls).toEqual(['open reprise_1'])
})

it('tells of its end once, and at once where it is over', () => {
  const life = handleLife()
  const told: string[] = []
  life.whenOver(() => told.push('early'))
  expect(told).toEqual([])
  life.end()
  life.end()
  life.whenOver(() => told.push('late'))
  expect(told).toEqual(['early', 'late'])
})

describe('a call that nobody waits for', () => {
  let raised: unknown[] = []
  let listeners: NodeJS.UnhandledRejectionListener[] = []
  const onRaised = (reason: unknown): void => void raised.push(reason)
  beforeEach(() => {
    raised = []
    // The test runner's own would fail the run.
    listeners = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', onRaised)
  })
  afterEach(() => {
    process.off('unhandledRejection', onRaised)
    for (const listener of listeners) process.on('unhandledRejection', listener)
  })
  const raisedSoon = async (): Promise<readonly unknown[]> => {
    await eventLoopTurn()
    await eventLoopTurn()
    return raised
  }
  const failing = async (): Promise<never> => {
    await eventLoopTurn()
    throw boom
  }

  it('is told by the transaction where its failure was noted, and raised where nobody would tell', async () => {
    const life = handleLife()
    void life.call(async () => {
      life.failed(boom)
      throw boom
    })
    expect(await raisedSoon()).toEqual([])
    const untold = handleLife()
    void untold.call(failing)
    await eventLoopTurn()
    expect(await raisedSoon()).toEqual([boom])
    expect(untold.poisoned).toBeUndefined()
  })

  it('that stands for itself is its caller’s alone, also when the body has returned, but not where all is lost', async () => {
    const life = handleLife()
    void life.call(async () => {
      life.undone(boom)
      throw boom
    }, 'alone')
    expect(await raisedSoon()).toEqual([boom])
    void life.call(failing, 'alone')
    expect(life.closed).toBe(false)
    await life.settle()
    expect([await raisedSoon(), life.poisoned, life.closed]).toEqual([[boom, boom], undefined, true])
    // Thrown on by the body it is the transaction's.
    life.threw(new Error('mine', { cause: boom }))
    expect(life.poisoned).toEqual({ error: boom })
    const lost = handleLife()
    void lost.call(async () => {
      lost.poison(boom)
      throw boom
    }, 'alone')
    expect(await raisedSoon()).toHaveLength(2)
  })

  it('that answers at once is told and raised by the same rules, and is not waited for', async () => {
    const life = handleLife()
    await expect(life.call(() => 1)).resolves.toBe(1)
    void life.call(() => {
      life.failed(boom)
      throw boom
    })
    expect(await raisedSoon()).toEqual([])
    expect(life.poisoned).toEqual({ error: boom })
    const untold = handleLife()
    const refuse = (): never => {
      throw boom
    }
    void untold.call(refuse)
    expect(await raisedSoon()).toEqual([boom])
    expect(untold.settle()).toBeUndefined()
    await expect(untold.call(() => 1)).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
    raised = []
    const over = handleLife()
    over.end()
    void over.call(refuse)
    expect(await raisedSoon()).toEqual([boom])
  })

  it('that fails at once, after the body returned, poisons', async () => {
    const life = handleLife()
    void (async () => {
      await life.call(eventLoopTurn)
      await life.call(() => {
        throw boom
      })
    })().catch(() => undefined)
    await life.settle()
    expect(life.poisoned).toEqual({ error: boom })
    expect(await raisedSoon()).toEqual([])
  })

  it('that failed inside a savepoint is told by the savepoint, whose own failure nobody tells', async () => {
    const life = handleLife()
    const steps = recorder()
    void life.call(
      () =>
        life.savepoint(steps, () =>
          life.call(async () => {
            life.failed(boom)
            throw boom
          }),
        ),
      'poisoned',
    )
    expect(await raisedSoon()).toEqual([boom])
  })

  it('poisons when it fails after the body returned, and is waited for with all that comes of it', async () => {
    const life = handleLife()
    const order: string[] = []
    void (async () => {
      await life.call(eventLoopTurn)
      order.push('first')
      await life.call(eventLoopTurn)
      order.push('second')
    })()
    void life.call(failing)
    await life.settle()
    expect(order).toEqual(['first', 'second'])
    expect(life.poisoned).toEqual({ error: boom })
    await expect(life.call(eventLoopTurn)).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
    expect(await raisedSoon()).toEqual([])
  })

  it('is not waited for where there is none, nor after the end', async () => {
    expect(handleLife().settle()).toBeUndefined()
    const life = handleLife()
    const never = life.call(() => new Promise(() => undefined))
    const settled = life.settle()
    life.end()
    await settled
    expect(never).toBeInstanceOf(Promise)
  })
})

it('fails with an error of the engine that the body lets through a savepoint, also as a cause', async () => {
  const life = handleLife()
  const steps = recorder()
  await life.savepoint(steps, () => life.failed(boom)).catch(() => {})
  life.threw(new Error('of the body'))
  expect(life.poisoned).toBeUndefined()
  life.threw(new Error('of the body', { cause: boom }))
  expect(life.poisoned).toEqual({ error: boom })
})

it('keeps a savepoint until it is undone: what fails meanwhile is part of it', async () => {
  const life = handleLife()
  const undo = () => {
    life.failed(new Error('beside'))
  }
  await expect(life.savepoint({ ...recorder(), undo }, () => Promise.reject(boom))).rejects.toBe(boom)
  expect(life.poisoned).toBeUndefined()
})

describe('what is emitted', () => {
  const emission = (id: string): Emission => ({
    id,
    type: 'placed',
    subject: undefined,
    key: 'k',
    version: undefined,
    afterMs: 0,
    intent: undefined,
    traceparent: undefined,
    schema: undefined,
    codec: undefined,
    data: 'null',
  })
  const idsIn = ({ emissions }: HandleLife): readonly string[] => (emissions ?? []).map(({ id }) => id)

  it('goes with the savepoint that is undone, and with those around it', async () => {
    const life = handleLife()
    life.emit([emission('a')])
    await life.savepoint(recorder(), async () => {
      life.emit([emission('b'), emission('c')])
      const inner = life.savepoint(recorder(), () => {
        life.emit([emission('d')])
        throw boom
      })
      await expect(inner).rejects.toBe(boom)
      expect(idsIn(life)).toEqual(['a', 'b', 'c'])
    })
    await expect(
      life.savepoint(recorder(), () => {
        life.emit([emission('e')])
        life.failed(boom)
      }),
    ).rejects.toBe(boom)
    expect(idsIn(life)).toEqual(['a', 'b', 'c'])
  })

  it('goes with a mark that is undone, also where that stays open', () => {
    const life = handleLife()
    const mark = life.mark(recorder())
    life.emit([emission('a')])
    mark.undo('keep')
    expect(life.emissions).toBeUndefined()
    life.emit([emission('b')])
    mark.release()
    const last = life.mark(recorder())
    life.emit([emission('c')])
    last.undo('forget')
    expect(idsIn(life)).toEqual(['b'])
  })

  it('is refused where the transaction has failed or is over, and where it is too much', () => {
    const life = handleLife()
    const many = Array.from({ length: 10_000 }, (_, number) => emission(String(number)))
    life.emit(many)
    expect(() => life.emit([emission('one more')])).toThrow(
      expect.objectContaining({ code: 'MESSAGE_TOO_LARGE', details: { messages: 10_001, most: 10_000 } }),
    )
    expect(life.emissions).toHaveLength(10_000)
    life.poison(boom)
    expect(() => life.emit([emission('late')])).toThrow(boom)
  })
})
