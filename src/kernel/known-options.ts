// Options by their names: one that nobody reads is refused, since a misspelt limit would be no limit.

import { type ErrorCode, RepriseError } from './errors.js'

/**
 * Refuses options that are no object, and an option that is not among the known ones. One that is undefined counts as not given. The message names the
 * position and the known names, never what was given.
 *
 * @param path What the options belong to, such as `options` or `hedge`.
 * @param code Default `ARGUMENT_INVALID`.
 */
export function demandKnown(
  options: object,
  known: readonly string[],
  path: string,
  code: ErrorCode = 'ARGUMENT_INVALID',
): void {
  if (Object(options) !== options) throw new RepriseError(code, `${path}: must be an object.`, { details: { path } })
  const position = Object.entries(options).findIndex(([name, option]) => option !== undefined && !known.includes(name))
  if (position < 0) return
  const message = `${path}: the one at position ${position} is not known; known are ${known.join(', ')}.`
  throw new RepriseError(code, message, { details: { path, position } })
}
