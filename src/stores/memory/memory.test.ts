import { AsyncResource } from 'node:async_hooks'
import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { draftedRecord, type StoredRecord } from '../../atomicity/index.js'
import { hold, leased } from '../../idempotency/index.js'
import { type Key, mintKey, scope, storedKey } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { type MemoryDomain, type MemoryTransaction, memory } from './index.js'

function accounts(options: { readonly queue?: number } = {}): MemoryDomain {
  const db = memory({ name: 'test', ...options })
  db.table('account', { unique: [['id'], ['email', 'tenant']] })
  return db
}

// A transaction inside another one is refused; one that only happens at the same time is not inside.
const outside = new AsyncResource('outside')

const row = (id: string, more = {}) => ({ id, state: 'new', last_command: null, ...more })
const read = (db: MemoryDomain, id: string) => db.transact((tx) => tx.readRow('account', { id }), { readOnly: true })

describe('transactions', () => {
  it('commits all or nothing', async () => {
    const db = accounts()
    await db.transact((tx) => tx.insertOnce('account', row('a'), ['id']))
    const failing = db.transact(async (tx) => {
      await tx.insertOnce('account', row('b'), ['id'])
      await tx.updateRows('account', { id: 'a' }, { state: 'changed' })
      expect(await tx.readRow('account', { id: 'a' })).toMatchObject({ state: 'changed' })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await read(db, 'a')).toEqual(row('a'))
    expect(await read(db, 'b')).toBeUndefined()
  })

  it('lets bodies that await take turns, so that no update is lost', async () => {
    const db = accounts()
    await db.transact((tx) => tx.insertOnce('account', row('a', { balance: 0 }), ['id']))
    const deposit = () =>
      db.transact(async (tx) => {
        const balance = Number((await tx.lockRow('account', { id: 'a' }))?.['balance'])
        await eventLoopTurn()
        await tx.updateRows('account', { id: 'a' }, { balance: balance + 1 })
      })
    await Promise.all(Array.from({ length: 50 }, deposit))
    expect(await read(db, 'a')).toMatchObject({ balance: 50 })
  })

  it('shows a reader one commit, whatever is committed meanwhile', async () => {
    const db = accounts()
    await db.transact((tx) => tx.insertOnce('account', row('a'), ['id']))
    const seen = await db.transact(
      async (tx) => {
        const before = await tx.readRow('account', { id: 'a' })
        await outside.runInAsyncScope(() =>
          db.transact((other) => other.updateRows('account', { id: 'a' }, { state: 'late' })),
        )
        return [before, await tx.readRow('account', { id: 'a' })] as never
      },
      { readOnly: true },
    )
    expect(seen).toEqual([row('a'), row('a')])
    expect(await read(db, 'a')).toMatchObject({ state: 'late' })
  })

  it('refuses to write in a transaction that only reads', async () => {
    const db = accounts()
    const writing = db.transact((tx) => tx.insertOnce('account', row('a'), ['id']), { readOnly: true })
    await expect(writing).rejects.toMatchObject({ code: 'TRANSACTION_READ_ONLY' })
  })

  it('keeps copies: what a body changes afterwards changes nothing', async () => {
    const db = accounts()
    const bytes = new Uint8Array([1, 2, 3])
    const given: Record<string, string | Uint8Array> = { id: 'a', bytes }
    await db.transact(async (tx) => {
      const { row } = await tx.insertOnce('account', given, ['id'])
      given['id'] = 'changed'
      bytes[0] = 9
      ;(row as Record<string, unknown>)['id'] = 'changed too'
      const found = (await tx.readRow('account', { id: 'a' })) as { bytes: Uint8Array }
      found.bytes[1] = 9
    })
    expect(await read(db, 'a')).toEqual({ id: 'a', bytes: new Uint8Array([1, 2, 3]) })
  })

  it('makes the handle useless when the transaction is over', async () => {
    const db = accounts()
    const kept = await db.transact(async (tx) => ({ tx }) as never)
    await expect(
      (kept as { tx: { readRow: (...args: unknown[]) => unknown } }).tx.readRow('account', { id: 'a' }),
    ).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
  })

  it('hands out the stored value to a repeat with the same key', async () => {
    const db = accounts()
    const key = { scope: scope('test'), key: mintKey() }
    let runs = 0
    const once = () =>
      db.transact(
        async (tx) => {
          runs += 1
          await tx.insertOnce('account', row('a'), ['id'])
          return { runs }
        },
        { content: 'none', key },
      )
    expect(await Promise.all([once(), once(), once()])).toEqual([{ runs: 1 }, { runs: 1 }, { runs: 1 }])
    expect(runs).toBe(1)
  })

  it('forgets a key whose transaction failed', async () => {
    const db = accounts()
    const key = { scope: scope('test'), key: mintKey() }
    await expect(db.transact(() => Promise.reject(new Error('no')), { content: 'none', key })).rejects.toThrow('no')
    expect(await db.transact(async () => 'second', { content: 'none', key })).toBe('second')
  })
})

describe('unique keys', () => {
  it('refuses a row whose unique key is taken, and poisons the transaction', async () => {
    const db = accounts()
    await db.transact((tx) => tx.insertOnce('account', row('a', { email: 'e', tenant: 't' }), ['id']))
    const swallowing = db.transact(async (tx) => {
      await tx.insertOnce('account', row('b'), ['id'])
      await tx.insertOnce('account', row('c', { email: 'e', tenant: 't' }), ['id']).catch(() => {})
    })
    await expect(swallowing).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      cause: { code: 'UNIQUE_VIOLATION' },
    })
    expect(await read(db, 'b')).toBeUndefined()
  })

  it('finds the row that is there, and frees a key that a row gave up', async () => {
    const db = accounts()
    await db.transact((tx) => tx.insertOnce('account', row('a'), ['id']))
    expect(await db.transact((tx) => tx.insertOnce('account', row('a', { state: 'x' }), ['id']))).toEqual({
      inserted: false,
      row: row('a'),
    })
    await db.transact((tx) => tx.updateRows('account', { id: 'a' }, { id: 'b' }))
    expect(await db.transact((tx) => tx.insertOnce('account', row('a'), ['id']))).toMatchObject({ inserted: true })
  })

  it('tells 1 from the text 1, and not from the bigint', async () => {
    const db = memory({ name: 'test' })
    db.table('number', { unique: [['id']] })
    const insert = (id: number | string | bigint) => db.transact((tx) => tx.insertOnce('number', { id }, ['id']))
    expect([await insert(1), await insert('1'), await insert(1n)].map(({ inserted }) => inserted)).toEqual([
      true,
      true,
      false,
    ])
  })

  it.each([
    ['no index over these columns', ['state']],
    ['null in the key', ['email', 'tenant']],
  ])('refuses insertOnce: %s', async (_, by) => {
    const inserting = accounts().transact((tx) => tx.insertOnce('account', row('a', { email: null, tenant: 't' }), by))
    await expect(inserting).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })
})

