import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../test/transaction/scripted-engine.js'
import { key, rejection, settled, storedAs, transient, world } from '../../../test/transaction/scripted-world.js'
import { withIntent } from '../../identity/index.js'
import { deadlineAfter } from '../../kernel/index.js'
import { type Budget, tokenBudget } from '../../retry/index.js'
import { openTransaction, transactionHistoryOf } from '../index.js'

describe('transact', () => {
  it('begins, runs the body, commits, and gives the connection back', async () => {
    const { db, engine } = world()
    await expect(db.transact((tx) => tx.statement().then(() => tx.attempt))).resolves.toBe(1)
    expect(engine.log).toEqual(['acquire', 'begin', 'statement', 'commit', 'keep'])
    expect(engine.begun[0]).toMatchObject({ isolation: 'read-committed', readOnly: false, lockWaitMs: 2_000 })
  })

  it('repeats the whole transaction after a transient failure, on a fresh session', async () => {
    const here = world({ statement: (attempt) => attempt < 3 && transient() })
    const attempts: number[] = []
    const run = here.db.transact(async (tx) => {
      attempts.push(tx.attempt)
      await tx.statement()
      return 'done'
    })
    await expect(settled(here, run)).resolves.toBe('done')
    expect(attempts).toEqual([1, 2, 3])
    expect(here.engine.log.filter((step) => step === 'rollback')).toHaveLength(2)
    expect(here.engine.log.filter((step) => step === 'commit')).toHaveLength(1)
  })

  it('repeats also when the body swallowed the error, and never commits such a transaction', async () => {
    const here = world({ statement: (attempt) => attempt === 1 && transient() })
    const run = here.db.transact(async (tx) => tx.statement().catch(() => 'swallowed'))
    await settled(here, run)
    expect(here.engine.log.filter((step) => step === 'commit')).toHaveLength(1)
    expect(here.engine.log.filter((step) => step === 'begin')).toHaveLength(2)
  })

  it('names the first error when a body swallowed one that no repeat cures', async () => {
    const first = new EngineError('surface')
    const here = world({
      statement: () => {
        throw first
      },
    })
    const error = await rejection(here.db.transact(async (tx) => tx.statement().catch(() => 'swallowed')))
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: first })
    expect(here.engine.log).not.toContain('commit')
  })

  it('lets the first error of the engine decide, and hands out what the body threw', async () => {
    const own = new Error('wrapped by the body')
    const here = world({ statement: transient })
    const run = here.db.transact(
      async (tx) =>
        tx.statement().catch(() => {
          throw own
        }),
      { attempts: 2 },
    )
    await expect(settled(here, run)).rejects.toBe(own)
    expect(here.engine.log.filter((step) => step === 'begin')).toHaveLength(2)
    expect(transactionHistoryOf(own)).toMatchObject({ because: 'attempts', attempts: [{ attempt: 1 }, { attempt: 2 }] })
  })

  it('rolls back and hands out an error of the body itself, once', async () => {
    const own = new Error('of the body')
    const { db, engine } = world()
    await expect(
      db.transact(() => {
        throw own
      }),
    ).rejects.toBe(own)
    expect(engine.log).toEqual(['acquire', 'begin', 'rollback', 'keep'])
    expect(transactionHistoryOf(own)?.attempts[0]?.ruling).toMatchObject({ outcome: 'aborted', sign: 'body-threw' })
  })

  it('throws the connection away when the rollback fails, and keeps both errors', async () => {
    const own = new Error('of the body')
    const second = new Error('of the rollback')
    const { db, engine } = world({
      rollback: () => {
        throw second
      },
    })
    await expect(db.transact(() => Promise.reject(own))).rejects.toBe(own)
    expect(engine.log.at(-1)).toBe('discard')
    expect(transactionHistoryOf(own)?.attempts[0]?.suppressed).toEqual([second])
  })

  it('does not wait for a connection twice: an exhausted pool fails fast', async () => {
    const { db, engine } = world({
      acquire: () => {
        throw new Error('no connection')
      },
    })
    await expect(db.transact(() => 1)).rejects.toThrow('no connection')
    expect(engine.log).toEqual(['acquire'])
  })

  it('discards the connection before it tries again where the ruling says so', async () => {
    const here = world({
      begin: (attempt) => {
        if (attempt === 1) throw new EngineError('reconnect')
      },
    })
    await settled(
      here,
      here.db.transact(() => 1),
    )
    expect(here.engine.log).toEqual(['acquire', 'begin', 'discard', 'acquire', 'begin', 'commit', 'keep'])
  })

  it('says what was wrong where the deadline cuts an attempt that had not begun', async () => {
    const here = world({
      begin: (attempt) => {
        if (attempt === 1) throw new EngineError('reconnect')
        return new Promise(() => undefined)
      },
    })
    const run = here.db.transact(() => 1, { deadline: '4s' })
    const cause = { message: 'engine says reconnect' }
    await expect(settled(here, run)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE', cause })
  })

  it('stops when the budget is empty, with the error at hand', async () => {
    const here = world({ statement: transient })
    const budget = tokenBudget({ maxTokens: 2, tokenRatio: 0.1 })
    const error = await rejection(
      settled(
        here,
        here.db.transact((tx) => tx.statement(), { budget }),
      ),
    )
    expect(transactionHistoryOf(error)).toMatchObject({ because: 'budget' })
    expect(here.engine.log.filter((step) => step === 'begin')).toHaveLength(1)
  })
})

