// Reads SQL token by token, as far as it takes to tell words and semicolons from what is quoted or commented out.
//
// It follows the lexers of the engines: PostgreSQL's scan.l (E'' strings and their continuation, dollar quotes, nested comments) and
// SQLite's tokenize.c (three kinds of quoted names, comments that do not nest, variables with a part in parentheses).

import type { SqlDialect } from './dialect.js'

/** A piece of SQL that matters here: a bare word in lower case, or one character of punctuation. What is quoted is `'quoted'`. */
export interface SqlToken {
  /** What it is. */
  readonly kind: 'word' | 'quoted' | 'mark'
  /** The word in lower case, or the character. */
  readonly text: string
  /** Where it begins, in UTF-16 units. */
  readonly start: number
  /** Where it ends, not included. */
  readonly end: number
}

/** How to read. */
export interface LexerOptions {
  /** Whose SQL it is. */
  readonly dialect: SqlDialect
  /** PostgreSQL with `standard_conforming_strings` off: a backslash escapes in ordinary strings too. Default false. */
  readonly backslashEscapes?: boolean
}

const wordStart = /[a-z_\u0080-\uffff]/i
const word = /[a-z_\u0080-\uffff][a-z0-9_$\u0080-\uffff]*/iy
// Two strings with a line break between them are one, and the escapes of the first hold in the second.
const continuation = /(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*(?=')/y
const dollarDelimiter = /\$(?:[a-z_\u0080-\uffff][a-z0-9_\u0080-\uffff]*)?\$/iy
const sqliteVariable = /[$@:#](?:[a-z0-9_$\u0080-\uffff]|::)+(?:\([^ \t\n\v\f\r)]*\)?)?/iy

/** The tokens of a text. Never throws: what is not closed reaches to the end, as the engines refuse such a text as a whole. */
export function* tokensOf(text: string, options: LexerOptions): Generator<SqlToken> {
  const next = options.dialect === 'postgres' ? postgresEnd : sqliteEnd
  let at = 0
  while (at < text.length) {
    const found = next(text, at, options.backslashEscapes === true)
    if (found.kind !== 'blank') {
      const bare = found.kind === 'quoted' ? 'quoted' : text.slice(at, found.end).toLowerCase()
      yield { kind: found.kind, text: bare, start: at, end: found.end }
    }
    at = found.end
  }
}

interface Found {
  readonly kind: SqlToken['kind'] | 'blank'
  readonly end: number
}

function postgresEnd(text: string, at: number, backslashEscapes: boolean): Found {
  const character = text[at] as string
  if (/\s/.test(character) && character < '\u0080') return { kind: 'blank', end: at + 1 }
  if (text.startsWith('--', at)) return { kind: 'blank', end: endOfLine(text, at, /[\n\r]/g) }
  if (text.startsWith('/*', at)) return { kind: 'blank', end: endOfNestedComment(text, at) }
  if (character === "'") return { kind: 'quoted', end: endOfString(text, at, backslashEscapes) }
  if (character === '"') return { kind: 'quoted', end: endOfQuoted(text, at, '"') }
  if (character === '$') {
    const end = endOfDollarQuote(text, at)
    return end === undefined ? { kind: 'mark', end: at + 1 } : { kind: 'quoted', end }
  }
  if (!wordStart.test(character)) return { kind: 'mark', end: at + 1 }
  const end = endOf(word, text, at)
  // E'…' is one token: the letter right before the quote makes backslashes escape.
  const escapes = end === at + 1 && character.toLowerCase() === 'e' && text[end] === "'"
  return escapes ? { kind: 'quoted', end: endOfString(text, end, true) } : { kind: 'word', end }
}

function sqliteEnd(text: string, at: number): Found {
  const character = text[at] as string
  // A byte order mark is white space to SQLite wherever a token may begin.
  if (character === '\ufeff' || (/\s/.test(character) && character < '\u0080')) return { kind: 'blank', end: at + 1 }
  if (text.startsWith('--', at)) return { kind: 'blank', end: endOfLine(text, at, /\n/g) }
  if (text.startsWith('/*', at)) {
    return { kind: 'blank', end: after(text, '*/', at + 2) }
  }
  if (character === '[') return { kind: 'quoted', end: after(text, ']', at + 1) }
  if (character === "'" || character === '"' || character === '`') {
    return { kind: 'quoted', end: endOfQuoted(text, at, character) }
  }
  if ('$@:#'.includes(character)) {
    const end = endOf(sqliteVariable, text, at)
    return end > at ? { kind: 'quoted', end } : { kind: 'mark', end: at + 1 }
  }
  if (!wordStart.test(character)) return { kind: 'mark', end: at + 1 }
  return { kind: 'word', end: endOf(word, text, at) }
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

// By search and not by one pattern: a pattern over megabytes of literal would exhaust its stack.
function endOfQuoted(text: string, at: number, quote: string): number {
  for (let close = text.indexOf(quote, at + 1); close >= 0; close = text.indexOf(quote, close + 2)) {
    if (text[close + 1] !== quote) return close + 1
  }
  return text.length
}

function endOfEscaped(text: string, at: number): number {
  const edge = /['\\]/g
  edge.lastIndex = at + 1
  for (let match = edge.exec(text); match !== null; match = edge.exec(text)) {
    if (match[0] === "'" && text[edge.lastIndex] !== "'") return edge.lastIndex
    edge.lastIndex += 1 // the character after a backslash, or the second of two quotes
  }
  return text.length
}

function endOfLine(text: string, at: number, lineBreak: RegExp): number {
  lineBreak.lastIndex = at
  return lineBreak.exec(text)?.index ?? text.length
}

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  return at < 0 ? text.length : at + mark.length
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

// The end of a sticky pattern's match; where it does not match, `at` itself.
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
