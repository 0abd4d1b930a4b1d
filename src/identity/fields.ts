// Choosing or leaving out fields of canonical JSON text, by JSON Pointer (RFC 6901), without parsing it into objects:
// duplicate members, `__proto__` and the digits of numbers survive.

import { isWellFormed, RepriseError } from '../kernel/index.js'

/** Which fields of the content count. At most one of the two. */
export interface FieldRule {
  /**
   * Only these fields, as JSON Pointers such as `'/order/id'`. A field that is absent differs from one that is null. A
   * content in which none of them is found is refused with FINGERPRINT_FIELDS_INVALID: with a misspelt name, all
   * content would be equal.
   */
  readonly only?: readonly string[]
  /** Everything but these fields, as JSON Pointers such as `'/sentAt'`. */
  readonly omit?: readonly string[]
}

const maxPointers = 32
const maxPointerLength = 255

/** A pointer and the member names (or array positions) it walks through. */
interface Path {
  readonly pointer: string
  readonly tokens: readonly string[]
}

/**
 * Checks the pointers of a rule and brings them into one order, without repeats. Refuses with
 * FINGERPRINT_FIELDS_INVALID.
 */
export function checkPointers(pointers: readonly string[]): string[] {
  if (!Array.isArray(pointers) || pointers.length === 0 || pointers.length > maxPointers) {
    throw new RepriseError('FINGERPRINT_FIELDS_INVALID', `A rule names 1 to ${maxPointers} fields.`)
  }
  Array.from(pointers).forEach((pointer, position) => {
    const sound = typeof pointer === 'string' && pointer.length <= maxPointerLength && isWellFormed(pointer)
    if (!sound || !/^(?:\/(?:[^~/]|~[01])*)+$/.test(pointer)) {
      const details = { position }
      throw new RepriseError(
        'FINGERPRINT_FIELDS_INVALID',
        `Field ${position} is not a JSON Pointer such as /order/id.`,
        {
          details,
        },
      )
    }
  })
  return [...new Set(pointers)].sort((left, right) => (left < right ? -1 : 1))
}

/** Canonical text without the named fields. `pointers` as {@link checkPointers} returns them. */
export function omitFields(canonical: string, pointers: readonly string[]): string {
  return prune(canonical, 0, pointers.map(path), 0).text
}

/**
 * The named fields of canonical text, as canonical text again: for each pointer all values found there,
 * in their order, or none. `pointers` as {@link checkPointers} returns them.
 */
export function onlyFields(canonical: string, pointers: readonly string[]): string {
  const found = new Map<string, string[]>(pointers.map((pointer) => [pointer, []]))
  collect(canonical, 0, pointers.map(path), 0, found)
  if ([...found.values()].every((values) => values.length === 0)) {
    throw new RepriseError('FINGERPRINT_FIELDS_INVALID', 'None of the chosen fields is in the content.')
  }
  return `[${[...found].map(([pointer, values]) => `[${JSON.stringify(pointer)},[${values.join(',')}]]`).join(',')}]`
}

function path(pointer: string): Path {
  const tokens = pointer.slice(1).split('/')
  return { pointer, tokens: tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~')) }
}

interface Pruned {
  readonly text: string
  readonly end: number
}

function prune(source: string, start: number, paths: readonly Path[], depth: number): Pruned {
  if (paths.length === 0 || !isContainer(source, start)) {
    const end = skipValue(source, start)
    return { text: source.slice(start, end), end }
  }
  const kept: string[] = []
  const end = eachChild(source, start, (token, labelStart, valueStart) => {
    const here = paths.filter(({ tokens }) => tokens[depth] === token)
    if (here.some(({ tokens }) => tokens.length === depth + 1)) return skipValue(source, valueStart)
    const child = prune(source, valueStart, here, depth + 1)
    kept.push(source.slice(labelStart, valueStart) + child.text)
    return child.end
  })
  return { text: `${source[start]}${kept.join(',')}${source[end - 1]}`, end }
}

function collect(
  source: string,
  start: number,
  paths: readonly Path[],
  depth: number,
  found: Map<string, string[]>,
): number {
  if (paths.length === 0 || !isContainer(source, start)) return skipValue(source, start)
  return eachChild(source, start, (token, _labelStart, valueStart) => {
    const here = paths.filter(({ tokens }) => tokens[depth] === token)
    const end = collect(source, valueStart, here, depth + 1, found)
    for (const { pointer, tokens } of here) {
      if (tokens.length === depth + 1) found.get(pointer)?.push(source.slice(valueStart, end))
    }
    return end
  })
}

// The walkers below rely on canonical text: well-formed, no whitespace, `\"` the only way to write a quote in a string.

function eachChild(
  source: string,
  start: number,
  visit: (token: string, labelStart: number, valueStart: number) => number,
): number {
  const isObject = source[start] === '{'
  let position = start + 1
  let index = 0
  while (source[position] !== '}' && source[position] !== ']') {
    if (source[position] === ',') position++
    const labelStart = position
    let token = String(index)
    if (isObject) {
      const labelEnd = skipString(source, position)
      token = JSON.parse(source.slice(position, labelEnd)) as string
      position = labelEnd + 1
    }
    position = visit(token, labelStart, position)
    index++
  }
  return position + 1
}

function isContainer(source: string, start: number): boolean {
  return source[start] === '{' || source[start] === '['
}

function skipValue(source: string, start: number): number {
  let position = start
  let depth = 0
  do {
    const character = source[position]
    if (character === '"') position = skipString(source, position)
    else if (character === '{' || character === '[') {
      depth++
      position++
    } else if (character === '}' || character === ']') {
      depth--
      position++
    } else if (character === ',' || character === ':') position++
    else position = skipScalar(source, position)
  } while (depth > 0)
  return position
}

function skipString(source: string, start: number): number {
  let position = start + 1
  while (source[position] !== '"') position += source[position] === '\\' ? 2 : 1
  return position + 1
}

function skipScalar(source: string, start: number): number {
  let position = start
  while (position < source.length && !',]}'.includes(source[position] as string)) position++
  return position
}
