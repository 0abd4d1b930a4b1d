// The SQL of PostgreSQL. The reader of tokens follows its scan.l: E'' strings and their continuation, dollar quotes,
// nested comments.

import type { FoundToken, SqlDialect } from '../dialect.js'
import { after, endOf, endOfEscaped, endOfLine, endOfQuoted, endOfWord, isBlank, startsWord } from '../lexer.js'
import { onConflict } from './on-conflict.js'

/** How PostgreSQL writes SQL. */
export const postgresDialect: SqlDialect = {
  ...onConflict,
  nowMs: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  nowIsStable: false,
  placeholder: (position, type) => `$${position}${type === undefined ? '' : casts[type]}`,
  writesInWith: true,
  skipLocked: ' FOR UPDATE SKIP LOCKED',
  rowAddress: 'ctid',
  // As an array it is computed once: joined, a selection that locks, and its limit, might be computed several times.
  among: (select) => `= ANY (ARRAY (${select}))`,
  // As text, since drivers can be told to read JSON in other ways.
  jsonArray: (cells) => `json_build_array(${cells})::text`,
  rowsIn: (json, columns) => {
    const cells = Object.entries(columns).map(([name, type], place) => `(e.cells->>${place})${casts[type]} AS ${name}`)
    return `(SELECT ${cells.join(', ')} FROM jsonb_array_elements(${json}::jsonb) AS e (cells))`
  },
  fence: { next: (fence) => `nextval('${fence}')` },
  isMissing: (signs) => signs.includes('42P01') || signs.includes('42703'),
  words: {
    tokenAt,
    maybeEscapes: true,
    hint: /(?<![a-z_])(?:begin|start|commit|end|rollback|abort|savepoint|release|prepare)(?![a-z0-9_])/i,
    refused: ([first = '', second = '']) => {
      if (transactionWords.has(first)) return first
      return second === 'transaction' && (first === 'start' || first === 'prepare') ? `${first} ${second}` : undefined
    },
    bodies: ['function', 'procedure'],
    bodyBegins: ['begin', 'atomic'],
  },
}

const casts = { text: '::text', number: '::bigint' }

const transactionWords: ReadonlySet<string> = new Set([
  'begin',
  'commit',
  'end',
  'rollback',
  'abort',
  'savepoint',
  'release',
])

// Two strings with a line break between them are one, and the escapes of the first hold in the second.
const continuation = /(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*(?=')/y
const dollarDelimiter = /\$(?:[a-z_\u0080-\uffff][a-z0-9_\u0080-\uffff]*)?\$/iy

function tokenAt(text: string, at: number, backslashEscapes: boolean): FoundToken {
  const character = text[at] as string
  if (isBlank(character)) return { kind: 'blank', end: at + 1 }
  if (text.startsWith('--', at)) return { kind: 'blank', end: endOfLine(text, at, /[\n\r]/g) }
  if (text.startsWith('/*', at)) return { kind: 'blank', end: endOfNestedComment(text, at) }
  if (character === "'") return { kind: 'quoted', end: endOfString(text, at, backslashEscapes) }
  if (character === '"') return { kind: 'quoted', end: endOfQuoted(text, at, '"') }
  if (character === '$') {
    const end = endOfDollarQuote(text, at)
    return end === undefined ? { kind: 'mark', end: at + 1 } : { kind: 'quoted', end }
  }
  if (!startsWord(character)) return { kind: 'mark', end: at + 1 }
  const end = endOfWord(text, at)
  // E'…' is one token: the letter right before the quote makes backslashes escape.
  const escapes = end === at + 1 && character.toLowerCase() === 'e' && text[end] === "'"
  return escapes ? { kind: 'quoted', end: endOfString(text, end, true) } : { kind: 'word', end }
}

function endOfString(text: string, at: number, escapes: boolean): number {
  const endOfPart = escapes ? endOfEscaped : endOfQuoted
  let end = endOfPart(text, at, "'")
  for (;;) {
    const next = endOf(continuation, text, end)
    if (next === end) return end
    end = endOfPart(text, next, "'")
  }
}

function endOfDollarQuote(text: string, at: number): number | undefined {
  const open = endOf(dollarDelimiter, text, at)
  if (open === at) return undefined
  return after(text, text.slice(at, open), open)
}

function endOfNestedComment(text: string, at: number): number {
  const edge = /\/\*|\*\//g
  edge.lastIndex = at
  let depth = 0
  for (let match = edge.exec(text); match !== null; match = edge.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1
    if (depth === 0) return edge.lastIndex
  }
  return text.length
}
