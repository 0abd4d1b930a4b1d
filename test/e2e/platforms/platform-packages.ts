// Platforms that are too large for `npm test`, in tools/platform-packages; `npm run test:matrix -- platforms` installs
// them and sets REPRISE_LONG.

import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../markdown.js'

/** Whether what needs them is to be run. */
export const isLong: boolean = process.env['REPRISE_LONG'] !== undefined

/** Where they are installed. */
export const platformModules: string = join(root, 'tools', 'platform-packages', 'node_modules')

/** Packs the package, and installs it in an empty folder. */
export function installTarball(folder: string): void {
  const quiet = ['--ignore-scripts', '--loglevel=error']
  execFileSync('npm', ['pack', ...quiet, '--pack-destination', folder], { cwd: root, encoding: 'utf8' })
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const script = join(root, 'test', 'package', 'fixtures', 'install.mjs')
  execFileSync(process.execPath, [script, root, 'install', join(folder, tarball)], { cwd: folder, encoding: 'utf8' })
}
