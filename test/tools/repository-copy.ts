// A copy of the repository to break on purpose: every file that git would commit, with the installed packages linked
// in.

import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { repositoryFiles } from '../../tools/repository-files.mjs'

/** The repository that these tests belong to. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

/**
 * Copies the repository into a fresh folder outside of it; the caller removes the folder.
 * With `installed: false` nothing that is installed or built comes along, as in a fresh clone.
 */
export function copyRepository({ installed = true } = {}): string {
  const copy = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-copy-')))
  const paths = repositoryFiles(root)
  for (const path of paths) {
    mkdirSync(dirname(join(copy, path)), { recursive: true })
    copyFileSync(join(root, path), join(copy, path))
  }
  // Where this is no repository of git, as in an unpacked archive, the copy is none either.
  if (existsSync(join(root, '.git'))) execFileSync('git', ['init', '--quiet'], { cwd: copy })
  if (!installed) return copy
  for (const lock of paths.filter((path) => /(^|\/)package-lock\.json$/.test(path))) {
    const modules = join(dirname(lock), 'node_modules')
    if (existsSync(join(root, modules))) symlinkSync(join(root, modules), join(copy, modules), 'dir')
  }
  if (existsSync(join(root, 'dist'))) cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true })
  return copy
}
