// A disk that is full, and one that can only be read, as the doctor sees them: a small one, in a namespace of its own,
// which is gone with the process.

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { MissingServer } from '../../servers/missing.js'
import { bundle, freshFile, start } from './files.js'

it('a disk that is nearly full, one that is full, and one that can only be read', async () => {
  if (spawnSync('unshare', ['--map-root-user', '--mount', 'true']).status !== 0) throw new MissingServer('unshare')
  const folder = freshFile()
  mkdirSync(folder)
  const onDisk = 'mount -t tmpfs -o size=8m tmpfs "$0" && "$@" fill && mount -o remount,ro "$0" && "$@" look'
  const through = ['unshare', '--map-root-user', '--mount', 'sh', '-c', onDisk, folder, process.execPath]
  const lines = await start('doctor.mjs', [await bundle(), folder], through).rest()
  const [small, full, readOnly] = lines.map((line) => JSON.parse(line))
  expect([small, full]).toEqual([
    ['small', 'DISK_NEARLY_FULL'],
    ['full', 'DISK_FULL'],
  ])
  // Whether a log that cannot be written to can be opened is up to the driver.
  expect(readOnly.slice(0, 2)).toEqual(['read-only', expect.stringMatching(/^FILE_(UNOPENED|READ_ONLY)$/)])
})
