import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { withStoreWorld } from '../../../test/cli/store-world.js'
import { readOptions } from '../option-table.js'
import { runCommandLine } from '../reprise.js'
import { migrateCommand } from './migrate-command.js'

async function migrate(...words: readonly string[]) {
  const io = ioInMemory()
  await migrateCommand.run(readOptions(words, migrateCommand.options), io)
  return io
}

it('makes the file and its tables, and does nothing the second time', () =>
  withStoreWorld(async ({ folder }) => {
    const url = `sqlite:${join(folder, 'new.db')}`
    expect((await migrate('--url', url)).out).toBe('migrated from 0 to 3\n')
    expect((await migrate('--url', url)).out).toBe('up to date, at migration 3\n')
    expect((await migrate('--url', url, '--json')).out).toBe('{"from":3,"to":3}\n')
  }))

it('prints the SQL, and changes nothing', () =>
  withStoreWorld(async ({ folder }) => {
    const file = join(folder, 'new.db')
    const { out } = await migrate('--url', `sqlite:${file}`, '--print')
    expect(out).toBe(readFileSync('docs/reference/schema/sqlite.sql', 'utf8'))
    expect((await migrate('--url', `sqlite:${file}`, '--print', '--json')).out).toBe(
      `${JSON.stringify({ sql: out })}\n`,
    )
    expect(existsSync(file)).toBe(false)
  }))

it('prints the SQL for a server that is not there', async () => {
  const { out } = await migrate('--url', 'postgres://127.0.0.1:1/app', '--print', '--schema', 'own')
  expect(out).toContain('own')
  expect(out).toContain('reprise_marker')
})

it('refuses a folder that is not there, and makes none', async () => {
  const io = ioInMemory()
  await runCommandLine(['migrate', '--url', 'sqlite:absent/app.db'], io)
  expect(io.err).toMatch(/^reprise: the folder of the file is not there\n/)
  expect(io.code).toBe(2)
  expect(existsSync('absent')).toBe(false)
})
