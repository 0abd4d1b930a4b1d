// A deployment is rolled back: newer code has migrated the database, and this code starts on it again.

import { describe, expect, it } from 'vitest'
import { type Key, scope } from '../../../src/identity/index.js'
import { postgresSchema } from '../../../src/stores/postgres/migrations.js'
import { applyMigrations } from '../../../src/stores/sql/index.js'
import { sqliteMigrations } from '../../../src/stores/sqlite/migrations.js'
import { type Engine, engines, type Opened, withFixture } from './fixtures.js'

const plans = { postgres: postgresSchema().plan, sqlite: sqliteMigrations('reprise_') }

/** Migrates as a version with one more migration would, which adds a column; the number of that migration. */
async function migrateByNewerCode(engine: Engine, { raw }: Opened, worksWith: 'this code' | 'itself'): Promise<number> {
  const plan = plans[engine]
  const known = plan.migrations.length
  const next = {
    number: known + 1,
    name: 'a column of the future',
    worksWith: worksWith === 'this code' ? known : known + 1,
    statements: ['ALTER TABLE reprise_marker ADD COLUMN future integer'],
  }
  const done = await applyMigrations({ run: raw }, { ...plan, migrations: [...plan.migrations, next] })
  expect(done.to).toBe(next.number)
  return next.number
}

const newer = (findings: readonly { readonly code: string }[]) =>
  findings.filter(({ code }) => code.startsWith('MIGRATIONS_'))

describe.each(engines)('a database that newer code has migrated, on %s', (engine) => {
  const key = { scope: scope('newer'), key: 'order-1' as Key }
  // Both were made before a migration said which code it works with.
  const formats = [1, 2]

  it.each(formats)('is worked on by code that its migrations work with, from format %i', (format) =>
    withFixture(engine, format, async (opened) => {
      const { db, raw } = opened
      const number = await migrateByNewerCode(engine, opened, 'this code')
      expect(await db.migrate()).toEqual({ from: number, to: number })
      let bodies = 0
      for (let calls = 0; calls < 2; calls += 1)
        expect(await db.transact(() => ++bodies, { content: 'none', key })).toBe(1)
      expect(newer(await db.doctor())).toMatchObject([{ code: 'MIGRATIONS_AHEAD', severity: 'note' }])
      expect(await raw('SELECT future FROM reprise_marker WHERE future IS NOT NULL')).toEqual([])
    }),
  )

  it.each(formats)('is refused by code that is too old for one of them, from format %i', (format) =>
    withFixture(engine, format, async (opened) => {
      const { db } = opened
      const number = await migrateByNewerCode(engine, opened, 'itself')
      await expect(db.migrate()).rejects.toMatchObject({
        code: 'MIGRATION_NEWER',
        message: expect.stringContaining(`deploy a version that knows migration ${number} or a later one`),
        details: { applied: number, known: number - 1, needed: number },
      })
      expect(newer(await db.doctor())).toMatchObject([{ code: 'MIGRATIONS_NEWER', severity: 'broken' }])
    }),
  )

  it('is refused where a migration says nothing, as those of the first versions did', () =>
    withFixture(engine, 2, async ({ db, raw }) => {
      await raw("INSERT INTO reprise_migration (number, name, applied_at_ms) VALUES (99, 'of the future', 0)")
      await expect(db.migrate()).rejects.toMatchObject({ code: 'MIGRATION_NEWER' })
    }))

  it('is left as it is where there is nothing to migrate', () =>
    withFixture(engine, 2, async ({ db, raw }) => {
      const rows = () => raw('SELECT * FROM reprise_migration ORDER BY number')
      const first = await rows()
      expect(Object.keys(first[0] ?? {})).toEqual(['number', 'name', 'applied_at_ms'])
      // As code does that knows none but these.
      const plan = plans[engine]
      await applyMigrations({ run: raw }, { ...plan, migrations: plan.migrations.slice(0, first.length) })
      expect(await rows()).toEqual(first)
      await db.migrate()
      const before = await rows()
      await db.migrate()
      expect(await rows()).toEqual(before)
    }))
})
