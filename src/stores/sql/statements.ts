// Which statements a text of SQL holds, and whether one of them would begin or end a transaction behind the back of the one who owns it.

import { RepriseError } from '../../kernel/index.js'
import type { SqlDialect } from './dialect.js'
import { type LexerOptions, type SqlToken, tokensOf } from './lexer.js'

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
 * The statements of a text, in order; empty ones left out. The body of a trigger or of a routine in the standard's form is split like any other text.
 */
export function statementsOf(text: string, dialect: SqlDialect): readonly SqlStatement[] {
  return scan(text, { dialect }).map(({ text, words }) => ({ text, words }))
}

/**
 * The first statement of a text that would begin, end or split a transaction, as its first words (`'commit'`, `'prepare transaction'`), or undefined.
 * For SQLite also what attaches files or changes how the store locks and syncs. Comments and quoting cannot hide one: where the meaning of a text depends on a
 * setting of PostgreSQL (backslashes in ordinary strings), it is read both ways.
 */
export function transactionStatementIn(text: string, dialect: SqlDialect): string | undefined {
  // A keyword cannot be written otherwise, so a text without any of these words needs no closer look. Only letters of ASCII around them make another word of them for sure.
  if (!(dialect === 'postgres' ? postgresHint : sqliteHint).test(text)) return undefined
  const found = forbiddenIn(scan(text, { dialect }), dialect)
  if (found !== undefined || dialect === 'sqlite' || !text.includes('\\')) return found
  return forbiddenIn(scan(text, { dialect, backslashEscapes: true }), dialect)
}

/** Refuses a text that would begin or end a transaction. */
export function refuseTransactionStatements(text: string, dialect: SqlDialect): void {
  const found = transactionStatementIn(text, dialect)
  if (found === undefined) return
  throw new RepriseError(
    'TRANSACTION_STATEMENT',
    `The statement begins with ${found.toUpperCase()}: the transaction is begun and ended around the body, and tx.savepoint scopes errors.`,
    { details: { statement: found } },
  )
}

const postgresHint = /(?<![a-z_])(?:begin|start|commit|end|rollback|abort|savepoint|release|prepare)(?![a-z0-9_])/i
const sqliteHint = /(?<![a-z_])(?:begin|commit|end|rollback|savepoint|release|attach|detach|pragma)(?![a-z0-9_])/i

const alone: Readonly<Record<SqlDialect, ReadonlySet<string>>> = {
  postgres: new Set(['begin', 'commit', 'end', 'rollback', 'abort', 'savepoint', 'release']),
  sqlite: new Set(['begin', 'commit', 'end', 'rollback', 'savepoint', 'release', 'attach', 'detach']),
}

// What a pragma may change without touching how the store locks, journals and syncs is not listed; the ones here do.
const harmfulPragmas: ReadonlySet<string> = new Set([
  'journal_mode',
  'locking_mode',
  'synchronous',
  'busy_timeout',
  'wal_checkpoint',
  'wal_autocheckpoint',
  'read_uncommitted',
  'query_only',
  'writable_schema',
  'fullfsync',
  'checkpoint_fullfsync',
  'schema_version',
  'mmap_size',
])

function forbiddenIn(statements: readonly Scanned[], dialect: SqlDialect): string | undefined {
  let bodyOpen = false
  for (const { words, opensBody } of statements) {
    const [first = '', second = ''] = words
    if (bodyOpen && first === 'end' && words.length === 1) {
      bodyOpen = false
      continue
    }
    if (alone[dialect].has(first)) return first
    if (dialect === 'postgres' && second === 'transaction' && (first === 'start' || first === 'prepare')) {
      return `${first} ${second}`
    }
    if (dialect === 'sqlite' && first === 'pragma') {
      const harmful = words.slice(1, 3).find((name) => harmfulPragmas.has(name))
      if (harmful !== undefined) return `pragma ${harmful}`
    }
    bodyOpen ||= opensBody
  }
  return undefined
}

const mostWords = 10

function scan(text: string, options: LexerOptions): readonly Scanned[] {
  const statements: Scanned[] = []
  let tokens: SqlToken[] = []
  const close = (): void => {
    const [first] = tokens
    const last = tokens.at(-1)
    if (first !== undefined && last !== undefined) {
      statements.push({
        text: text.slice(first.start, last.end),
        words: leadingWords(tokens),
        opensBody: opensBody(tokens, options.dialect),
      })
    }
    tokens = []
  }
  for (const token of tokensOf(text, options)) {
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

// CREATE FUNCTION … BEGIN ATOMIC select 1; END and CREATE TRIGGER … BEGIN select 1; END: the one END after them belongs to them. An
// empty body (BEGIN ATOMIC END) closes itself, and a parameter that is called begin stands in parentheses.
function opensBody(tokens: readonly SqlToken[], dialect: SqlDialect): boolean {
  const words = leadingWords(tokens)
  if (words[0] !== 'create') return false
  const kinds = dialect === 'postgres' ? ['function', 'procedure'] : ['trigger']
  const kind = words.slice(1).find((name) => !['or', 'replace', 'temp', 'temporary'].includes(name))
  if (kind === undefined || !kinds.includes(kind)) return false
  let depth = 0
  for (const [place, { kind, text }] of tokens.entries()) {
    if (kind === 'mark') depth += text === '(' ? 1 : text === ')' ? -1 : 0
    if (kind !== 'word' || text !== 'begin' || depth !== 0) continue
    const after = dialect === 'postgres' ? tokens[place + 2] : tokens[place + 1]
    const atomic = dialect === 'sqlite' || tokens[place + 1]?.text === 'atomic'
    if (atomic && after !== undefined && after.text !== 'end') return true
  }
  return false
}
