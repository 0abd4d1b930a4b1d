// The drivers of SQLite that need a newer Node than the oldest one we support: node:sqlite, and better-sqlite3, which
// has a folder with a lock file of its own. Where this Node is too old, they run on another one.
//
// Only commands call `ensureSqliteDrivers`, never a test: several workers at once would install over each other.

import { existsSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { ensureInstalled } from './install.mjs'
import { findNode, otherNode } from './node-versions.mjs'

/** The Node that runs the drivers where this one cannot. */
const newerNode = 24

/**
 * The version of Node's binary interface that better-sqlite3 13 is built for; an older Node crashes when it loads it.
 */
const addonInterface = 10

/** Whether this Node has node:sqlite without a flag, and can load better-sqlite3. */
const runHere = () => isBuiltin('node:sqlite') && Number(process.versions['napi']) >= addonInterface

const folderOf = (/** @type {string} */ root) => join(root, 'tools', 'better-sqlite3')

/**
 * Installs what the drivers need, as far as this platform has it. Tests say why a driver is not there.
 * @param {string} root
 */
export async function ensureSqliteDrivers(root) {
  const folder = folderOf(root)
  if (!existsSync(folder)) return
  if (!runHere() && 'why' in (await otherNode(root, newerNode))) return
  await ensureInstalled(root, folder)
}

/**
 * The Node that runs the drivers and the folder that better-sqlite3 is installed for, or why no such Node can be had.
 * Throws when they could be installed and are not.
 * @param {string} root
 * @returns {{ node: string, folder: string } | { why: string }}
 */
export function findSqliteDrivers(root) {
  const folder = folderOf(root)
  const found = runHere() ? { binary: process.execPath } : findNode(root, newerNode)
  if ('why' in found && !found.installable) {
    return { why: `Node ${process.versions.node} is too old for this driver, and ${found.why}` }
  }
  if ('why' in found || !existsSync(join(folder, 'node_modules', 'better-sqlite3'))) {
    throw new Error('The drivers of SQLite are not installed. `npm test` and `npm run test:matrix` do that first.')
  }
  return { node: found.binary, folder }
}
