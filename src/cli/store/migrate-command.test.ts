import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { chargeOf, withStoreWorld } from '../../../test/cli/store-world.js'
import { newestMigration } from '../../../test/stores/newest-migration.js'
import { readOptions } from '../option-table.js'
import { runCommandLine } from '../reprise.js'
import { migrateCommand } from './migrate-command.js'

const newest = newestMigration.sqlite

async function migrate(...words: readonly string[]) {
  return migrateUnder(undefined, ...words)
}

async function migrateUnder(pepper: string | undefined, ...words: readonly string[]) {
  const io = ioInMemory()
  io.environment = (name) => (name === 'REPRISE_PEPPER' ? pepper : undefined)
  await migrateCommand.run(readOptions(words, migrateCommand.options), io)
  return io
}

it('makes the file and its tables, and does nothing the second time', () =>
  withStoreWorld(async ({ folder }) => {
    const url = `sqlite:${join(folder, 'new.db')}`
    expect((await migrate('--url', url)).out).toBe(`migrated from 0 to ${newest}\n`)
    expect((await migrate('--url', url)).out).toBe(`up to date, at migration ${newest}\n`)
    expect((await migrate('--url', url, '--json')).out).toBe(`{"from":${newest},"to":${newest}}\n`)
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

it('takes the pepper from the environment, and renames what is there only where it is told to', () =>
  withStoreWorld(async ({ url, makeFinished, makeUnknown, db, run }) => {
    const [first, both] = ['the-first-secret', 'the-first-secret the-second-secret']
    const under = (pepper: string, ...words: string[]) => {
      const io = ioInMemory()
      io.environment = (name) => (name === 'REPRISE_PEPPER' ? pepper : undefined)
      return run(words, io)
    }
    await makeFinished('order-1')
    await makeUnknown('order-2')
    expect(await under(first, 'migrate')).toMatchObject({ code: 2, err: expect.stringContaining('PEPPER_MISMATCH') })
    expect(await under(first, 'migrate', '--rename')).toMatchObject({
      code: 1,
      err: expect.stringContaining('PEPPER_RENAME_REFUSED'),
    })
    await run(['settle', ...chargeOf('order-2'), '--as', 'failed', '--code', 'declined', '--reason', 'asked'])
    await db.close()
    expect((await migrateUnder(first, '--url', url, '--rename')).out).toBe(
      `up to date, at migration ${newest}\nunder a new pepper, with 2 records renamed\n`,
    )
    const shown = await under(first, 'inspect', ...chargeOf('order-2'))
    expect(shown.out).toMatch(/^id +hmac256-[0-9a-f]{8}:/)
    expect(shown.out).toContain('asked')
    const id = /hmac256\S+/.exec(shown.out)?.[0] ?? ''
    expect((await migrateUnder(both, '--url', url, '--rename', '--json')).out).toBe(
      `{"from":${newest},"to":${newest},"renamed":2}\n`,
    )
    expect((await under(both, 'inspect', '--scope', 'tenant-7', '--operation', 'charge')).out).toContain('charge')
    // By the name that it had, too.
    expect((await under(both, 'inspect', '--id', id)).out).toContain('asked')
    expect(await under('another-secret-of-us', 'inspect')).toMatchObject({ code: 1 })
    expect(await run(['inspect'])).toMatchObject({ code: 1, err: expect.stringContaining('pepper') })
    expect(await under('too-short', 'inspect')).toMatchObject({
      code: 2,
      err: expect.not.stringContaining('too-short'),
    })
  }))
