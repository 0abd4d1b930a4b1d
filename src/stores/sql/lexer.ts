// Reads SQL token by token, as far as it takes to tell words and semicolons from what is quoted or commented out. What
// a token is, the dialect says; the functions here are the parts that dialects share.

import type { SqlWords } from './dialect.js'

/**
 * A piece of SQL that matters here: a bare word in lower case, or one character of punctuation. What is quoted is
 * `'quoted'`.
 */
export interface SqlToken {
  readonly kind: 'word' | 'quoted' | 'mark'
  /** The word in lower case, or the character. */
  readonly text: string
  /** Where it begins, in UTF-16 units. */
  readonly start: number
  /** Where it ends, not included. */
  readonly end: number
}

/**
 * The tokens of a text. Never throws: what is not closed reaches to the end, as the engines refuse such a text as a
 * whole.
 */
export function* tokensOf(text: string, words: SqlWords, backslashEscapes = false): Generator<SqlToken> {
  let at = 0
  while (at < text.length) {
    const { kind, end } = words.tokenAt(text, at, backslashEscapes)
    if (kind !== 'blank') {
      const bare = kind === 'quoted' ? 'quoted' : text.slice(at, end).toLowerCase()
      yield { kind, text: bare, start: at, end }
    }
    at = end
  }
}

const wordStart = /[a-z_\u0080-\uffff]/i
const word = /[a-z_\u0080-\uffff][a-z0-9_$\u0080-\uffff]*/iy

/** Whether a character is white space of ASCII. */
export function isBlank(character: string): boolean {
  return /\s/.test(character) && character < '\u0080'
}

/** Whether a bare word can begin with a character. */
export function startsWord(character: string): boolean {
  return wordStart.test(character)
}

/** Where the bare word at a position ends. */
export function endOfWord(text: string, at: number): number {
  return endOf(word, text, at)
}

/**
 * Where something in quotes ends; two quotes are one inside it. By search and not by one pattern: a pattern over
 * megabytes of literal would exhaust its stack.
 */
export function endOfQuoted(text: string, at: number, quote: string): number {
  for (let close = text.indexOf(quote, at + 1); close >= 0; close = text.indexOf(quote, close + 2)) {
    if (text[close + 1] !== quote) return close + 1
  }
  return text.length
}

/** Where a string ends in which a backslash escapes. */
export function endOfEscaped(text: string, at: number): number {
  const edge = /['\\]/g
  edge.lastIndex = at + 1
  for (let match = edge.exec(text); match !== null; match = edge.exec(text)) {
    if (match[0] === "'" && text[edge.lastIndex] !== "'") return edge.lastIndex
    edge.lastIndex += 1 // the character after a backslash, or the second of two quotes
  }
  return text.length
}

/** Where the line ends, before its break. */
export function endOfLine(text: string, at: number, lineBreak: RegExp): number {
  lineBreak.lastIndex = at
  return lineBreak.exec(text)?.index ?? text.length
}

/** Where the first mark from a position on ends. */
export function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  return at < 0 ? text.length : at + mark.length
}

/** Where the match of a sticky pattern ends; where it does not match, `at` itself. */
export function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
