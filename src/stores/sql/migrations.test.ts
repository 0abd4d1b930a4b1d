import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { applyMigrations, type MigrationPlan, type MigrationTarget, printMigrations, schemaState } from './index.js'

const plan: MigrationPlan = {
  versionTable: '"version"',
  prepare: [
    'CREATE TABLE IF NOT EXISTS "version" (number integer PRIMARY KEY, name text, applied_at_ms bigint, works_with integer)',
  ],
  nowMs: '1',
  migrations: [
    { number: 1, name: "it's first", worksWith: 1, statements: ['CREATE TABLE a (x)', 'CREATE TABLE b (x)'] },
    { number: 2, name: 'second', worksWith: 2, statements: ['ALTER TABLE a ADD COLUMN y'] },
  ],
}

function target(): MigrationTarget & { readonly database: Database.Database } {
  const database = new Database(':memory:')
  return {
    database,
    async run(statement) {
      if (statement.startsWith('SELECT')) return database.prepare(statement).all() as Record<string, unknown>[]
      database.exec(statement)
      return []
    },
  }
}

describe('migrations', () => {
  it('go forward once, from wherever the schema is', async () => {
    const store = target()
    const first = { ...plan, migrations: plan.migrations.slice(0, 1) }
    expect(await applyMigrations(store, first)).toEqual({ from: 0, to: 1 })
    expect(await applyMigrations(store, plan)).toEqual({ from: 1, to: 2 })
    expect(await applyMigrations(store, plan)).toEqual({ from: 2, to: 2 })
    expect(await schemaState(store, plan)).toEqual({ applied: 2, needed: 0, saysWorksWith: true })
    expect(store.database.prepare('SELECT number, name FROM version').all()).toMatchObject([
      { number: 1, name: "it's first" },
      { number: 2, name: 'second' },
    ])
    store.database.exec('insert into a (x, y) values (1, 2)')
  })

  it('refuse a schema that is newer than the code', async () => {
    const store = target()
    await applyMigrations(store, plan)
    await expect(applyMigrations(store, { ...plan, migrations: plan.migrations.slice(0, 1) })).rejects.toThrow(
      expect.objectContaining({ code: 'MIGRATION_NEWER', details: { applied: 2, known: 1, needed: 2 } }),
    )
  })

  it('let code work on a newer schema that works with it, by the strictest of those it does not know', async () => {
    const store = target()
    const [first, second] = plan.migrations as [MigrationPlan['migrations'][0], MigrationPlan['migrations'][0]]
    const third = { number: 3, name: 'third', worksWith: 1, statements: ['CREATE TABLE c (x)'] }
    const newer = { ...plan, migrations: [first, second, third] }
    expect(await applyMigrations(store, newer)).toEqual({ from: 0, to: 3 })
    expect(await applyMigrations(store, plan)).toEqual({ from: 3, to: 3 })
    await expect(applyMigrations(store, { ...plan, migrations: [first] })).rejects.toMatchObject({
      code: 'MIGRATION_NEWER',
      message: expect.stringContaining('knows migration 2 or a later one'),
      details: { applied: 3, known: 1, needed: 2 },
    })
  })

  it('work with code from the first one to themselves', async () => {
    const wrong = { ...plan, migrations: [{ number: 1, name: 'first', worksWith: 2, statements: [] }] }
    await expect(applyMigrations(target(), wrong)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  it('are numbered without gaps', async () => {
    const gap = { ...plan, migrations: plan.migrations.slice(1) }
    await expect(applyMigrations(target(), gap)).rejects.toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    expect(() => printMigrations(gap)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('can be printed, and what is printed makes the same schema', async () => {
    const store = target()
    store.database.exec(printMigrations(plan))
    expect(await applyMigrations(store, plan)).toEqual({ from: 2, to: 2 })
  })
})