it.each([['7'], [7], [7n]])(
  'knows the command %o by its text, also where a row was made with another type',
  async (first) => {
    const db = accounts()
    await db.transact((tx) => tx.insertOnce('account', row('a'), ['id']))
    await db.transact((tx) => tx.insertOnce('account', row('b', { state: 'paid', last_command: 7 }), ['id']))
    const move = (id: string, command: string | number | bigint) =>
      db.transact((tx) => tx.transition('account', { where: { id }, from: 'new', to: 'paid', command }))
    expect(await move('a', first)).toEqual({ result: 'applied' })
    for (const repeat of ['7', 7, 7n]) {
      expect(await move('a', repeat)).toEqual({ result: 'already-applied' })
      expect(await move('b', repeat)).toEqual({ result: 'already-applied' })
    }
    expect(await move('a', '07')).toEqual({ result: 'invalid', state: 'paid' })
    // A row without a command is not that of a command called null.
    await db.transact((tx) => tx.insertOnce('account', row('c'), ['id']))
    expect(await move('c', 'null')).toEqual({ result: 'applied' })
  },
)

it('applies a transition once, and tells the four ends apart', async () => {
  const db = accounts()
  await db.transact((tx) => tx.insertOnce('account', row('a'), ['id']))
  const move = (from: string, to: string, command: string, id = 'a') =>
    db.transact((tx) => tx.transition('account', { where: { id }, from, to, command, set: { note: command } }))
  expect(await move('new', 'paid', 'c1')).toEqual({ result: 'applied' })
  expect(await move('new', 'paid', 'c1')).toEqual({ result: 'already-applied' })
  expect(await move('new', 'paid', 'c2')).toEqual({ result: 'invalid', state: 'paid' })
  expect(await move('new', 'paid', 'c3', 'nobody')).toEqual({ result: 'absent' })
  expect(await read(db, 'a')).toMatchObject({ state: 'paid', last_command: 'c1', note: 'c1' })
})

