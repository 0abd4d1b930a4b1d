// Writers that wait share a COMMIT: that they do, that nobody is answered before it, and what becomes of all of them
// when one is slow, rolls everything back, or COMMIT fails.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import Database from 'libsql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hold, leased } from '../../../src/idempotency/index.js'
import { parseKey, scope } from '../../../src/identity/index.js'
import { armFaultPoints, eventLoopTurn, systemClock } from '../../../src/kernel/index.js'
import { tokenBudget } from '../../../src/retry/index.js'
import type { SqliteClient, SqliteDomain, SqliteOptions } from '../../../src/stores/sqlite/index.js'
import type { TransactionAttemptEvent, TransactionSharedEvent } from '../../../src/telemetry/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { freshFile, itemStore, rowsIn } from './files.js'

// On a busy machine the milliseconds that a shared COMMIT stays open would be over early; with this clock they never
// are.
const clock = { ...systemClock, monotonicMs: () => 1_000 }

let shared: TransactionSharedEvent[] = []
let attempts: TransactionAttemptEvent[] = []
const onShared = (event: unknown) => shared.push(event as TransactionSharedEvent)
const onAttempt = (event: unknown) => attempts.push(event as TransactionAttemptEvent)
let disarm: (() => void) | undefined

beforeEach(() => {
  shared = []
  attempts = []
  subscribe('reprise.transaction.shared', onShared)
  subscribe('reprise.transaction.attempt', onAttempt)
})
afterEach(() => {
  unsubscribe('reprise.transaction.shared', onShared)
  unsubscribe('reprise.transaction.attempt', onAttempt)
  disarm?.()
})

const store = (file: string, options: Partial<SqliteOptions<SqliteClient>> = {}) =>
  itemStore(file, { clock, ...options })
const notes = (file: string) => (rowsIn(file, 'SELECT note FROM item ORDER BY id') as string[][]).map(([note]) => note)
const checkingKeys = (file: string) => () => {
  const handle = new Database(file)
  handle.exec('PRAGMA foreign_keys = ON')
  return handle
}
const signs = () => attempts.map(({ sign }) => sign)
const times = (count: number) => Array.from({ length: count }, (_, number) => number)

const insert = (db: SqliteDomain<SqliteClient>, note: string) =>
  db.transact(async (tx) => {
    await tx.query('INSERT INTO item (note) VALUES (?)', [note])
    return tx.attempt
  })

/** Holds the shared COMMIT back until it is told what to do about it. */
function heldCommit(): { readonly reached: Promise<void>; go(error?: unknown): void } {
  let go: (error?: unknown) => void = () => undefined
  const told = new Promise<void>((resolve, reject) => {
    go = (error) => (error === undefined ? resolve() : reject(error))
  })
  const reached = new Promise<void>((resolve) => {
    disarm = armFaultPoints((point) => {
      if (point !== 'sqlite.sharing') return
      resolve()
      return told
    })
  })
  return { reached, go: (error) => go(error) }
}

