// Drizzle on the transaction's client, built by the entry point that its users take: drizzle-orm/better-sqlite3, with
// better-sqlite3 itself below.

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { findSqliteDrivers } from '../../../tools/sqlite-drivers.mjs'
import { bundleInto } from '../../bundle.js'
import { freshFile, start } from './files.js'

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

const seen = (way: number) => ({
  returned: [{ note: `b${way}` }],
  found: [{ note: `a${way}`, state: 'seen' }],
  refused: 'SQLITE_CONSTRAINT_UNIQUE',
})

it('works on the transaction, is undone with it, and has transactions of its own as savepoints', async () => {
  const drivers = findSqliteDrivers(root)
  if ('why' in drivers) {
    expect(drivers.why).toMatch(/too old/)
    return
  }
  // Inside of the folder, where its import of better-sqlite3 finds the package.
  const bundle = mkdtempSync(join(drivers.folder, 'node_modules', '.drizzle-'))
  try {
    const entryPoints = {
      sqlite: join(root, 'src/stores/sqlite/index.ts'),
      drizzle: 'drizzle-orm/better-sqlite3',
      tables: 'drizzle-orm/sqlite-core',
      conditions: 'drizzle-orm',
    }
    await bundleInto(bundle, entryPoints, { external: ['better-sqlite3'] })
    const child = start('drizzle.mjs', [bundle, drivers.folder, freshFile()], [drivers.node])
    const [report = ''] = await child.rest()
    const notes = [...'abdfgh'].flatMap((note) => [`${note}0`, `${note}1`])
    expect(JSON.parse(report)).toEqual([seen(0), 'no', seen(1), 'no', notes])
  } finally {
    rmSync(bundle, { recursive: true })
  }
})
