import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type ScriptedHandle, scripted } from '../../../test/transaction/scripted-engine.js'
import { rejection } from '../../../test/transaction/scripted-world.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { type Domain, domainOf, type TransactionDefaults } from '../index.js'
import { insideTransaction } from '../open-transaction.js'
import { allowEffect, beStrict, effect, noticeEffect, refuseEffect } from './effect.js'

const events: unknown[] = []
const listen = (event: unknown): void => void events.push(event)
beforeEach(() => {
  events.length = 0
  diagnostics.subscribe('reprise.transaction.effect', listen)
})
afterEach(() => void diagnostics.unsubscribe('reprise.transaction.effect', listen))

function domain(defaults: TransactionDefaults = {}): { db: Domain<ScriptedHandle>; log: string[] } {
  const engine = scripted()
  return { db: domainOf(engine, defaults), log: engine.log }
}

describe('effect', () => {
  it('does nothing outside a transaction', () => {
    effect('mail')
    expect(events).toEqual([])
  })

  it('is reported, and the transaction commits', async () => {
    const { db, log } = domain()
    await db.transact(async () => effect('mail'))
    expect(log).toContain('commit')
    expect(events).toEqual([{ domain: 'scripted', by: 'effect', name: 'mail', decision: 'reported' }])
  })

  it('is refused where it poisons, and the transaction does not commit, also when the refusal is swallowed', async () => {
    const { db, log } = domain({ effects: 'poison' })
    let refused: unknown
    const body = async (): Promise<void> => {
      try {
        effect('mail')
      } catch (error) {
        refused = error
      }
    }
    const error = await rejection(db.transact(body))
    expect(refused).toMatchObject({
      code: 'EFFECT_IN_TRANSACTION',
      details: { domain: 'scripted', by: 'effect', left: false },
    })
    expect(error).toBe(refused)
    expect(log).not.toContain('commit')
    expect(log.filter((step) => step === 'begin')).toHaveLength(1)
    expect(log.slice(-2)).toEqual(['rollback', 'keep'])
    expect(events).toEqual([{ domain: 'scripted', by: 'effect', name: 'mail', decision: 'refused' }])
  })

  it('lets no statement follow where it poisons', async () => {
    const { db, log } = domain({ effects: 'poison' })
    const body = async (tx: ScriptedHandle): Promise<void> => {
      expect(() => effect('mail')).toThrow(expect.objectContaining({ code: 'EFFECT_IN_TRANSACTION' }))
      await tx.statement()
    }
    expect(await rejection(db.transact(body))).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(log).not.toContain('statement')
  })

  it('is nothing where the domain ignores it', async () => {
    const { db } = domain({ effects: 'ignore' })
    await db.transact(async () => effect('mail'))
    expect(events).toEqual([])
  })

  it('is outside once the body has settled, for what was started inside too', async () => {
    const { db } = domain({ effects: 'poison' })
    let late: Promise<void> | undefined
    let go = (): void => {}
    const opened = new Promise<void>((resolve) => {
      go = resolve
    })
    await db.transact(async () => {
      late = opened.then(() => effect('mail'))
    })
    go()
    await late
    expect(events).toEqual([])
  })

  it('is not heard by a listener as part of the transaction', async () => {
    const { db } = domain()
    const echo = (): void => effect('from the listener')
    diagnostics.subscribe('reprise.transaction.effect', echo)
    await db.transact(async () => effect('mail'))
    diagnostics.unsubscribe('reprise.transaction.effect', echo)
    expect(events).toHaveLength(1)
  })

  it.each(['', 'x'.repeat(256), 5 as unknown as string])('refuses a name such as case %#', (name) => {
    expect(() => effect(name)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})

describe('noticing', () => {
  const allowOrigins = new Set<string>()
  const broken = (): never => {
    throw new Error('broken')
  }

  it('throws nothing, whatever looking and poisoning do', () => {
    const poison = vi.fn(broken)
    const transaction = { domain: 'broken', effects: { mode: 'poison', allowOrigins }, poison } as const
    insideTransaction(transaction, () => {
      expect(() => noticeEffect(() => ({ by: 'http' }))).not.toThrow()
      expect(() => noticeEffect(broken)).not.toThrow()
    })
    expect(poison).toHaveBeenCalledTimes(1)
  })

  it('does not look while no transaction is open', () => {
    const look = vi.fn(broken)
    noticeEffect(look)
    expect(refuseEffect(look)).toBeUndefined()
    expect(look).not.toHaveBeenCalled()
  })
})

describe('allowEffect', () => {
  it('runs its work outside a transaction, and hands out what it does', async () => {
    await expect(allowEffect('metrics', () => 5)).resolves.toBe(5)
    await expect(allowEffect('metrics', () => Promise.reject(new Error('inside')))).rejects.toThrow('inside')
    await expect(allowEffect('', () => 5)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  it('permits effects until its work has settled, and reports them with the reason', async () => {
    const { db, log } = domain({ effects: 'poison' })
    const error = await rejection(
      db.transact(async () => {
        await allowEffect('the cache may be warmed twice', async () => {
          await eventLoopTurn()
          effect('warm')
        })
        effect('mail')
      }),
    )
    expect(error).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(log).not.toContain('commit')
    expect(events).toEqual([
      {
        domain: 'scripted',
        by: 'effect',
        name: 'warm',
        decision: 'allowed',
        reason: 'the cache may be warmed twice',
      },
      { domain: 'scripted', by: 'effect', name: 'mail', decision: 'refused' },
    ])
  })

  it('waits for a query that starts when it is awaited', async () => {
    const { db } = domain({ effects: 'poison' })
    const query: PromiseLike<string> = {
      // biome-ignore lint/suspicious/noThenProperty: query builders look like this
      then: (resolve, reject) =>
        Promise.resolve()
          .then(() => effect('query'))
          .then(() => 'row')
          .then(resolve, reject),
    }
    await expect(db.transact(() => allowEffect('reads only', () => query))).resolves.toBe('row')
  })

  it('says nothing about calls in a transaction when it was given around the whole of it', async () => {
    const { db } = domain({ effects: 'poison' })
    const error = await rejection(allowEffect('too early', () => db.transact(async () => effect('mail'))))
    expect(error).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
  })

  it('says nothing about a later transaction, begun by work that outlived the one it was given in', async () => {
    const { db } = domain({ effects: 'poison' })
    let later: Promise<unknown> | undefined
    await db.transact(async () => {
      later = rejection(
        allowEffect('left behind', async () => {
          await eventLoopTurn()
          await db.transact(async () => effect('mail'))
        }),
      )
    })
    expect(await later).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
  })
})

// Last: there is no way back.
describe('under the guard', () => {
  it('an effect is refused also where the domain only reports, and not where it ignores', async () => {
    beStrict()
    const reporting = domain()
    expect(await rejection(reporting.db.transact(async () => effect('mail')))).toMatchObject({
      code: 'EFFECT_IN_TRANSACTION',
    })
    expect(reporting.log).not.toContain('commit')
    const ignoring = domain({ effects: 'ignore' })
    await ignoring.db.transact(async () => effect('mail'))
    expect(ignoring.log).toContain('commit')
    const permitting = domain()
    await permitting.db.transact(() => allowEffect('a reason', async () => effect('mail')))
    expect(permitting.log).toContain('commit')
  })
})
