import { describe, expect, it } from 'vitest'
import { handleLife } from '../../../atomicity/index.js'
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
