// Lock files: no download addresses, and in step with the package.json beside them.

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const dependencyFields = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']

const sorted = (/** @type {object | undefined} */ map) => JSON.stringify(Object.entries(map ?? {}).sort())

/** @param {string} root @param {string} path of a package-lock.json, relative to the root @returns {string[]} */
export function lockFileProblems(root, path) {
  const lock = JSON.parse(readFileSync(join(root, path), 'utf8'))
  const manifest = JSON.parse(readFileSync(join(root, dirname(path), 'package.json'), 'utf8'))
  const problems = []
  for (const field of dependencyFields) {
    if (sorted(manifest[field]) !== sorted(lock.packages[''][field])) {
      problems.push(`${path}: ${field} differ from package.json; run npm install in ${dirname(path)}`)
    }
  }
  for (const [place, entry] of Object.entries(lock.packages)) {
    if (place === '') continue
    if (entry.resolved !== undefined) problems.push(`${path}: ${place} carries a download address`)
    if (entry.integrity === undefined) problems.push(`${path}: ${place} has no integrity`)
    const pinned = manifest.overrides?.[place.replace(/^.*node_modules\//, '')]
    // An object would be what is pinned below that package.
    if (typeof pinned === 'string' && entry.version !== pinned)
      problems.push(`${path}: ${place} is not at its override ${pinned}`)
  }
  return problems
}