describe('writers that wait', () => {
  it.each([2, 16, 64])('share one COMMIT, %i of them', async (count) => {
    const file = freshFile()
    const db = await store(file)
    const seen = await Promise.all(
      times(count).map(async (number) => {
        await insert(db, `note ${number}`)
        return notes(file).includes(`note ${number}`)
      }),
    )
    expect(shared).toEqual([{ domain: 'items', members: count, outcome: 'committed' }])
    // Whoever is answered has committed: a stranger sees it.
    expect(seen).toEqual(times(count).map(() => true))
    expect(notes(file)).toEqual(times(count).map((number) => `note ${number}`))
    expect(attempts).toEqual([])
  })

  it('are 64 at most in one COMMIT', async () => {
    const file = freshFile()
    const db = await store(file)
    await Promise.all(times(150).map((number) => insert(db, `note ${number}`)))
    expect(shared.map(({ members }) => members)).toEqual([64, 64, 22])
    expect(notes(file)).toHaveLength(150)
  })

  it('join for some milliseconds, and not for ever', async () => {
    const file = freshFile()
    let nowMs = 0
    // Each look at the clock is a millisecond later.
    const db = await store(file, { clock: { ...systemClock, monotonicMs: () => (nowMs += 0.5) } })
    await Promise.all(times(60).map((number) => insert(db, `note ${number}`)))
    expect(Math.max(...shared.map(({ members }) => members))).toBeLessThan(20)
    expect(notes(file)).toHaveLength(60)
  })

  it.each([1, 5])('have a COMMIT each where nobody waits, or where the domain says so: %i at once', async (count) => {
    const file = freshFile()
    const db = await store(file, { sharedCommit: count === 1 })
    await Promise.all(times(count).map((number) => insert(db, `note ${number}`)))
    expect(shared).toEqual([])
    expect(notes(file)).toHaveLength(count)
  })

  it('share it as operations too, and each has its own outcome', async () => {
    const file = freshFile()
    const db = await store(file)
    let runs = 0
    const note = db.operation('note', {
      scope: () => scope('test'),
      key: (input: { name: string }) => parseKey(input.name),
      window: '1h',
      run: async (tx, input) => {
        runs += 1
        await tx.query('INSERT INTO item (note) VALUES (?)', [input.name])
        return { made: input.name }
      },
    })
    const inputs = times(16).map((number) => ({ name: `operation-${number}` }))
    const first = await Promise.all(inputs.map((input) => note(input)))
    expect(shared).toEqual([{ domain: 'items', members: 16, outcome: 'committed' }])
    expect(await Promise.all(inputs.map((input) => note(input)))).toEqual(first)
    expect(first).toEqual(inputs.map(({ name }) => ({ made: name })))
    expect(runs).toBe(16)
  })

  it('see what went before them, and lose nothing of a counter', async () => {
    const file = freshFile()
    const db = await store(file)
    await db.transact((tx) => tx.query("INSERT INTO item (id, note) VALUES (1, '0')"))
    const counts = await Promise.all(
      times(30).map(() =>
        db.transact(async (tx) => {
          const { rows } = await tx.query<{ note: string }>('SELECT note FROM item WHERE id = 1')
          const count = Number(rows[0]?.note) + 1
          await tx.query('UPDATE item SET note = ? WHERE id = 1', [String(count)])
          return count
        }),
      ),
    )
    expect(counts).toEqual(times(30).map((number) => number + 1))
    expect(shared).toMatchObject([{ members: 30 }])
    expect(notes(file)).toEqual(['30'])
  })

  it('are undone alone when their body fails', async () => {
    const file = freshFile()
    const db = await store(file)
    const all = await Promise.allSettled(
      times(6).map((number) =>
        db.transact(async (tx) => {
          await tx.query('INSERT INTO item (note) VALUES (?)', [`note ${number}`])
          if (number % 2 === 1) throw new Error(`no ${number}`)
        }),
      ),
    )
    expect(all.map(({ status }) => status)).toEqual(times(6).map((n) => (n % 2 === 1 ? 'rejected' : 'fulfilled')))
    expect(notes(file)).toEqual(['note 0', 'note 2', 'note 4'])
    expect(shared).toEqual([{ domain: 'items', members: 6, outcome: 'committed' }])
  })

  it('cannot write into the part of the next one with a handle that they kept', async () => {
    const file = freshFile()
    const db = await store(file)
    let kept: SqliteClient | undefined
    let late: unknown
    const first = db.transact((tx) => {
      kept = tx.db
    })
    const second = db.transact(async (tx) => {
      await tx.query("INSERT INTO item (note) VALUES ('second')")
      try {
        kept?.exec("INSERT INTO item (note) VALUES ('stray')")
      } catch (error) {
        late = error
      }
    })
    await Promise.all([first, second])
    expect(shared).toMatchObject([{ members: 2 }])
    expect(late).toMatchObject({ code: 'TRANSACTION_OVER' })
    expect(notes(file)).toEqual(['second'])
  })
})

