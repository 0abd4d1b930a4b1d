// A pepper: secrets that a store does not have, under which names and fingerprints are stored. Without them, whoever
// reads the table can hash a key that he guesses, and see whether it was used.

import { hmacSha256, RepriseError } from '../kernel/index.js'

/** A secret of 16 to 1,024 bytes: random bytes, or visible ASCII text such as `openssl rand -base64 32` prints. */
export type PepperSecret = string | Uint8Array

/** Secrets, prepared. */
export interface Pepper {
  /** Tells one pepper from another, without telling the secret: 8 hexadecimal digits. */
  readonly id: string
  /** The ids of the peppers that this one followed, the oldest first, and its own. */
  readonly ids: readonly string[]
  /**
   * What is stored in place of a name, a scope or a fingerprint. What an earlier pepper made is brought forward; what
   * this one made stays as it is, as does any other text. Refuses with PEPPER_MISMATCH what another pepper made.
   */
  hide<Text extends string>(text: Text): Text
}

const leastBytes = 16
const mostBytes = 1_024
const mostSecrets = 16
const invisible = /[^\x21-\x7e]/

// What is kept of a text, and by which pepper it was made; nobody made the plain ones.
const shape = /^((?:json1-|bytes-)?)(?:sha256|hmac256-([0-9a-f]{8}))((?:;[^:]*)?):/

/**
 * Prepares a pepper: a secret, or all that there were, the oldest first. A later secret hides what the earlier ones
 * made, so that records can be brought from one pepper to the next without knowing their keys. Refuses with
 * ARGUMENT_INVALID.
 *
 * @example
 * ```ts
 * import { mintKey, pepperOf, scope, storedKey } from 'reprise/identity'
 *
 * const pepper = pepperOf('correct-horse-battery-staple')
 * console.log(storedKey(scope('tenant-1'), mintKey(), pepper).startsWith(`hmac256-${pepper.id}:`))
 * ```
 * ```text
 * true
 * ```
 */
export function pepperOf(secrets: PepperSecret | readonly PepperSecret[]): Pepper {
  const list: readonly PepperSecret[] = Array.isArray(secrets) ? secrets : [secrets as PepperSecret]
  if (list.length === 0 || list.length > mostSecrets) throw invalid(`It has 1 to ${mostSecrets} secrets.`)
  const macs = list.map((secret) => hmacSha256(bytesOf(secret)))
  const ids: string[] = []
  for (const mac of macs) ids.push(mac(`reprise-pepper-1 ${ids.join(' ')}`, 'hex').slice(0, 8))
  const hide = <Text extends string>(text: Text): Text => {
    const [, kind, id, rule] = shape.exec(text) ?? []
    if (kind === undefined) return text
    const since = id === undefined ? 0 : ids.indexOf(id) + 1
    if (id !== undefined && since === 0) throw otherPepper(id, ids)
    let hidden: string = text
    for (let place = since; place < macs.length; place += 1) {
      hidden = `${kind}hmac256-${ids[place]}${rule}:${macs[place]?.(hidden)}`
    }
    return hidden as Text
  }
  return Object.freeze({ id: ids.at(-1) as string, ids: Object.freeze(ids), hide })
}

/** The error of what is stored under a pepper that is not the one given. */
export function otherPepper(stored: string | undefined, given: readonly string[]): RepriseError {
  const under = stored === undefined ? 'without a pepper' : `under the pepper ${stored}`
  const here = given.length === 0 ? 'none is given here' : `${given.at(-1)} is given here`
  return new RepriseError('PEPPER_MISMATCH', `What is there is stored ${under}, and ${here}.`, {
    details: { stored: stored ?? 'none', given: given.at(-1) ?? 'none' },
  })
}

function bytesOf(secret: PepperSecret): Uint8Array {
  if (typeof secret === 'string') {
    if (invisible.test(secret)) throw invalid('A text has visible ASCII characters only, and no spaces.')
  } else if (!(secret instanceof Uint8Array)) throw invalid('It is text, bytes, or a list of these.')
  const bytes = typeof secret === 'string' ? new TextEncoder().encode(secret) : Uint8Array.from(secret)
  if (bytes.length >= leastBytes && bytes.length <= mostBytes) return bytes
  throw invalid(`A secret has ${leastBytes} to ${mostBytes} bytes.`)
}

function invalid(why: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option pepper is not valid. ${why}`, {
    details: { option: 'pepper' },
  })
}
