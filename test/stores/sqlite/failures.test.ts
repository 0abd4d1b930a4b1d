// What fails inside a transaction, and that nothing of it is ever stored.

import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import type { TransactionControls } from '../../../src/atomicity/index.js'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import {
  type SqliteClient,
  type SqliteHandle,
  sqliteSignsOf as signsOf,
  sqlite,
} from '../../../src/stores/sqlite/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { gate } from '../../gate.js'
import { engineOn, freshFile, itemStore, rowsIn, stranger } from './files.js'

const controls: TransactionControls = {
  attempt: 1,
  signal: new AbortController().signal,
  deadline: { expiresAtMs: Number.POSITIVE_INFINITY },
  afterCommit() {},
}
const writing = { isolation: 'serializable', readOnly: false, idleMs: 60_000, lockWaitMs: 1_000 } as const
const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )
const notes = (file: string) => rowsIn(file, 'SELECT note FROM item ORDER BY note')

function signOf(error: unknown): string | undefined {
  return transactionHistoryOf(error)?.attempts.at(-1)?.ruling.sign
}

describe('an error of the engine', () => {
  it('poisons the transaction: what the body does after swallowing it is refused, and nothing is stored', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    let later: unknown
    const error = await caught(
      db.transact(async (tx) => {
        await tx.query("INSERT INTO item (note) VALUES ('a')")
        const first = await caught(tx.query("INSERT INTO item (note) VALUES ('a')"))
        later = await caught(tx.query("INSERT INTO item (note) VALUES ('b')"))
        expect(later).toBe(first)
        expect(() => tx.db.prepare('SELECT 1')).toThrow(first as Error)
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: 'SQLITE_CONSTRAINT_UNIQUE' } })
    expect(notes(file)).toEqual([])
  })

  it('is poisoned by a violation with OR ROLLBACK, which ends the transaction', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    await db.transact((tx) => tx.query("INSERT INTO item (id, note) VALUES (1, 'there')"))
    const error = await caught(
      db.transact(async (tx) => {
        await tx.query("INSERT INTO item (note) VALUES ('a')")
        // The savepoint cannot scope it: there is no transaction left to go on with.
        await caught(tx.savepoint(() => tx.query("INSERT OR ROLLBACK INTO item (id, note) VALUES (1, 'b')")))
        await caught(tx.query("INSERT INTO item (note) VALUES ('leaked')"))
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED' })
    expect(signOf(error)).toBe('SQLITE_CONSTRAINT_PRIMARYKEY')
    expect(notes(file)).toEqual([['there']])
  })

  it('is poisoned by a full file, and alarms', async () => {
    const file = freshFile()
    await itemStore(file)
    const small = sqlite({
      name: 'small',
      open: () => {
        const handle = new Database(file)
        handle.exec('PRAGMA max_page_count = 20')
        return handle
      },
    })
    const error = await caught(
      small.transact(async (tx) => {
        await tx.query("INSERT INTO item (note) VALUES ('before')")
        await caught(tx.query('INSERT INTO item (note) VALUES (?)', ['x'.repeat(200_000)]))
        await caught(tx.query("INSERT INTO item (note) VALUES ('leaked')"))
      }),
    )
    expect(transactionHistoryOf(error)?.attempts).toMatchObject([{ ruling: { sign: 'SQLITE_FULL', alarm: true } }])
    expect(notes(file)).toEqual([])
    expect(await small.transact(async (tx) => (await tx.query("INSERT INTO item (note) VALUES ('c')")).rowCount)).toBe(
      1,
    )
    await small.close()
  })

  it('is scoped by a savepoint', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    await db.transact(async (tx) => {
      await tx.query("INSERT INTO item (note) VALUES ('a')")
      const inner = tx.savepoint(async () => {
        await tx.query("INSERT INTO item (note) VALUES ('b')")
        await tx.query("INSERT INTO item (note) VALUES ('a')")
      })
      expect(await caught(inner)).toMatchObject({ code: 'SQLITE_CONSTRAINT_UNIQUE' })
      await tx.query("INSERT INTO item (note) VALUES ('c')")
    })
    expect(notes(file)).toEqual([['a'], ['c']])
  })

  it('stays the error that the engine gave when the body throws it on', async () => {
    const db = await itemStore()
    const error = await caught(db.transact((tx) => tx.query('SELECT * FROM nothing')))
    expect(error).toMatchObject({ code: 'SQLITE_ERROR' })
    expect(signOf(error)).toBe('SQLITE_ERROR')
  })
})

