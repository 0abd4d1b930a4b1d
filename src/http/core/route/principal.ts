// On whose behalf a request is made: names that nobody could mistake for somebody else's, or nobody at all.

import { RepriseError } from '../../../kernel/index.js'
import type { Principal } from './options.js'

/**
 * The names of a principal; undefined: nobody, also where a name is missing or empty, since all callers without a name would share their keys. Refuses what is no text with SCOPE_INVALID.
 */
export function namesOf(principal: Principal): readonly [string, ...string[]] | undefined {
  const names: unknown = typeof principal === 'string' ? [principal] : (principal ?? [])
  const list = Array.isArray(names) ? (names as readonly unknown[]) : [names]
  if (list.length === 0 || list.some((name) => name === '' || name === undefined || name === null)) return undefined
  if (!list.every((name) => typeof name === 'string')) {
    throw new RepriseError('SCOPE_INVALID', 'The principal of a request is text, or a list of texts.')
  }
  return Object.freeze([...list]) as unknown as readonly [string, ...string[]]
}
