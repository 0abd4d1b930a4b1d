// Parameters of a structured field (RFC 8941, 3.1.2; dates and display strings of RFC 9651), read only to be skipped.

const name = /[a-z*][a-z0-9_.*-]*/y
const integerOrDecimal = /-?\d{1,15}(?!\d|\.)|-?\d{1,12}\.\d{1,3}(?!\d|\.)/y
const string = /"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/y
const token = /[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*/y
const bytes = /:[A-Za-z0-9+/]*={0,2}:/y
const boolean = /\?[01]/y
const date = /@-?\d{1,15}(?!\d|\.)/y
const displayString = /%"(?:[\x20-\x21\x23-\x24\x26-\x7e]|%[0-9a-f]{2})*"/y
const bareItems = [integerOrDecimal, string, token, bytes, boolean, date, displayString]

/**
 * The position after the parameters that start at `start`: `start` itself when there are none,
 * undefined when they are malformed.
 */
export function skipParameters(value: string, start: number): number | undefined {
  let position = start
  while (value[position] === ';') {
    position++
    while (value[position] === ' ') position++
    const afterName = match(name, value, position)
    if (afterName === undefined) return undefined
    position = afterName
    if (value[position] !== '=') continue
    const afterItem = matchAny(bareItems, value, position + 1)
    if (afterItem === undefined) return undefined
    position = afterItem
  }
  return position
}

function matchAny(patterns: readonly RegExp[], value: string, position: number): number | undefined {
  for (const pattern of patterns) {
    const end = match(pattern, value, position)
    if (end !== undefined) return end
  }
  return undefined
}

function match(pattern: RegExp, value: string, position: number): number | undefined {
  pattern.lastIndex = position
  if (!pattern.test(value)) return undefined
  const end = pattern.lastIndex
  return pattern === displayString && !isUtf8(value.slice(position + 2, end - 1)) ? undefined : end
}

// The escapes of a display string are bytes of UTF-8 (RFC 9651, 4.2.10).
function isUtf8(escaped: string): boolean {
  try {
    decodeURIComponent(escaped)
    return true
  } catch {
    return false
  }
}
