import { describe, expect, it } from 'vitest'
import { handleLife, type SynchronousSavepointSteps } from '../../../atomicity/index.js'
import { InnerTransactions, innerStatementIn, postgresDialect } from '../index.js'

const boom = new Error('boom')

/** The savepoints of a transaction, and what was done for them: at once, or after a turn. */
function world(answers: 'at once' | 'later') {
  const life = handleLife()
  const calls: string[] = []
  const step =
    (what: string) =>
    (name: string): void | Promise<void> => {
      calls.push(`${what} ${name}`)
      return answers === 'later' ? Promise.resolve() : undefined
    }
  const steps = { open: step('open'), release: step('release'), undo: step('undo') }
  const inner = new InnerTransactions(life, steps, (modes) => {
    if (modes.length > 0) throw boom
  })
  const [one, other] = [{}, {}]
  const say = async (text: string, by: object = one) => {
    const statement = innerStatementIn(text, postgresDialect)
    return statement === undefined ? false : inner.perform(statement, by)
  }
  return { life, calls, inner, one, other, say }
}

const coded = (code: string) => expect.objectContaining({ code })

describe.each(['at once', 'later'] as const)('inner transactions of an engine that answers %s', (answers) => {
  it('are savepoints with names of their own', async () => {
    const { calls, say, life } = world(answers)
    for (const text of ['begin', 'savepoint a', 'savepoint a', 'rollback to a', 'release a', 'commit']) {
      expect(await say(text)).toBe(true)
    }
    expect(calls).toEqual([
      'open reprise_1',
      'open reprise_2',
      'open reprise_3',
      'undo reprise_3',
      'open reprise_3',
      'release reprise_3',
      'release reprise_1',
    ])
    life.checkBeforeCommit()
  })

  it('are told an error at COMMIT, and undone by ROLLBACK', async () => {
    const { calls, say, life } = world(answers)
    await say('begin')
    life.failed(boom)
    await expect(say('savepoint a')).rejects.toBe(boom)
    await expect(say('commit')).rejects.toBe(boom)
    expect(() => life.checkBeforeCommit()).toThrow(coded('SAVEPOINT_ORDER'))
    await say('rollback')
    expect(calls).toEqual(['open reprise_1', 'undo reprise_1'])
    life.checkBeforeCommit()
  })

  it('are one at a time, of one client', async () => {
    const { say, inner, one, other, life } = world(answers)
    inner.demand(undefined)
    await say('begin')
    inner.demand(one)
    for (const by of [other, undefined]) expect(() => inner.demand(by)).toThrow(coded('SAVEPOINT_ORDER'))
    for (const text of ['begin', 'commit', 'set transaction read only']) {
      await expect(say(text, other)).rejects.toEqual(coded('SAVEPOINT_ORDER'))
    }
    await expect(say('begin')).rejects.toEqual(coded('SAVEPOINT_ORDER'))
    await expect(say('release nobody')).rejects.toEqual(coded('TRANSACTION_STATEMENT'))
    expect(() => life.checkBeforeCommit()).toThrow(coded('SAVEPOINT_ORDER'))
    await say('rollback')
    await expect(say('rollback')).rejects.toEqual(coded('TRANSACTION_STATEMENT'))
    inner.demand(other)
  })

  it('can be waited for by other clients, which are told when one has ended or could not be begun', async () => {
    const { say, inner, one, other, life } = world(answers)
    expect([inner.otherEnds(other), inner.isOf(one)]).toEqual([undefined, false])
    await say('begin')
    expect([inner.otherEnds(one), inner.isOf(one), inner.isOf(other)]).toEqual([undefined, true, false])
    const waiting = [inner.otherEnds(other), inner.otherEnds({})]
    await say('commit')
    await Promise.all(waiting)
    expect(inner.otherEnds(other)).toBeUndefined()
    life.poison(boom)
    await expect(say('begin')).rejects.toBe(boom)
    expect(inner.otherEnds(other)).toBeUndefined()
  })

  it('have no modes of their own', async () => {
    const { say, calls } = world(answers)
    await expect(say('begin read only')).rejects.toBe(boom)
    // Outside of one it is a statement like any other.
    expect(await say('set transaction read only')).toBe(false)
    await say('begin')
    await expect(say('set transaction read only')).rejects.toBe(boom)
    expect(calls).toEqual(['open reprise_1'])
  })

  it('need no ROLLBACK in a transaction that is dead, and get none when it is over', async () => {
    const { say, calls, life } = world(answers)
    await say('begin')
    life.poison(boom)
    expect(await say('rollback')).toBe(true)
    await expect(say('begin')).rejects.toBe(boom)
    expect(calls).toEqual(['open reprise_1'])
    const late = world(answers)
    await late.say('begin')
    late.life.end()
    await expect(late.say('rollback')).rejects.toEqual(coded('TRANSACTION_OVER'))
  })
})