describe('a body', () => {
  it('leaves when it is still pending after a turn of the event loop, and runs again by itself', async () => {
    const file = freshFile()
    const db = await store(file)
    const order: string[] = []
    let goOn: () => void = () => undefined
    const pending = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let [dead, reason]: unknown[] = []
    const runs: number[] = []
    const slow = db.operation('slow', {
      scope: () => scope('test'),
      key: (input: { name: string }) => parseKey(input.name),
      window: '1h',
      run: async (tx, { name }) => {
        runs.push(tx.attempt)
        await tx.query('INSERT INTO item (note) VALUES (?)', [name])
        if (runs.length > 1) return name
        await pending
        reason = tx.signal.reason
        await tx.query("INSERT INTO item (note) VALUES ('stray')").catch((error: unknown) => {
          dead = error
        })
        return 'too late'
      },
    })
    const ended = (name: string) => () => order.push(name)
    const first = insert(db, 'first').then(ended('first'))
    const second = slow({ name: 'slow-1' }).then((value) => order.push(String(value)))
    const third = insert(db, 'third').then(ended('third'))
    await Promise.all([first, second, third])
    // Nobody waited for it, though its first run has not come back yet.
    expect(order[0]).toBe('first')
    expect([...order].sort()).toEqual(['first', 'slow-1', 'third'])
    expect(runs).toEqual([1, 2])
    goOn()
    await expect.poll(() => dead).toMatchObject({ code: 'TRANSACTION_OVER' })
    expect(reason).toMatchObject({ code: 'SHARED_COMMIT_LEFT' })
    expect(attempts).toMatchObject([{ sign: 'SHARED_COMMIT_LEFT', operation: 'slow', attempt: 1, delayMs: 0 }])
    expect([...notes(file)].sort()).toEqual(['first', 'slow-1', 'third'])
    // It is remembered as one that does not share: it is not begun in vain again.
    shared = []
    await Promise.all([insert(db, 'fourth'), slow({ name: 'slow-2' }), insert(db, 'fifth')])
    expect(runs).toEqual([1, 2, 1])
    expect(attempts).toHaveLength(1)
    expect(notes(file)).toHaveLength(6)
  })

  it('that was seen to be slow by itself is not begun in vain at all', async () => {
    const file = freshFile()
    const db = await store(file)
    let runs = 0
    const slow = (note: string) =>
      db.transact(async (tx) => {
        runs += 1
        await tx.query('INSERT INTO item (note) VALUES (?)', [note])
        await new Promise((resolve) => setTimeout(resolve, 2))
      })
    await Promise.all(times(5).map((number) => slow(`slow ${number}`)))
    expect(runs).toBe(5)
    expect(attempts).toEqual([])
    expect(notes(file)).toHaveLength(5)
  })

  it.each([{ attempts: 1 }, { readOnly: true }])(
    'that may run once alone, or only reads, never shares: %j',
    async (options) => {
      const file = freshFile()
      const db = await store(file)
      const runs: number[] = []
      const once = (number: number) =>
        db.transact(async (tx) => {
          runs.push(number)
          await tx.query('SELECT * FROM item')
          await new Promise((resolve) => setTimeout(resolve, 1))
        }, options)
      await Promise.all([once(0), insert(db, 'a'), insert(db, 'b'), once(1), insert(db, 'c'), insert(db, 'd')])
      expect(runs.sort()).toEqual([0, 1])
      expect(attempts).toEqual([])
      expect(shared.map(({ members }) => members)).toEqual(options.readOnly ? [4] : [2, 2])
    },
  )

  it('that puts off the check of foreign keys does so for itself alone', async () => {
    const file = freshFile()
    const open = checkingKeys(file)
    const db = await store(file, { open })
    await db.transact((tx) => {
      tx.db.exec('CREATE TABLE child (item REFERENCES item (id))')
    })
    const deferring = db.transact(async (tx) => {
      tx.db.exec('PRAGMA defer_foreign_keys = 1')
      await tx.query('INSERT INTO child VALUES (1)')
      await tx.query("INSERT INTO item (id, note) VALUES (1, 'parent')")
    })
    const strict = db.transact(async (tx) => {
      const { rows } = await tx.query<{ defer_foreign_keys: number }>('PRAGMA defer_foreign_keys')
      return rows[0]?.defer_foreign_keys
    })
    await deferring
    expect(await strict).toBe(0)
  })
})

