import { expect, it } from 'vitest'
import { withStoreWorld } from '../../../test/cli/store-world.js'
import { newestMigration } from '../../../test/stores/newest-migration.js'
import { commandHelp } from '../option-table.js'
import { doctorCommand } from './doctor-command.js'

const newest = newestMigration.sqlite

const budget = 'budget of the transactions of a process, by default: 1000 tokens, 3 back with each commit\n'

it('says that nothing was found, and which budget transactions share', () =>
  withStoreWorld(async ({ run }) => {
    expect(await run(['doctor'])).toMatchObject({ out: `sqlite: nothing was found\n${budget}`, err: '', code: 0 })
    const json = await run(['doctor', '--json'])
    expect(JSON.parse(json.out)).toEqual({
      engine: 'sqlite',
      findings: [],
      budget: { kind: 'token', maxTokens: 1000, tokenRatio: 3 },
    })
    expect(json.code).toBe(0)
  }))

it('ends with 1 where something is broken, each finding with its fix', () =>
  withStoreWorld(async ({ run }) => {
    const { out, code } = await run(['doctor', '--prefix', 'other_'])
    expect(out).toBe(
      `broken MIGRATIONS_MISSING\n  Reprise’s tables are not there, or older than this version. They are at migration 0; this version knows ${newest}.\n` +
        '  fix: Call migrate(), run what migrationSql() prints, or run reprise migrate.\n' +
        budget,
    )
    expect(code).toBe(1)
    const json = await run(['doctor', '--prefix', 'other_', '--json'])
    expect(JSON.parse(json.out)).toMatchObject({ findings: [{ severity: 'broken', code: 'MIGRATIONS_MISSING' }] })
    expect(json.code).toBe(1)
  }))

it('explains itself', () => {
  expect(commandHelp(doctorCommand)).toContain('Exit codes: 0 nothing is broken')
})
