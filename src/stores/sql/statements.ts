// Which statements a text of SQL holds, and whether one of them would begin or end a transaction behind the back of the
// one who owns it.

import { RepriseError } from '../../kernel/index.js'
import type { SqlDialect, SqlWords } from './dialect.js'
import { type SqlToken, tokensOf } from './lexer.js'

/** One statement of a text. */
export interface SqlStatement {
  /** Its text, without the semicolon. */
  readonly text: string
  /** Its bare words up to the tenth, in lower case: enough to tell what it does. */
  readonly words: readonly string[]
}

interface Scanned extends SqlStatement {
  /** Whether it opens a body of statements that ends with END: a routine in the standard's form, or a trigger. */
  readonly opensBody: boolean
}

/**
 * The statements of a text, in order; empty ones left out. The body of a trigger or of a routine in the standard's form
 * is split like any other text.
 */
export function statementsOf(text: string, { words }: SqlDialect): readonly SqlStatement[] {
  return scan(text, words, false).map(({ text, words }) => ({ text, words }))
}

/** Refuses a text that would begin or end a transaction. */
export function refuseTransactionStatements(text: string, { words }: SqlDialect): void {
  // A keyword cannot be written otherwise, so a text without any of these words needs no closer look. Only letters of
  // ASCII around them make another word of them for sure.
  if (!words.hint.test(text)) return
  const found = readClosely(text, words)
  if (found !== undefined) throw transactionRefusal(found)
}

/** The refusal of a statement that would begin or end a transaction, by its first words. */
export function transactionRefusal(statement: string): RepriseError {
  return new RepriseError(
    'TRANSACTION_STATEMENT',
    `The statement begins with ${statement.toUpperCase()}: the transaction is begun and ended around the body, and tx.savepoint scopes errors.`,
    { details: { statement } },
  )
}

/**
 * The first statement of a text that the dialect refuses because it would begin, end or split a transaction, as its
 * first words (`'commit'`, `'prepare transaction'`), or undefined. Comments and quoting cannot hide one.
 */
export function transactionStatementIn(text: string, { words }: SqlDialect): string | undefined {
  return words.hint.test(text) ? readClosely(text, words) : undefined
}

// Where the meaning of a text depends on a setting of the server, it is read both ways.
function readClosely(text: string, words: SqlWords): string | undefined {
  const found = refusedIn(scan(text, words, false), words)
  if (found !== undefined || !words.maybeEscapes || !text.includes('\\')) return found
  return refusedIn(scan(text, words, true), words)
}

function refusedIn(statements: readonly Scanned[], { refused }: SqlWords): string | undefined {
  let bodyOpen = false
  for (const { words, opensBody } of statements) {
    if (bodyOpen && words[0] === 'end' && words.length === 1) {
      bodyOpen = false
      continue
    }
    const found = refused(words)
    if (found !== undefined) return found
    bodyOpen ||= opensBody
  }
  return undefined
}

const looking: ReadonlySet<string> = new Set([
  'select',
  'values',
  'table',
  'show',
  'explain',
  'with',
  'set',
  'reset',
  'discard',
  'listen',
  'unlisten',
  'deallocate',
  'declare',
  'fetch',
  'move',
  'close',
  'begin',
  'start',
  'commit',
  'end',
  'rollback',
  'abort',
  'savepoint',
  'release',
])
const writing = /^(?:insert|update|delete|merge|into)$/
const harmlessAfter: ReadonlySet<string> = new Set(['for', 'key', 'as', '.'])

/**
 * The first word of the first statement in a text that writes, in lower case; undefined: none does. A SELECT counts as
 * one that only looks, whatever the functions do that it calls, unless it makes a table (`select into`); of WITH and
 * EXPLAIN ANALYZE the statement inside counts.
 */
export function writeIn(text: string, { words: grammar }: SqlDialect): string | undefined {
  for (const { text: statement, words } of scan(text, grammar, false)) {
    const [first = ''] = words
    const copiesOut = first === 'copy' && /\bto\s+stdout\b/i.test(statement)
    if (!looking.has(first) && !copiesOut && /^[a-z]+$/.test(first)) return first
    const holdsAny = first === 'with' || (first === 'explain' && /\banaly[sz]e\b/i.test(statement))
    if (!holdsAny && first !== 'select') continue
    let before = ''
    for (const { kind, text: word } of tokensOf(statement, grammar)) {
      // Alone in a SELECT, the other words are names of columns. After these words: the lock of SELECT … FOR UPDATE or
      // FOR NO KEY UPDATE, and the name of a column.
      if (kind === 'word' && (holdsAny ? writing.test(word) : word === 'into') && !harmlessAfter.has(before)) {
        return word === 'into' ? 'select into' : word
      }
      before = word
    }
  }
  return undefined
}

/**
 * The values of a statement, which the caller gave. What is no list is refused: a text would be taken for its letters,
 * and bytes without a list around them end the process in one driver.
 */
export function listOfValues(values: unknown): readonly unknown[] {
  if (Array.isArray(values)) return values
  throw new RepriseError('ARGUMENT_INVALID', 'The values of a statement are a list, one for each of its placeholders.')
}

const mostWords = 10

function scan(text: string, grammar: SqlWords, backslashEscapes: boolean): readonly Scanned[] {
  const statements: Scanned[] = []
  let tokens: SqlToken[] = []
  const close = (): void => {
    const [first] = tokens
    const last = tokens.at(-1)
    if (first !== undefined && last !== undefined) {
      const words = leadingWords(tokens)
      statements.push({
        text: text.slice(first.start, last.end),
        words,
        opensBody: words[0] === 'create' && opensBody(tokens, words, grammar),
      })
    }
    tokens = []
  }
  for (const token of tokensOf(text, grammar, backslashEscapes)) {
    if (token.kind === 'mark' && token.text === ';') close()
    else tokens.push(token)
  }
  close()
  return statements
}

// A quoted name counts as a word in its place, so that `pragma "main".journal_mode` cannot pass for something else.
function leadingWords(tokens: readonly SqlToken[]): readonly string[] {
  const words: string[] = []
  for (const { kind, text } of tokens) {
    if (kind === 'mark') continue
    words.push(kind === 'word' ? text : '"')
    if (words.length === mostWords) break
  }
  return words
}

// CREATE FUNCTION … BEGIN ATOMIC select 1; END and CREATE TRIGGER … BEGIN select 1; END: the one END after them belongs
// to them. An empty body (BEGIN ATOMIC END) closes itself, and a parameter that is called begin stands in parentheses.
function opensBody(tokens: readonly SqlToken[], words: readonly string[], { bodies, bodyBegins }: SqlWords): boolean {
  const made = words.slice(1).find((name) => !['or', 'replace', 'temp', 'temporary'].includes(name))
  if (made === undefined || !bodies.includes(made)) return false
  let depth = 0
  for (const [place, { kind, text }] of tokens.entries()) {
    if (kind === 'mark') depth += text === '(' ? 1 : text === ')' ? -1 : 0
    if (depth !== 0 || !bodyBegins.every((name, offset) => isWord(tokens[place + offset], name))) continue
    const next = tokens[place + bodyBegins.length]
    if (next !== undefined && next.text !== 'end') return true
  }
  return false
}

function isWord(token: SqlToken | undefined, name: string): boolean {
  return token?.kind === 'word' && token.text === name
}
