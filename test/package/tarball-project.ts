// A project of a user: the packed tarball is really installed in it, and what a registry would give is linked from the
// repository.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../markdown.js'

/** A project in a folder of its own. */
export interface TarballProject {
  readonly folder: string
  /** Runs a program of the project, as `npx` does, to its end, and answers what it printed. Throws where it fails. */
  npx(words: readonly string[], env?: Readonly<Record<string, string>>): string
  remove(): void
}

/** Packs the package, and installs it and these packages. */
export function makeTarballProject(manifest: object, packages: readonly string[]): TarballProject {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-project-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    const quiet = ['--ignore-scripts', '--loglevel=error']
    execFileSync('npm', ['pack', ...quiet, '--pack-destination', folder], { cwd: root, encoding: 'utf8' })
    const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, ...manifest }))
    const script = join(root, 'test', 'package', 'fixtures', 'install.mjs')
    const words = [script, root, 'install', join(folder, tarball), 'typescript', '@types/node', ...packages]
    execFileSync(process.execPath, words, { cwd: folder, encoding: 'utf8' })
  } catch (error) {
    remove()
    throw error
  }
  return {
    folder,
    npx([program = '', ...rest], env = {}) {
      const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, ...env } } as const
      const { stdout, stderr, status } = spawnSync(join(folder, 'node_modules', '.bin', program), rest, options)
      if (status !== 0) throw new Error(`${program} ended with ${status}.\n${stdout}${stderr}`)
      return stdout
    },
    remove,
  }
}