describe('what was decided in a shared transaction', () => {
  const key = { scope: scope('test'), key: parseKey('shared-decision') }
  const full = Object.assign(new Error('full'), { code: 'SQLITE_FULL' })

  it('is not told before COMMIT: results, replays, refusals and errors', async () => {
    const file = freshFile()
    const db = await store(file)
    const held = heldCommit()
    const told: string[] = []
    const calls = [
      db.transact(() => 'result', { key, content: { value: 1 } }),
      db.transact(() => 'never run', { key, content: { value: 1 } }),
      db.transact(() => 'never run', { key, content: { value: 2 } }),
      db.transact(() => Promise.reject(new Error('thrown'))),
      db.transact((tx) => tx.query('SELECT * FROM nowhere')),
    ].map((call) =>
      call.then(
        (value) => told.push(String(value)),
        (error: { message: string }) => told.push(error.message),
      ),
    )
    await held.reached
    await eventLoopTurn()
    await eventLoopTurn()
    expect(told).toEqual([])
    held.go()
    await Promise.all(calls)
    expect(told.sort()).toEqual([
      'The key was used with other content before.',
      'no such table: nowhere',
      'result',
      'result',
      'thrown',
    ])
    expect(shared).toEqual([{ domain: 'items', members: 5, outcome: 'committed' }])
  })

  it('counts for nothing when COMMIT fails: each runs again by itself, and is accounted for', async () => {
    const file = freshFile()
    const db = await store(file)
    const held = heldCommit()
    const runs: string[] = []
    const has = async (tx: Parameters<Parameters<typeof db.transact>[0]>[0]) =>
      (await tx.query("SELECT 1 FROM item WHERE note = 'first'")).rowCount > 0
    const first = db.transact(
      async (tx) => {
        runs.push(`first ${tx.attempt}`)
        if (tx.attempt > 1) throw new Error('not any more')
        await tx.query("INSERT INTO item (note) VALUES ('first')")
        return 'first'
      },
      { key, content: 'none' },
    )
    // Its first answer would be the replay of what was never committed.
    const second = db.transact(
      (tx) => {
        runs.push(`second ${tx.attempt}`)
        return 'second'
      },
      { key, content: 'none' },
    )
    const third = db.transact(async (tx) => {
      runs.push(`third ${tx.attempt}`)
      if (await has(tx)) throw new Error('taken')
      return 'third'
    })
    await held.reached
    held.go(full)
    const all = await Promise.allSettled([first, second, third])
    expect(all).toMatchObject([
      { status: 'rejected', reason: { message: 'not any more' } },
      { status: 'fulfilled', value: 'second' },
      { status: 'fulfilled', value: 'third' },
    ])
    expect(runs.sort()).toEqual(['first 1', 'first 2', 'second 2', 'third 1', 'third 2'])
    expect(shared).toEqual([{ domain: 'items', members: 3, outcome: 'undone' }])
    expect(signs().filter((sign) => sign === 'SHARED_COMMIT_UNDONE')).toHaveLength(3)
    expect(notes(file)).toEqual([])
  })

  it('asks no budget for a repeat that others are the reason of', async () => {
    const db = await store(freshFile())
    const held = heldCommit()
    const budget = tokenBudget({ maxTokens: 1, tokenRatio: 0.1 })
    const calls = times(3).map((number) => db.transact((tx) => [number, tx.attempt], { budget }))
    await held.reached
    held.go(full)
    expect(await Promise.all(calls)).toEqual(times(3).map((number) => [number, 2]))
  })

  it('is found out by each for itself when nobody knows what became of COMMIT', async () => {
    const file = freshFile()
    const db = await store(file)
    const held = heldCommit()
    const keyed = (number: number) => ({ scope: scope('test'), key: parseKey(`unknown-commit-${number}`) })
    const calls = times(4).map((number) =>
      db.transact(
        async (tx) => {
          await tx.query('INSERT INTO item (note) VALUES (?)', [`note ${number}`])
          return tx.attempt
        },
        { key: keyed(number), content: 'none' },
      ),
    )
    const plain = insert(db, 'plain')
    await held.reached
    held.go(Object.assign(new Error('sync'), { code: 'SQLITE_IOERR_FSYNC' }))
    const [unkeyed] = await Promise.allSettled([plain])
    expect(await Promise.all(calls)).toEqual(times(4).map(() => 2))
    expect(unkeyed).toMatchObject({ status: 'rejected', reason: { code: 'UNKNOWN_OUTCOME' } })
    expect(shared).toEqual([{ domain: 'items', members: 5, outcome: 'unknown' }])
    expect(notes(file).sort()).toEqual(times(4).map((number) => `note ${number}`))
    // Each has a history of its own.
    expect(transactionHistoryOf((unkeyed as PromiseRejectedResult).reason)?.attempts).toMatchObject([
      { phase: 'committing', ruling: { sign: 'SQLITE_IOERR_FSYNC' } },
    ])
  })
})