it('is a commit all the same where a budget throws after it, and tells of that', async () => {
  const heard: unknown[] = []
  const listen = (message: unknown): unknown => heard.push(message)
  diagnostics.subscribe('reprise.transaction.after-commit-failed', listen)
  const broken = new Error('budget')
  const budget = {
    failed: () => undefined,
    tryRepeat: () => true,
    succeeded: () => {
      throw broken
    },
  }
  const hooks: string[] = []
  const { db } = world()
  try {
    const body = (tx: { afterCommit(work: () => unknown): void }): number => {
      tx.afterCommit(() => hooks.push('ran'))
      return 1
    }
    expect(await db.transact(body, { budget: budget as unknown as Budget })).toBe(1)
  } finally {
    diagnostics.unsubscribe('reprise.transaction.after-commit-failed', listen)
  }
  expect([hooks, heard]).toEqual([['ran'], [{ domain: 'scripted', error: broken }]])
})

it.each([{ budget: {} }, { budget: 5 }, { budget: 'none' }, { backoff: {} }, { backoff: 5 }])(
  'refuses what is no budget and no backoff before anything is opened: %j',
  async (options) => {
    const { db, engine } = world()
    await expect(db.transact(() => 1, options as object)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(engine.log).toEqual([])
  },
)

describe('limits', () => {
  it('ends a body that takes too long, and its handle can do nothing more', async () => {
    const here = world()
    let zombie: Promise<unknown> | undefined
    let go: () => void = () => undefined
    const run = here.db.transact(
      (tx) => {
        zombie = new Promise<void>((resolve) => {
          go = resolve
        }).then(() => tx.statement())
        return zombie.then(() => 1)
      },
      { bodyLimit: '100ms' },
    )
    await expect(settled(here, run)).rejects.toMatchObject({ code: 'BODY_TIME_LIMIT' })
    go()
    await expect(zombie).rejects.toMatchObject({ code: 'BODY_TIME_LIMIT' })
    expect(here.engine.log).toEqual(['acquire', 'begin', 'discard'])
  })

  it('opens nothing when the deadline leaves no room beside the reserve', async () => {
    const { db, engine, clock } = world()
    await expect(db.transact(() => 1, { deadline: '10ms' })).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    const short = withIntent({ deadline: deadlineAfter('6ms', clock) }, () => db.transact(() => 1))
    await expect(short).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(engine.log).toEqual([])
  })

  it('tries what a short deadline leaves, and gives half of it to COMMIT’s resolution', async () => {
    const here = world()
    await expect(here.db.transact(() => 1, { deadline: '20ms' })).resolves.toBe(1)
    const endless = here.db.transact(() => new Promise<never>(() => undefined), { deadline: '200ms' })
    await expect(settled(here, endless)).rejects.toMatchObject({ details: { phase: 'in its body', reserveMs: 100 } })
  })

  it('says that the reserve is what a deadline is too short for, and what passed where it did', async () => {
    const here = world()
    await expect(here.db.transact(() => 1, { deadline: '8ms' })).rejects.toMatchObject({
      message:
        'The deadline leaves 8 ms, and the last 10 ms are kept to find out what became of COMMIT: nothing was begun. Give it more than 10 ms, or readOnly where nothing is written.',
      details: { phase: 'not yet begun', leftMs: 8, reserveMs: 10 },
    })
    const passed = here.db.transact(() => 1, { deadline: { expiresAtMs: here.clock.monotonicMs() } })
    await expect(passed).rejects.toMatchObject({
      message: 'The deadline passed while the transaction was not yet begun.',
      details: { phase: 'not yet begun' },
    })
    const endless = here.db.transact(() => new Promise<never>(() => undefined), { deadline: '2s' })
    await expect(settled(here, endless)).rejects.toMatchObject({
      message:
        'The deadline, less the 500 ms that are kept to find out what became of COMMIT, passed while the transaction was in its body.',
      details: { phase: 'in its body', reserveMs: 500 },
    })
    const reading = here.db.transact(() => 1, { deadline: '8ms', readOnly: true })
    await expect(reading).resolves.toBe(1)
  })

  it('ends at once when the signal aborts in the body or in the wait, and not while COMMIT is on its way', async () => {
    const aborted = world()
    const controller = new AbortController()
    const inBody = aborted.db.transact(() => new Promise(() => controller.abort('enough')), {
      signal: controller.signal,
    })
    await expect(inBody).rejects.toBe('enough')
    expect(aborted.engine.log.at(-1)).toBe('discard')

    const late = new AbortController()
    const committing = world({ commit: () => late.abort('too late') })
    await expect(committing.db.transact(() => 1, { signal: late.signal })).resolves.toBe(1)
    await expect(committing.db.transact(() => 1, { signal: late.signal })).rejects.toBe('too late')
  })

  it('refuses a transaction inside another one, and knows when the outer one is over', async () => {
    const { db } = world()
    await expect(db.transact(() => db.transact(() => 1))).rejects.toMatchObject({ code: 'TRANSACTION_NESTED' })
    let later: (() => unknown) | undefined
    await db.transact(() => {
      expect(openTransaction()?.domain).toBe('scripted')
      later = () => openTransaction()
    })
    expect(later?.()).toBeUndefined()
  })

  it('refuses what the manifest does not offer, before anything is opened', async () => {
    const { db, engine } = world({ manifest: { readOnly: false } })
    await expect(db.transact(() => 1, { isolation: 'repeatable-read' })).rejects.toMatchObject({
      code: 'CAPABILITY_UNSUPPORTED',
    })
    await expect(db.transact(() => 1, { readOnly: true })).rejects.toMatchObject({ code: 'CAPABILITY_UNSUPPORTED' })
    await expect(db.transact(() => 1, { attempts: 0 })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(engine.log).toEqual([])
  })
})

describe('afterCommit', () => {
  it('runs after a known commit, in order, and its error changes nothing', async () => {
    const { db, engine } = world()
    const ran: string[] = []
    const result = await db.transact((tx) => {
      tx.afterCommit(() => Promise.reject(new Error('lost')))
      tx.afterCommit(() => ran.push(engine.log.at(-1) ?? ''))
      return 'result'
    })
    expect([result, ran]).toEqual(['result', ['keep']])
  })

  it('does not run after a rollback, and once where an attempt before failed', async () => {
    const here = world({ statement: (attempt) => attempt === 1 && transient() })
    const ran: number[] = []
    await settled(
      here,
      here.db.transact((tx) => {
        tx.afterCommit(() => ran.push(tx.attempt))
        return tx.statement()
      }),
    )
    expect(ran).toEqual([2])
  })
})

describe('a transaction with a key', () => {
  it('hands out what is stored, without running the body', async () => {
    const { db, engine } = world({ claim: () => storedAs('[1,2]') })
    await expect(db.transact(() => expect.unreachable('the body ran'), { content: 'none', key })).resolves.toEqual([
      1, 2,
    ])
    expect(engine.log).toEqual(['acquire', 'begin', 'claim', 'rollback', 'keep'])
  })

  it('gives the first caller what a repeat will get, and refuses what cannot be stored before COMMIT', async () => {
    const { db, engine } = world()
    await expect(db.transact(() => ({ b: 2n ** 64n + 1n }) as unknown, { content: 'none', key })).rejects.toMatchObject(
      {
        code: 'JSON_VALUE_UNSUPPORTED',
      },
    )
    expect(engine.log).not.toContain('commit')
    await expect(db.transact(() => undefined, { content: 'none', key })).resolves.toBeUndefined()
    await expect(db.transact(() => 'x', { content: 'none', key, readOnly: true })).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
  })
})

describe('what only reads', () => {
  it('is repeated when the answer to its COMMIT is lost: nothing can have happened', async () => {
    let runs = 0
    const here = world({
      commit: (attempt) => {
        if (attempt === 1) throw new EngineError('resolve')
      },
    })
    await expect(
      settled(
        here,
        here.db.transact(() => ++runs, { readOnly: true }),
      ),
    ).resolves.toBe(2)
    expect(here.engine.log.filter((step) => step === 'discard')).toHaveLength(1)
  })
})

describe('a commit that is not as durable as promised', () => {
  it('is told on a channel, and is a commit all the same', async () => {
    const heard: unknown[] = []
    const listen = (message: unknown): void => void heard.push(message)
    diagnostics.subscribe('reprise.transaction.local', listen)
    try {
      const { db } = world({ durability: 'local' })
      await expect(db.transact(() => 'committed')).resolves.toBe('committed')
      await expect(world().db.transact(() => 'committed')).resolves.toBe('committed')
    } finally {
      diagnostics.unsubscribe('reprise.transaction.local', listen)
    }
    expect(heard).toEqual([{ domain: 'scripted' }])
  })
})
