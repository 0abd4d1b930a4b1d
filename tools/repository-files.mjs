// The files of the repository: tracked, or new and not ignored. Without git, as in an unpacked archive: all but the
// ignored.

import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Paths relative to the root, sorted. A file that is deleted but not yet committed is not there.
 * @returns {string[]}
 */
export function repositoryFiles(/** @type {string} */ root) {
  const isFile = (/** @type {string} */ path) =>
    lstatSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
  return [...new Set(listed(root) ?? walked(root, '', ignored(root)))].filter(isFile).sort()
}

/** What git lists; undefined where there is no repository of its own or no git. */
function listed(/** @type {string} */ root) {
  if (!existsSync(join(root, '.git'))) return undefined // a repository further up knows nothing about these files
  try {
    const args = ['ls-files', '-co', '--exclude-standard', '-z']
    const output = execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return output.split('\0').filter((path) => path !== '')
  } catch {
    return undefined
  }
}

/** The lines of .gitignore, which are names (`dist/`) and endings (`*.tgz`), as a judge of names. */
function ignored(/** @type {string} */ root) {
  const path = join(root, '.gitignore')
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  const patterns = ['.git', 'node_modules', ...lines.map((line) => line.trim().replace(/\/$/, '')).filter(Boolean)]
  return (/** @type {string} */ name) =>
    patterns.some((pattern) => (pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : name === pattern))
}

/** @type {(root: string, folder: string, isIgnored: (name: string) => boolean) => string[]} */
function walked(root, folder, isIgnored) {
  const entries = readdirSync(join(root, folder), { withFileTypes: true }).filter(({ name }) => !isIgnored(name))
  return entries.flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    return entry.isDirectory() ? walked(root, path, isIgnored) : [path]
  })
}
