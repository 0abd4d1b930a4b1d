// The effects of a subject, outside of every layer: a file each, so that several processes count the same ones.

import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const prefixOf = (/** @type {string} */ user) => createHash('sha256').update(user).digest('hex').slice(0, 32)

/** @param {string} folder */
export function openLedger(folder) {
  mkdirSync(folder, { recursive: true })
  return {
    /** Has an effect, each time, and answers its id. */
    charge(/** @type {string} */ user) {
      const id = randomUUID()
      writeFileSync(join(folder, `${prefixOf(user)}.${id}`), '')
      return id
    },
    /** How many effects a user has. */
    count(/** @type {string} */ user) {
      return readdirSync(folder).filter((name) => name.startsWith(prefixOf(user))).length
    },
  }
}
