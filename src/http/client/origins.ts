// Which origins something was declared of: that they honour keys, that they are trusted, that they refuse early.

import { RepriseError } from '../../kernel/index.js'

/** Origins such as `https://pay.example`, listed or recognised by a function. A path after the origin is ignored. */
export type Origins = readonly (string | URL)[] | ((origin: string) => boolean)

/** Whether an origin is among those declared. Refuses what is not a URL with ARGUMENT_INVALID. */
export function among(origins: Origins | undefined): (origin: string) => boolean {
  if (origins === undefined) return () => false
  if (typeof origins === 'function') return origins
  const listed = new Set(origins.map(originOf))
  return (origin) => listed.has(origin)
}

function originOf(origin: string | URL, position: number): string {
  const url = URL.canParse(`${origin}`) ? new URL(origin) : undefined
  // The origin of what has none, such as file:, is the word null, and all of them would be the same.
  if (url === undefined || url.origin === 'null') {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      `The origin at position ${position} is not a URL such as https://a.example.`,
    )
  }
  return url.origin
}
