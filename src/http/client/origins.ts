// Which origins something was declared of: that they honour keys, that they are trusted, that they refuse early.

import { RepriseError } from '../../kernel/index.js'

/** Origins such as `https://pay.example`, listed or recognised by a function. A path after the origin is ignored. */
export type Origins = readonly (string | URL)[] | ((origin: string) => boolean)

/** Whether an origin is among those declared under a name. Refuses what is not a URL with ARGUMENT_INVALID. */
export function among(origins: Origins | undefined, name: string): (origin: string) => boolean {
  if (origins === undefined) return () => false
  if (typeof origins === 'function') return origins
  const listed = new Set(origins.map((origin, position) => originOf(origin, position, name)))
  return (origin) => listed.has(origin)
}

function originOf(origin: string | URL, position: number, name: string): string {
  // Also what callers without types put there, which may have no text at all.
  const text = typeof origin === 'string' ? origin : typeof origin?.href === 'string' ? origin.href : ''
  const url = URL.canParse(text) ? new URL(text) : undefined
  // The origin of what has none, such as file:, is the word null, and all of them would be the same.
  if (url === undefined || url.origin === 'null') {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      `${name}: the origin at position ${position} is not a URL such as https://a.example.`,
      { details: { path: name, position } },
    )
  }
  return url.origin
}
