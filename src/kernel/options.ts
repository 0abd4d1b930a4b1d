// Objects of options: an option that nobody reads is refused, since a misspelt limit would be no limit; and options are
// handed on without those that were not given, since an option that is present but undefined is another type.

import { type ErrorCode, RepriseError } from './errors.js'

/**
 * Refuses options that are no object, and an option that is not among the known ones. One that is undefined counts as
 * not given. The message names the position and the known names, never what was given.
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
  const names = Object.keys(options)
  for (let position = 0; position < names.length; position += 1) {
    const name = names[position] as string
    if (known.includes(name) || (options as Record<string, unknown>)[name] === undefined) continue
    const message = `${path}: the one at position ${position} is not known; known are ${known.join(', ')}.`
    throw new RepriseError(code, message, { details: { path, position } })
  }
}

/** The number, where it is whole and from `least` to `most`. Else throws what `refuse` makes of the reason. */
export function demandWhole(value: number, least: number, most: number, refuse: (why: string) => Error): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw refuse(`It is a whole number from ${least} to ${most}.`)
}

/** An object without its undefined members: a member that may be undefined becomes an optional one. */
export type Defined<Given extends object> = {
  [Name in keyof Given as undefined extends Given[Name] ? never : Name]: Given[Name]
} & {
  [Name in keyof Given as undefined extends Given[Name] ? Name : never]?: Exclude<Given[Name], undefined>
}

/** A new object with the own members that are not undefined. */
export function defined<Given extends object>(given: Given): Defined<Given> {
  return pick(given, Object.keys(given) as (keyof Given)[]) as object as Defined<Given>
}

/** A new object with those of the named options that are given. One that is undefined counts as not given. */
export function pick<Options extends object, Name extends keyof Options>(
  options: Options,
  names: readonly Name[],
): Defined<Pick<Options, Name>> {
  const picked: Partial<Pick<Options, Name>> = {}
  for (const name of names) {
    if (options[name] !== undefined) picked[name] = options[name]
  }
  return picked as object as Defined<Pick<Options, Name>>
}