it('refuses to end one that is still being begun', async () => {
  const { say } = world('later')
  const begun = say('begin')
  await expect(say('commit')).rejects.toEqual(coded('SAVEPOINT_ORDER'))
  await begun
  await say('commit')
})

describe('an inner transaction that is a function', () => {
  function functions() {
    const here = world('at once')
    const inner = here.inner as InnerTransactions<SynchronousSavepointSteps>
    const say = (text: string) => {
      const statement = innerStatementIn(text, postgresDialect)
      return statement !== undefined && inner.perform(statement, here.one)
    }
    return { ...here, say, call: <Result>(work: () => Result) => inner.call(work, here.one) }
  }

  it('is kept, or undone where it throws, alone', () => {
    const { call, calls, life } = functions()
    expect(call(() => call(() => 1) + 1)).toBe(2)
    const failing = (): never => {
      throw boom
    }
    expect(
      call(() => {
        expect(() => call(failing)).toThrow(boom)
        return 'outer'
      }),
    ).toBe('outer')
    expect(calls).toEqual([
      ...['open reprise_1', 'open reprise_2', 'release reprise_2', 'release reprise_1'],
      ...['open reprise_3', 'open reprise_4', 'undo reprise_4', 'release reprise_3'],
    ])
    life.checkBeforeCommit()
  })

  it('tells an error that its work swallowed, and refuses work that awaits', () => {
    const { call, calls, life } = functions()
    expect(() => call(() => life.failed(boom))).toThrow(boom)
    expect(() => call(async () => 1)).toThrow(coded('ARGUMENT_INVALID'))
    expect(calls).toEqual(['open reprise_1', 'undo reprise_1', 'open reprise_2', 'undo reprise_2'])
    life.checkBeforeCommit()
  })

  it('has savepoints by name, which end with it, and is not ended by a statement', () => {
    const { call, calls, say, life, inner, other } = functions()
    call(() => {
      say('savepoint sp1')
      say('rollback to sp1')
      expect(() => inner.demand(other)).toThrow(coded('SAVEPOINT_ORDER'))
      for (const text of ['commit', 'rollback']) expect(() => say(text)).toThrow(coded('TRANSACTION_STATEMENT'))
      expect(() => say('begin')).toThrow(coded('SAVEPOINT_ORDER'))
    })
    expect(calls).toEqual(['open reprise_1', 'open reprise_2', 'undo reprise_2', 'open reprise_2', 'release reprise_1'])
    expect(() => say('release sp1')).toThrow(coded('TRANSACTION_STATEMENT'))
    inner.demand(other)
    life.checkBeforeCommit()
  })

  it('is a savepoint of one that is begun by a statement', () => {
    const { call, calls, say } = functions()
    say('begin')
    call(() => 1)
    say('commit')
    expect(calls).toEqual(['open reprise_1', 'open reprise_2', 'release reprise_2', 'release reprise_1'])
  })
})
