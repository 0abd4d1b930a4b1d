import Libsql from 'libsql'
import { expect, it } from 'vitest'
import type { StoredKey } from '../../../identity/index.js'
import { deadlineAfter } from '../../../kernel/index.js'
import type { SqlDialect } from '../dialect.js'
import { postgresDialect } from '../dialects/postgres.js'
import { sqliteDialect } from '../dialects/sqlite.js'
import { type Procedure, perform } from '../records/procedures.js'
import { type Query, RecordStatements } from '../records/statements.js'
import { windowStatements } from './migration.js'
import { SqlSeen } from './seen.js'

const tables = { marker: '"marker"', audit: '"audit"', window: '"heads"', seen: '"seen"', nextFence: '1' }
const limits = { deadline: deadlineAfter('1m') }
const bounds = { name: 'orders', withinMs: 60_000, most: 10 }
const marks = ['a', 'b'].map((id) => ({ id: id as StoredKey, agoMs: 5 }))

/** Windows in which every statement is kept; on real stores they are run by test/stores/windows. */
function inspected(dialect: SqlDialect, answer: (query: Query) => readonly Record<string, unknown>[]) {
  const sent: Query[] = []
  const send = (query: Query) => {
    sent.push(query)
    const rows = answer(query)
    return { rows, rowCount: rows.length }
  }
  const runner = {
    read: async (query: Query) => send(query).rows,
    write: async <Result>(procedure: () => Procedure<Result>) => perform(procedure(), send),
  }
  return { sent, seen: new SqlSeen(new RecordStatements(dialect, tables), runner) }
}

it('marks any number of ids by one statement of one text, where the engine writes inside WITH', async () => {
  const { sent, seen } = inspected(postgresDialect, () => [{ heads: 1 }])
  await seen.mark(bounds, marks, limits)
  await seen.mark(bounds, marks.slice(0, 1), limits)
  expect(sent).toHaveLength(2)
  expect(sent[0]?.text).toBe(sent[1]?.text)
  const places = [...(sent[0]?.text ?? '').matchAll(/\$(\d+)/g)].map(([, place]) => Number(place))
  expect(places).toEqual((sent[0]?.values ?? []).map((_, index) => index + 1))
})

it('makes the head with the first mark, and says so where it cannot be had', async () => {
  let heads = 0
  const { sent, seen } = inspected(postgresDialect, ({ text }) => {
    if (text.startsWith('INSERT')) heads = 1
    return [{ heads }]
  })
  await seen.mark(bounds, marks, limits)
  expect(sent).toHaveLength(3)
  const gone = inspected(postgresDialect, ({ text }) => (text.startsWith('SELECT') ? [] : [{ heads: 0 }]))
  await expect(gone.seen.mark(bounds, marks, limits)).rejects.toMatchObject({ code: 'ROW_UNSETTLED' })
})

it('finds ids by their key, and what to forget by its number, without reading the table', async () => {
  const database = new Libsql(':memory:')
  const types = { text: 'TEXT', integer: 'INTEGER', bigint: 'INTEGER' }
  for (const statement of windowStatements(types, tables, '"seen_order"')) database.exec(statement)
  const plans: string[] = []
  const { seen } = inspected(sqliteDialect, ({ text, values, counts }) => {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values) as { detail: string }[]
    plans.push(...plan.map(({ detail }) => detail))
    const statement = database.prepare(text)
    if (counts !== true) return statement.all(...values) as Record<string, unknown>[]
    return Array.from({ length: statement.run(...values).changes }, () => ({}))
  })
  await seen.mark(bounds, marks, limits)
  expect(await seen.seen(bounds, ['a', 'c'] as string[] as StoredKey[], limits)).toEqual(['a'])
  const read = plans.filter((detail) => /\b(?:SCAN|SEARCH) (?:seen|r)\b/.test(detail))
  expect(read.filter((detail) => detail.startsWith('SCAN'))).toEqual([])
  expect(read.join('\n')).toMatch(/seen_order/)
  expect(read.join('\n')).toMatch(/autoindex/)
})
