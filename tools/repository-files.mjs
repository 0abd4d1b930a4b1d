// The files of the repository: tracked, or new and not ignored.

import { execFileSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'

/** Paths relative to the root, sorted. A file that is deleted but not yet committed is not there. */
export function repositoryFiles(/** @type {string} */ root) {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' })
  const isFile = (/** @type {string} */ path) =>
    lstatSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true
  return [...new Set(listed.split('\0'))].filter((path) => path !== '' && isFile(path)).sort()
}