describe('savepoints', () => {
  it('undo exactly what was done inside', async () => {
    const db = accounts()
    await db.transact(async (tx) => {
      await tx.insertOnce('account', row('a'), ['id'])
      const inner = tx.savepoint(async () => {
        await tx.insertOnce('account', row('b'), ['id'])
        await tx.updateRows('account', { id: 'a' }, { state: 'inner' })
        await tx.insertOnce('account', row('a', { id: 'c' }), ['email', 'tenant'])
      })
      await expect(inner).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
      await tx.savepoint(() => tx.updateRows('account', { id: 'a' }, { note: 'kept' }))
      expect(await tx.insertOnce('account', row('b'), ['id'])).toMatchObject({ inserted: true })
    })
    expect(await read(db, 'a')).toEqual({ ...row('a'), note: 'kept' })
  })

  it('makes a statement beside savepoints wait for all that come before it', async () => {
    const db = memory({ name: 'a' })
    db.table('item', { unique: [['id']] })
    await db.transact(async (tx) => {
      const savepoint = (id: string) =>
        tx.savepoint(async () => {
          await tx.insertOnce('item', { id }, ['id'])
          await eventLoopTurn()
          throw new Error('undone')
        })
      const work = [savepoint('first'), savepoint('second'), tx.insertOnce('item', { id: 'beside' }, ['id'])]
      expect((await Promise.allSettled(work)).map(({ status }) => status)).toEqual([
        'rejected',
        'rejected',
        'fulfilled',
      ])
    })
    expect(db.rows('item').map(({ id }) => id)).toEqual(['beside'])
  })

  it('does not commit while a savepoint is open that the body did not await', async () => {
    const db = accounts()
    const forgetting = db.transact(async (tx) => {
      tx.savepoint(() => new Promise(() => {})).catch(() => {})
      await eventLoopTurn()
    })
    await expect(forgetting).rejects.toMatchObject({ code: 'SAVEPOINT_ORDER' })
  })

  it('let a statement that is not part of them wait', async () => {
    const db = accounts()
    await db.transact(async (tx) => {
      await tx.insertOnce('account', row('a'), ['id'])
      const failing = tx.savepoint(async () => {
        await eventLoopTurn()
        throw new Error('undone')
      })
      const outside = tx.updateRows('account', { id: 'a' }, { state: 'outside' })
      await expect(failing).rejects.toThrow('undone')
      await outside
    })
    expect(await read(db, 'a')).toMatchObject({ state: 'outside' })
  })
})

describe('the queue of writers', () => {
  it('fails fast when too many wait or the wait is over', async () => {
    const clock = manualClock()
    const db = memory({ name: 'test', queue: 1, clock })
    let end = () => {}
    const first = db.transact(() => new Promise<void>((resolve) => (end = resolve)))
    await eventLoopTurn()
    const second = expect(db.transact(async () => 'late')).rejects.toMatchObject({ code: 'POOL_EXHAUSTED' })
    await eventLoopTurn()
    await expect(db.transact(async () => 'refused')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await clock.advance('1s')
    await second
    end()
    await first
  })

  it('is closed with the store', async () => {
    const db = accounts()
    await db.close()
    await expect(db.transact(async () => 1)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  it('is closed to operations too, of both modes, also to those that were carried out before', async () => {
    const db = memory({ name: 'test' })
    let runs = 0
    const identity = { scope: () => scope('a'), key: (key: Key) => key, window: '1h', run: () => ++runs } as const
    const operations = [
      db.operation('pay', identity),
      leased('charge', { ...identity, store: db, lease: '30s', recover: hold() }),
    ]
    const before = mintKey()
    for (const operation of operations) await operation(before)
    await db.close()
    for (const operation of operations) {
      for (const key of [before, mintKey()]) {
        await expect(operation(key)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
      }
    }
    await expect(db.purge()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    expect(runs).toBe(2)
  })
})

it('does not commit over a record that came past it, and meets that one in the next attempt', async () => {
  const db = accounts()
  const key = { scope: scope('test'), key: mintKey() }
  const claimed = draftedRecord({ mode: 'atomic', token: 'theirs' }, 0, () => 1)
  const theirs: StoredRecord = { ...claimed, state: 'succeeded', value: '"theirs"' }
  const rulings: unknown[] = []
  const note = (event: unknown): void => void rulings.push(event)
  diagnostics.subscribe('reprise.transaction.attempt', note)
  let runs = 0
  const body = async (tx: MemoryTransaction): Promise<string> => {
    runs += 1
    await tx.insertOnce('account', row('a'), ['id'])
    db.putRecord(storedKey(key.scope, key.key), theirs)
    return 'ours'
  }
  expect(await db.transact(body, { content: 'none', key })).toBe('theirs')
  diagnostics.unsubscribe('reprise.transaction.attempt', note)
  expect(runs).toBe(1)
  expect(db.rows('account')).toEqual([])
  const ruling = { phase: 'committing', outcome: 'aborted', help: 'transient', sign: 'TRANSACTION_ABORTED' }
  expect(rulings).toMatchObject([ruling])
})

it('does not commit what was rolled back', async () => {
  const { MemoryEngine } = await import('./engine.js')
  const engine = new MemoryEngine('test', undefined, manualClock())
  const session = await engine.acquire({ waitMs: 0, readOnly: false })
  session.rollback()
  const error = await Promise.resolve()
    .then(() => session.commit())
    .catch((error: unknown) => error)
  expect(engine.classify(error, 'committing')).toMatchObject({ outcome: 'aborted', alarm: true })
})