describe('an error of the engine', () => {
  it.each([2, 16, 64])(
    'undoes all members when one of them rolls everything back, and runs each again by itself: of %i',
    async (count) => {
      const file = freshFile()
      const db = await store(file)
      await db.transact((tx) => tx.query("INSERT INTO item (id, note) VALUES (1, 'there')"))
      const others = times(count - 1).map((number) => insert(db, `note ${number}`))
      const culprit = db.transact(async (tx) => {
        await tx.query("INSERT INTO item (note) VALUES ('half')")
        await tx.query("INSERT OR ROLLBACK INTO item (id, note) VALUES (1, 'b')")
      })
      await expect(culprit).rejects.toMatchObject({ code: 'SQLITE_CONSTRAINT_PRIMARYKEY' })
      expect(await Promise.all(others)).toEqual(times(count - 1).map(() => 2))
      expect(shared).toEqual([{ domain: 'items', members: count - 1, outcome: 'undone' }])
      expect(signs().filter((sign) => sign === 'SHARED_COMMIT_UNDONE')).toHaveLength(count)
      expect(notes(file).sort()).toEqual([...times(count - 1).map((number) => `note ${number}`), 'there'].sort())
    },
  )

  it.each([2, 16, 64])('that says that the file is full is told to the one who filled it, of %i', async (count) => {
    const file = freshFile()
    await store(file)
    const small = await store(file, {
      open: () => {
        const handle = new Database(file)
        handle.exec('PRAGMA max_page_count = 40')
        return handle
      },
    })
    const before = times(count / 2).map((number) => insert(small, `before ${number}`))
    const large = small.transact((tx) => tx.query('INSERT INTO item (note) VALUES (?)', ['x'.repeat(400_000)]))
    const after = times(count / 2 - 1).map((number) => insert(small, `after ${number}`))
    await expect(large).rejects.toMatchObject({ code: 'SQLITE_FULL' })
    await Promise.all([...before, ...after])
    expect(shared[0]).toMatchObject({ outcome: 'undone' })
    expect(notes(file)).toHaveLength(count - 1)
  })

  it('in answer to COMMIT is told to the one who is the reason of it: a deferred violation', async () => {
    const file = freshFile()
    const open = checkingKeys(file)
    const db = await store(file, { open })
    await db.transact((tx) => {
      tx.db.exec('CREATE TABLE child (item REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED)')
    })
    const all = await Promise.allSettled([
      insert(db, 'a'),
      db.transact((tx) => tx.query('INSERT INTO child VALUES (99)')),
      insert(db, 'b'),
    ])
    expect(all).toMatchObject([{ value: 2 }, { reason: { code: 'SQLITE_CONSTRAINT_FOREIGNKEY' } }, { value: 2 }])
    expect(shared).toEqual([{ domain: 'items', members: 3, outcome: 'undone' }])
    expect(notes(file).sort()).toEqual(['a', 'b'])
    // The connection holds on to nothing: it writes on after somebody else has changed the file.
    const other = open()
    other.exec("INSERT INTO item (note) VALUES ('other')")
    other.close()
    expect(await insert(db, 'c')).toBe(1)
  })

  it('is not guessed about when somebody else has ended the transaction', async () => {
    const file = freshFile()
    let handle: Database.Database | undefined
    const db = await store(file, {
      open: () => {
        handle = new Database(file)
        return handle
      },
    })
    let runs = 0
    const all = await Promise.allSettled([
      db.transact(async (tx) => {
        runs += 1
        await tx.query("INSERT INTO item (note) VALUES ('a')")
      }),
      db.transact(() => {
        runs += 1
        handle?.exec('COMMIT')
      }),
    ])
    expect(all).toMatchObject([
      { reason: { code: 'TRANSACTION_ENDED_ELSEWHERE' } },
      { reason: { code: 'TRANSACTION_ENDED_ELSEWHERE' } },
    ])
    expect(runs).toBe(2)
    expect(notes(file)).toEqual(['a'])
  })
})

describe('whoever waits and does not share', () => {
  it('has the transaction of the others committed first: leases, the doctor, a close', async () => {
    const file = freshFile()
    const db = await store(file)
    const lease = leased('lease', {
      store: db,
      scope: () => scope('test'),
      key: (input: { name: string }) => parseKey(input.name),
      window: '1h',
      lease: '30s',
      recover: hold(),
      run: async () => 'done',
    })
    const all = [
      insert(db, 'a'),
      insert(db, 'b'),
      lease({ name: 'leased-one' }),
      insert(db, 'c'),
      db.doctor(),
      insert(db, 'd'),
      insert(db, 'e'),
    ]
    await Promise.all(all)
    expect(notes(file).sort()).toEqual(['a', 'b', 'c', 'd', 'e'])
    const last = [insert(db, 'f'), insert(db, 'g')]
    await eventLoopTurn()
    await db.close()
    await Promise.allSettled(last)
    expect(notes(file)).toHaveLength(7)
  })
})
