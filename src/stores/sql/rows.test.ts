import Database from 'libsql'
import { beforeEach, describe, expect, it } from 'vitest'
import type { SqlExecutor } from './executor.js'
import { sqliteDialect, sqlRows } from './index.js'

// A real engine without a server. What two connections do to each other is tested on PostgreSQL.
let database: Database.Database
let poisoned: unknown[]
let before: (text: string) => void

const executor: SqlExecutor = {
  dialect: sqliteDialect,
  async run(text, values) {
    before(text)
    const statement = database.prepare(text)
    if (/^SELECT|RETURNING/.test(text)) {
      const rows = statement.all(...values) as Record<string, unknown>[]
      return { rows, rowCount: rows.length }
    }
    return { rows: [], rowCount: statement.run(...values).changes }
  },
  lock: (select, values) => executor.run(select, values),
  poison: (error) => poisoned.push(error),
}
const rows = sqlRows(executor)
const refused = expect.objectContaining({ code: 'ARGUMENT_INVALID' })

beforeEach(() => {
  database = new Database(':memory:')
  database.exec(
    `create table orders (id text primary key, ref text unique, kind text, state text, last_command text, amount integer);
     insert into orders values ('a', 'ra', 'k', 'new', null, 1), ('b', 'rb', 'k', 'new', null, 2)`,
  )
  poisoned = []
  before = () => undefined
})

describe('insertOnce', () => {
  it('inserts, and gives the row that is there to a repeat', async () => {
    const first = await rows.insertOnce('orders', { id: 'c', ref: 'rc', amount: 3 }, ['ref'])
    expect(first).toMatchObject({ inserted: true, row: { id: 'c', amount: 3, state: null } })
    const second = await rows.insertOnce('orders', { id: 'd', ref: 'rc', amount: 4 }, ['ref'])
    expect(second).toMatchObject({ inserted: false, row: { id: 'c', amount: 3 } })
  })

  it('reaches a table whose name has a dot', async () => {
    database.exec('create table "shop.orders" (id text primary key)')
    await rows.insertOnce({ table: 'shop.orders' }, { id: 'z' }, ['id'])
    expect(await rows.readRow({ schema: 'main', table: 'shop.orders' }, { id: 'z' })).toMatchObject({ id: 'z' })
    await expect(rows.readRow('shop.orders', { id: 'z' })).rejects.toThrow(/no such table/)
  })

  it('does not hide a violation of another key', async () => {
    await expect(rows.insertOnce('orders', { id: 'a', ref: 'new' }, ['ref'])).rejects.toThrow(/UNIQUE/)
  })

  it('refuses a natural key without a value', async () => {
    await expect(rows.insertOnce('orders', { id: 'c', ref: null }, ['ref'])).rejects.toThrow(refused)
    await expect(rows.insertOnce('orders', { id: 'c' }, ['ref'])).rejects.toThrow(refused)
    await expect(rows.insertOnce('orders', { id: 'c' }, [])).rejects.toThrow(refused)
  })

  it('tries again when the row is gone in between, and not for ever', async () => {
    let gone = 1
    before = (text) => {
      if (text.startsWith('SELECT') && gone-- > 0) database.exec("delete from orders where id = 'a'")
    }
    expect(await rows.insertOnce('orders', { id: 'a', ref: 'ra' }, ['id'])).toMatchObject({ inserted: true })
    before = (text) => {
      if (text.startsWith('SELECT')) database.exec("delete from orders where id = 'a'")
      else database.exec("insert or replace into orders (id, ref) values ('a', 'ra')")
    }
    await expect(rows.insertOnce('orders', { id: 'a', ref: 'ra' }, ['id'])).rejects.toThrow(
      expect.objectContaining({ code: 'ROW_UNSETTLED' }),
    )
  })
})

