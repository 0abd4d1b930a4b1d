// Objects of options: an option that nobody reads is refused, since a misspelt limit would be no limit; and options are
// handed on without those that were not given, since an option that is present but undefined is another type.

import { type ErrorCode, RepriseError } from './errors.js'

/**
 * Refuses options that are no object, and an option that is not among the known ones. One that is undefined counts as
 * not given. The message names the option, the known one that is close to it, and all known ones; never its value.
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
    const option = shownName(name)
    const near = nearestName(name, known)
    const meant = near === undefined ? '' : ` Did you mean ${near}?`
    const message = `${path}: ${option} is not known.${meant} Known are ${known.join(', ')}.`
    throw new RepriseError(code, message, { details: { path, position, option } })
  }
}

// A name is written by a programmer and is no secret; but it may come from parsed data, and ends up in logs.
function shownName(name: string): string {
  const shown = name.slice(0, 40).replace(/[^\w$.-]/g, '?')
  return name.length > 40 ? `${shown}…` : shown || 'an empty name'
}

/**
 * The one known name that a misspelt one is close to: at most one letter in three is wrong (added, dropped, changed, or
 * swapped with the next), and no other known name is as close. Undefined: none is.
 */
export function nearestName(written: string, known: readonly string[]): string | undefined {
  if (written.length > 64) return undefined
  const word = written.toLowerCase()
  const [first, second] = known
    .map((name) => ({ name, steps: distance(word, name.toLowerCase()) }))
    .filter(({ name, steps }) => steps <= Math.max(word.length, name.length) / 3)
    .sort((a, b) => a.steps - b.steps)
  return first !== undefined && first.steps !== second?.steps ? first.name : undefined
}

// Optimal string alignment: Levenshtein's distance (1965) with swaps of neighbours as one step (Damerau, 1964).
function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? (before[j - 2] as number) + 1 : changed
      next.push(Math.min(changed, swapped, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] as number
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
