// What an installation is remembered by: what is made for one Node is not another's, and a program is everybody's.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const tool = new URL('../../tools/install.mjs', import.meta.url).href
const { ensureInstalled } = (await import(tool)) as {
  ensureInstalled(root: string, directory: string, options: { readonly isProgram: boolean }): Promise<void>
}

it.each([
  [false, true],
  [true, false],
])('of a program (%s): whether it is installed anew by another Node (%s)', async (isProgram, again) => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-install-'))
  const stamp = join(folder, 'node_modules', '.reprise-lock')
  try {
    const description = { name: 'nothing', version: '1.0.0' }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(description))
    const packages = { '': description }
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...description, lockfileVersion: 3, packages }))
    await ensureInstalled(folder, folder, { isProgram })
    const left = readFileSync(stamp, 'utf8')
    // As a Node of another version has left it.
    const other = left.replace(/ node\d+/, ' node18')
    writeFileSync(stamp, other)
    await ensureInstalled(folder, folder, { isProgram })
    expect([other !== left, readFileSync(stamp, 'utf8')]).toEqual([again, left])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