describe('transition', () => {
  const pay = { where: { id: 'a' }, from: 'new', to: 'paid', command: 'c1' }

  it('tells the four meanings of its answer apart', async () => {
    expect(await rows.transition('orders', { ...pay, set: { amount: 9 } })).toEqual({ result: 'applied' })
    expect(await rows.readRow('orders', { id: 'a' })).toMatchObject({ state: 'paid', last_command: 'c1', amount: 9 })
    expect(await rows.transition('orders', pay)).toEqual({ result: 'already-applied' })
    expect(await rows.transition('orders', { ...pay, command: 'c2' })).toEqual({ result: 'invalid', state: 'paid' })
    expect(await rows.transition('orders', { ...pay, where: { id: 'z' } })).toEqual({ result: 'absent' })
  })

  it('applies a command once also where the state stays the same', async () => {
    const again = { ...pay, from: ['new', 'paid'], set: { amount: 5 } }
    expect(await rows.transition('orders', again)).toEqual({ result: 'applied' })
    database.exec("update orders set amount = 6 where id = 'a'")
    expect(await rows.transition('orders', again)).toEqual({ result: 'already-applied' })
    expect(await rows.readRow('orders', { id: 'a' })).toMatchObject({ amount: 6 })
  })

  it.each([
    ['text', 'pay-1', ['pay-1'], 'PAY-1'],
    ['text', 7, [7, 7n, '7'], '07'],
    ['integer', '7', ['7', 7, 7n, '07'], '8'],
    ['integer', 2n ** 60n, [2n ** 60n, String(2n ** 60n)], String(2n ** 60n + 1n)],
  ])('knows a command by its column of %s (%s)', async (type, first, repeats, other) => {
    database.exec(
      `create table typed (id text primary key, state text, last_command ${type}); insert into typed values ('a', 'new', null)`,
    )
    const move = (command: string | number | bigint) => rows.transition('typed', { ...pay, command })
    expect(await move(first)).toEqual({ result: 'applied' })
    for (const repeat of repeats) expect(await move(repeat)).toEqual({ result: 'already-applied' })
    expect(await move(other)).toEqual({ result: 'invalid', state: 'paid' })
  })

  it('applies when somebody moved the row back between its two statements', async () => {
    database.exec("update orders set state = 'held' where id = 'a'")
    let moves = 1
    before = (text) => {
      if (text.startsWith('SELECT') && moves-- > 0) database.exec("update orders set state = 'new' where id = 'a'")
    }
    expect(await rows.transition('orders', pay)).toEqual({ result: 'applied' })
  })

  it('refuses what names more than one row, and keeps the transaction from committing', async () => {
    await expect(rows.transition('orders', { ...pay, where: { kind: 'k' } })).rejects.toThrow(refused)
    expect(poisoned).toHaveLength(1)
  })

  it('refuses what names no row for certain', async () => {
    for (const wrong of [{ where: {} }, { where: { ref: null } }, { from: [] }, { set: { state: 'x' } }]) {
      await expect(rows.transition('orders', { ...pay, ...wrong })).rejects.toThrow(refused)
    }
  })
})

describe('reading and updating', () => {
  it('finds one row, none, and refuses several', async () => {
    expect(await rows.readRow('orders', { id: 'a' })).toMatchObject({ ref: 'ra' })
    expect(await rows.readRow('orders', { id: 'z' })).toBeUndefined()
    expect(await rows.readRow('orders', { last_command: null, id: 'a' })).toMatchObject({ ref: 'ra' })
    await expect(rows.readRow('orders', { kind: 'k' })).rejects.toThrow(refused)
    await expect(rows.readRow('orders', {})).rejects.toThrow(refused)
  })

  it('locks by a unique key', async () => {
    expect(await rows.lockRow('orders', { id: 'a' }, { wait: '1s' })).toMatchObject({ ref: 'ra' })
    expect(await rows.lockRow('orders', { id: 'z' }, { wait: 'nowait' })).toBeUndefined()
    await expect(rows.lockRow('orders', { ref: null })).rejects.toThrow(refused)
  })

  it('says how many rows it updated', async () => {
    expect(await rows.updateRows('orders', { kind: 'k' }, { state: 'x' })).toBe(2)
    expect(await rows.updateRows('orders', { id: 'z' }, { state: 'x' })).toBe(0)
    await expect(rows.updateRows('orders', {}, { state: 'x' })).rejects.toThrow(refused)
    await expect(rows.updateRows('orders', { id: 'a' }, {})).rejects.toThrow(refused)
    await expect(rows.updateRows('orders', { id: undefined as never }, { state: 'x' })).rejects.toThrow(refused)
  })
})
