import { describe, expect, it } from 'vitest'
import { transactionStatementIn } from '../statements.js'
import { postgresDialect } from './postgres.js'
import { sqliteDialect } from './sqlite.js'

describe.each([
  ['postgres', postgresDialect],
  ['sqlite', sqliteDialect],
])('the dialect %s', (_name, dialect) => {
  it.each(['begin', 'commit', 'end', 'rollback', 'savepoint a', 'release a'])('refuses %s', (statement) => {
    const first = statement.split(' ')[0]
    // The hint is looked at first: a text that it does not match is not read at all.
    expect(dialect.words.hint.test(statement)).toBe(true)
    expect(dialect.words.refused(statement.split(' '))).toBe(first)
    expect(transactionStatementIn(`select 1; ${statement.toUpperCase()}`, dialect)).toBe(first)
  })

  it('tells a table of ours that is missing from any other error', () => {
    expect(dialect.isMissing(['42P01'], 'no such table: reprise_marker')).toBe(true)
    expect(dialect.isMissing(['23505'], 'UNIQUE constraint failed: orders.id')).toBe(false)
  })

  it('inserts what is not there, by the columns that make it unique', () => {
    expect(dialect.insertNew('"t"', 'id, n', 'VALUES (1, 2)', 'id')).toBe(
      'INSERT INTO "t" (id, n) VALUES (1, 2) ON CONFLICT (id) DO NOTHING',
    )
  })
})

it.each([
  ['sets what is not in the key', ['n', 'm'], 'UPDATE SET n = excluded.n, m = excluded.m'],
  ['has nothing to set', [], 'NOTHING'],
])('an insert that %s', (_what, set, action) => {
  for (const dialect of [postgresDialect, sqliteDialect]) {
    expect(dialect.insertOrSet('"t"', 'id, n, m', 'VALUES (1, 2, 3)', 'id', set)).toBe(
      `INSERT INTO "t" (id, n, m) VALUES (1, 2, 3) ON CONFLICT (id) DO ${action}`,
    )
  }
})

it('counts its places only where the engine does', () => {
  expect([postgresDialect.placeholder(2), postgresDialect.placeholder(2, 'number')]).toEqual(['$2', '$2::bigint'])
  expect(sqliteDialect.placeholder(2, 'number')).toBe('?')
})

it('takes the next fence where the engine keeps it', () => {
  expect(postgresDialect.fence.next('"f"')).toBe(`nextval('"f"')`)
  expect(postgresDialect.fence.advance).toBeUndefined()
  expect([sqliteDialect.fence.advance?.('"f"'), sqliteDialect.fence.next('"f"')]).toEqual([
    'UPDATE "f" SET number = number + 1',
    '(SELECT number FROM "f")',
  ])
})