describe('a body', () => {
  it('may await, and is alone on its connection meanwhile', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    const insert = (note: string) =>
      db.transact(async (tx) => {
        await tx.query('INSERT INTO item (note) VALUES (?)', [note])
        await new Promise((resolve) => setTimeout(resolve, 5))
        const { rows } = await tx.query<{ count: number }>('SELECT count(*) AS count FROM item')
        return rows[0]?.count
      })
    expect((await Promise.all(['a', 'b', 'c'].map(insert))).sort()).toEqual([1, 2, 3])
  })

  it('that outlives its transaction can do nothing more', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    let kept: SqliteClient | undefined
    let late: unknown
    const body = db.transact(
      async (tx) => {
        kept = tx.db
        const statement = tx.db.prepare("INSERT INTO item (note) VALUES ('late')")
        await new Promise((resolve) => tx.signal.addEventListener('abort', resolve))
        await eventLoopTurn()
        try {
          statement.run()
        } catch (error) {
          late = error
        }
      },
      { bodyLimit: '20ms' },
    )
    expect(await caught(body)).toMatchObject({ code: 'BODY_TIME_LIMIT' })
    await expect.poll(() => late).toMatchObject({ code: 'TRANSACTION_OVER' })
    expect(() => kept?.exec("INSERT INTO item (note) VALUES ('later')")).toThrow(
      expect.objectContaining({ code: 'TRANSACTION_OVER' }),
    )
    await db.transact((tx) => tx.query("INSERT INTO item (note) VALUES ('next')"))
    expect(notes(file)).toEqual([['next']])
  })

  it('cannot write where it was declared to read', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    for (const text of ["INSERT INTO item (note) VALUES ('a')", 'PRAGMA query_only = 0', 'PRAGMA "query_only" = 0']) {
      const error = await caught(db.transact((tx) => tx.query(text), { readOnly: true }))
      expect(error).toMatchObject({ code: /INSERT/.test(text) ? 'TRANSACTION_READ_ONLY' : 'TRANSACTION_STATEMENT' })
    }
    expect(notes(file)).toEqual([])
  })
})

describe('a statement beside savepoints', () => {
  it.each(['query', 'row'])('waits for all that come before it, and is undone with none of them: %s', async (way) => {
    const file = freshFile()
    const db = await itemStore(file)
    await db.transact(async (tx) => {
      const savepoint = (note: string) =>
        tx.savepoint(async () => {
          await tx.query('INSERT INTO item (note) VALUES (?)', [note])
          await new Promise((resolve) => setImmediate(resolve))
          throw new Error('undone')
        })
      const beside = () =>
        way === 'query'
          ? tx.query("INSERT INTO item (note) VALUES ('beside')")
          : tx.updateRows('item', { note: 'before' }, { note: 'beside' })
      await tx.query("INSERT INTO item (note) VALUES ('before')")
      const all = await Promise.allSettled([savepoint('first'), savepoint('second'), beside()])
      expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    })
    expect(notes(file)).toEqual(way === 'query' ? [['before'], ['beside']] : [['beside']])
  })
})

describe('COMMIT', () => {
  it('does not commit while a savepoint is open that the body did not await', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    let late: unknown
    const [inside, ended] = [gate(), gate()]
    const error = await caught(
      db.transact(async (tx) => {
        const forgotten = tx.savepoint(async () => {
          await tx.query("INSERT INTO item (note) VALUES ('half')")
          inside.open()
          await ended.opened
          await tx.query("INSERT INTO item (note) VALUES ('other half')")
        })
        forgotten.catch((thrown: unknown) => {
          late = thrown
        })
        await inside.opened
      }),
    )
    expect(error).toMatchObject({ code: 'SAVEPOINT_ORDER' })
    ended.open()
    await expect.poll(() => late).toMatchObject({ code: 'TRANSACTION_OVER' })
    expect(notes(file)).toEqual([])
  })

  it('does not commit a transaction that somebody else has ended', async () => {
    const file = freshFile()
    await itemStore(file)
    let handle: SqliteHandle | undefined
    const engine = engineOn(file, {
      open: () => {
        handle = new Database(file)
        return handle
      },
    })
    const session = await engine.acquire({ waitMs: 1_000, readOnly: false })
    await session.begin(writing, controls)
    handle?.exec('ROLLBACK')
    const error = await caught((async () => session.commit())())
    expect(error).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    expect(engine.classify(error, 'committing')).toEqual({
      outcome: 'aborted',
      help: 'permanent',
      connection: 'discard',
      alarm: true,
      sign: 'transaction-ended-elsewhere',
    })
    session.release('discard')
  })

  it('answered with a deferred violation is aborted, and the connection is used again', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    await db.transact((tx) => {
      tx.db.exec('CREATE TABLE child (item REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED)')
    })
    const strict = sqlite({
      name: 'strict',
      open: () => {
        const handle = new Database(file)
        handle.exec('PRAGMA foreign_keys = ON')
        return handle
      },
    })
    const error = await caught(strict.transact((tx) => tx.query('INSERT INTO child VALUES (99)')))
    expect(error).toMatchObject({ code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })
    expect(transactionHistoryOf(error)?.attempts).toMatchObject([
      { phase: 'committing', ruling: { outcome: 'aborted' } },
    ])
    expect(rowsIn(file, 'SELECT * FROM child')).toEqual([])
    expect(await strict.transact(async () => 'again')).toBe('again')
    await strict.close()
  })
})

