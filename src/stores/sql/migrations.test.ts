import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { appliedNumber, applyMigrations, type MigrationPlan, type MigrationTarget, printMigrations } from './index.js'

const plan: MigrationPlan = {
  versionTable: '"version"',
  prepare: ['CREATE TABLE IF NOT EXISTS "version" (number integer PRIMARY KEY, name text, applied_at_ms bigint)'],
  nowMs: '1',
  migrations: [
    { number: 1, name: "it's first", statements: ['CREATE TABLE a (x)', 'CREATE TABLE b (x)'] },
    { number: 2, name: 'second', statements: ['ALTER TABLE a ADD COLUMN y'] },
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
    expect(await appliedNumber(store, plan)).toBe(2)
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
      expect.objectContaining({ code: 'MIGRATION_NEWER', details: { applied: 2, known: 1 } }),
    )
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
