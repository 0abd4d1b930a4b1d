// The world outside a store: a folder in which each effect is a file, so that several processes can share it and
// outlive none of it.

import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../../src/kernel/index.js'

/** A sink for effects. */
export interface Sink {
  /** Has an effect, each time it is called. The result is its id. */
  charge(user: string, key: string): string
  /** Has an effect unless the key had one, and gives its id in either case. */
  chargeOnce(user: string, key: string): string
  /** The id of the effect that a key had; undefined: it had none. */
  find(user: string, key: string): string | undefined
  /** How many effects a user has. */
  count(user: string): number
  /** Lets the work of a user go on that waits for it. */
  letGoOn(user: string): void
  /** Whether it may go on. */
  mayGoOn(user: string): boolean
}

const short = (text: string): string => sha256(text).slice('sha256:'.length, 'sha256:'.length + 32)

/** Opens a sink. */
export function openSink(folder: string): Sink {
  mkdirSync(folder, { recursive: true })
  const named = (prefix: string): string[] => readdirSync(folder).filter((name) => name.startsWith(prefix))
  const find = (user: string, key: string): string | undefined => {
    const [name] = named(`${short(user)}.${short(key)}`)
    return name === undefined ? undefined : readFileSync(join(folder, name), 'utf8')
  }
  return {
    charge(user, key) {
      const id = randomUUID()
      writeFileSync(join(folder, `${short(user)}.${short(key)}.${id}`), id, { flag: 'wx' })
      return id
    },
    chargeOnce(user, key) {
      const id = randomUUID()
      try {
        writeFileSync(join(folder, `${short(user)}.${short(key)}`), id, { flag: 'wx' })
        return id
      } catch {
        return find(user, key) ?? id
      }
    },
    find,
    count: (user) => named(`${short(user)}.`).length,
    letGoOn: (user) => writeFileSync(join(folder, `go.${short(user)}`), ''),
    mayGoOn: (user) => named(`go.${short(user)}`).length > 0,
  }
}