describe('a file', () => {
  const firstError = (db: ReturnType<typeof sqlite>) =>
    caught(db.transact((tx) => tx.query('SELECT * FROM sqlite_schema')))
  const on = (file: string) => sqlite({ name: 'odd', open: () => new Database(file) })

  it('halts at a file that is not a database', async () => {
    const file = freshFile()
    writeFileSync(file, 'no database at all, '.repeat(500))
    expect(signOf(await firstError(on(file)))).toBe('SQLITE_NOTADB')
  })

  it('halts at a file that cannot be opened', async () => {
    const error = await firstError(on('/nowhere/at/all.db'))
    expect(signOf(error)).toBe('SQLITE_CANTOPEN')
    expect(transactionHistoryOf(error)?.attempts).toMatchObject([{ ruling: { alarm: true, help: 'permanent' } }])
  })

  it('halts at a file that is damaged', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    for (let part = 0; part < 20; part += 1) {
      await db.transact((tx) => tx.query('INSERT INTO item (note) VALUES (?)', [`${part} ${'x'.repeat(3_000)}`]))
    }
    await db.close()
    // The log goes into the file: libsql closes a connection for good only when its statements are collected as
    // garbage.
    stranger(file).exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const whole = readFileSync(file)
    // The schema stays readable, the rows do not.
    whole.fill(0xa5, whole.length - 4096 * 15)
    writeFileSync(file, whole)
    const damaged = on(file)
    const error = await caught(damaged.transact((tx) => tx.query('SELECT sum(length(note)) FROM item')))
    expect(signOf(error)).toBe('SQLITE_CORRUPT')
    await damaged.close()
  })

  it('halts at a file that cannot be written', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    await db.close()
    chmodSync(file, 0o444)
    const frozen = sqlite({
      name: 'frozen',
      open: () => {
        const handle = new Database(file)
        // Root may write to any file; this is what others meet.
        handle.exec('PRAGMA query_only = 1')
        return handle
      },
    })
    const error = await caught(frozen.transact((tx) => tx.query("INSERT INTO item (note) VALUES ('a')")))
    expect(signOf(error)).toBe('SQLITE_READONLY')
    await frozen.close()
  })

  it('in memory is refused, since every connection would have its own', async () => {
    expect(await firstError(on(':memory:'))).toMatchObject({ code: 'ARGUMENT_INVALID' })
  })
})

it('knows the errors of all drivers by one name', () => {
  const named = (error: object) => signsOf(Object.assign(new Error('x'), error))
  expect(named({ code: 'SQLITE_BUSY_SNAPSHOT' })).toEqual(['SQLITE_BUSY_SNAPSHOT', 'SQLITE_BUSY'])
  expect(named({ code: 'SQLITE_IOERR_FSYNC', rawCode: 1034 })).toEqual(['SQLITE_IOERR_FSYNC', 'SQLITE_IOERR'])
  expect(named({ code: 'ERR_SQLITE_ERROR', errcode: 517 })).toEqual(['SQLITE_BUSY_SNAPSHOT', 'SQLITE_BUSY'])
  expect(named({ code: 'ERR_SQLITE_ERROR', errcode: 1555 })).toEqual([
    'SQLITE_CONSTRAINT_PRIMARYKEY',
    'SQLITE_CONSTRAINT',
  ])
  expect(named({ code: 'ERR_SQLITE_ERROR', errcode: 5 + 256 * 99 })).toEqual(['SQLITE_BUSY'])
  expect(named({ code: 'ECONNRESET' })).toEqual([])
  expect(signsOf('text')).toEqual([])
})
