import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { withStoreWorld } from '../../../test/cli/store-world.js'
import { newestMigration } from '../../../test/stores/newest-migration.js'
import { runCommandLine } from '../reprise.js'
import { storeOptions } from './open-store.js'

const newest = newestMigration.sqlite

async function run(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const io = ioInMemory()
  io.environment = (name) => environment[name]
  await runCommandLine(words, io)
  return io
}

describe('an address', () => {
  it.each([
    [[], '--url is missing, and so is DATABASE_URL'],
    [['--url', 'mysql://app:s3cret@db.example/app'], '--url is postgres://… or sqlite:FILE'],
    [['--url', 'sqlite:'], '--url is postgres://… or sqlite:FILE'],
    [['--url', 'sqlite:absent/app.db'], 'there is no such file; reprise migrate makes it'],
    [['--url', 'sqlite:package.json', '--schema', 'own'], '--schema is for PostgreSQL; SQLite has none'],
    [['--url', 'postgres://app:s3cret@db example/app'], '--url cannot be read as an address'],
    [['--url', 'postgres://app:s3#cret@db.example/app'], '--url cannot be read as an address'],
  ])('%j is refused', async (words, message) => {
    for (const command of ['inspect', 'doctor', 'purge']) {
      const { out, err, code } = await run([command, ...words])
      expect(err).toBe(`reprise: ${message}\nSee reprise ${command} --help.\n`)
      expect({ out, code }).toEqual({ out: '', code: 2 })
    }
  })

  it('in the environment is as good, and one that is given goes first', () =>
    withStoreWorld(async ({ url }) => {
      expect(await run(['inspect'], { DATABASE_URL: url })).toMatchObject({ out: 'no records\n', code: 0 })
      const both = await run(['inspect', '--url', 'sqlite:absent.db'], { DATABASE_URL: url })
      expect(both.code).toBe(2)
    }))

  it('of a server that is not there fails, and its password is not shown', async () => {
    for (const command of ['inspect', 'doctor', 'migrate']) {
      // Port 1 of this machine: nobody listens there.
      const { out, err, code } = await run([command, '--url', 'postgres://app:s3cret@127.0.0.1:1/app'])
      expect(err).toMatch(/^reprise: .*ECONNREFUSED.*\n$/)
      expect(out + err).not.toContain('s3cret')
      expect(code).toBe(1)
    }
  })

  it('that is given as an argument is not repeated with its password', async () => {
    const { err, code } = await run(['inspect', 'postgres://app:s3cret@db.example/app'])
    expect(err).toContain('Unexpected argument: postgres://…@db.example/app')
    expect(err).not.toContain('s3cret')
    expect(code).toBe(2)
  })
})

it('a database without tables is told so, at once', () =>
  withStoreWorld(async ({ run: command }) => {
    for (const words of [['inspect'], ['purge'], ['inspect', '--operation', 'a', '--scope', 'b', '--key', 'c']]) {
      const { err, code } = await command([...words, '--prefix', 'other_'])
      expect(err).toMatch(/^reprise: The tables of Reprise are not there.* \[MIGRATION_MISSING\]\n$/)
      expect(code).toBe(1)
    }
  }))

it('a name that is none is refused', () =>
  withStoreWorld(async ({ run: command }) => {
    const { err, code } = await command(['inspect', '--prefix', 'a;b'])
    expect(err).toMatch(/\[ARGUMENT_INVALID\]\nSee reprise inspect --help\.\n$/)
    expect(code).toBe(2)
  }))

it('is closed after the command: its file can be removed and made anew', () =>
  withStoreWorld(async ({ folder }) => {
    const url = `sqlite:${join(folder, 'second.db')}`
    expect(await run(['migrate', '--url', url])).toMatchObject({ out: `migrated from 0 to ${newest}\n`, code: 0 })
    for (const ending of ['', '-wal', '-shm']) rmSync(`${folder}/second.db${ending}`, { force: true })
    expect(await run(['migrate', '--url', url])).toMatchObject({ out: `migrated from 0 to ${newest}\n`, code: 0 })
  }))

it('explains its options', () => {
  expect(storeOptions.options.map(({ name }) => name)).toEqual(['url', 'prefix', 'schema'])
})
