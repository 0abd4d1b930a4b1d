// The SQL of SQLite. The reader of tokens follows its tokenize.c: three kinds of quoted names, comments that do not
// nest, variables with a part in parentheses.

import type { FoundToken, SqlDialect } from '../dialect.js'
import { after, endOf, endOfLine, endOfQuoted, endOfWord, isBlank, startsWord } from '../lexer.js'
import { onConflict } from './on-conflict.js'

/** How SQLite writes SQL. */
export const sqliteDialect: SqlDialect = {
  ...onConflict,
  // The clock of the machine.
  nowMs: "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
  nowIsStable: true,
  placeholder: () => '?',
  writesInWith: false,
  // The writer has the whole file, so nobody else can have locked anything.
  rowAddress: 'rowid',
  skipLocked: '',
  among: (select) => `IN (${select})`,
  rowsIn: (json, columns) => {
    const cells = Object.keys(columns).map((name, place) => `json_extract(e.value, '$[${place}]') AS ${name}`)
    return `(SELECT ${cells.join(', ')} FROM json_each(${json}) AS e)`
  },
  fence: {
    next: (fence) => `(SELECT number FROM ${fence})`,
    advance: (fence) => `UPDATE ${fence} SET number = number + 1`,
  },
  // SQLite has one code for all mistakes in a statement, so its words decide; they are never translated.
  isMissing: (_signs, message) => /no such table: |no such column: |has no column named/.test(message),
  words: {
    tokenAt,
    maybeEscapes: false,
    hint: /(?<![a-z_])(?:begin|commit|end|rollback|savepoint|release|attach|detach|pragma)(?![a-z0-9_])/i,
    refused: (words) => {
      const [first = ''] = words
      if (transactionWords.has(first)) return first
      if (first !== 'pragma') return undefined
      const harmful = words.slice(1, 3).find((name) => harmfulPragmas.has(name))
      return harmful === undefined ? undefined : `pragma ${harmful}`
    },
    bodies: ['trigger'],
    bodyBegins: ['begin'],
  },
}

// What attaches files is refused with what begins and ends transactions: a commit over two files is not atomic.
const transactionWords: ReadonlySet<string> = new Set([
  'begin',
  'commit',
  'end',
  'rollback',
  'savepoint',
  'release',
  'attach',
  'detach',
])

// These change how the store locks, journals and syncs; what is not listed does not.
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

const variable = /[$@:#](?:[a-z0-9_$\u0080-\uffff]|::)+(?:\([^ \t\n\v\f\r)]*\)?)?/iy

function tokenAt(text: string, at: number): FoundToken {
  const character = text[at] as string
  // A byte order mark is white space to SQLite wherever a token may begin.
  if (character === '\ufeff' || isBlank(character)) return { kind: 'blank', end: at + 1 }
  if (text.startsWith('--', at)) return { kind: 'blank', end: endOfLine(text, at, /\n/g) }
  if (text.startsWith('/*', at)) return { kind: 'blank', end: after(text, '*/', at + 2) }
  if (character === '[') return { kind: 'quoted', end: after(text, ']', at + 1) }
  if (character === "'" || character === '"' || character === '`') {
    return { kind: 'quoted', end: endOfQuoted(text, at, character) }
  }
  if ('$@:#'.includes(character)) {
    const end = endOf(variable, text, at)
    return end > at ? { kind: 'quoted', end } : { kind: 'mark', end: at + 1 }
  }
  if (!startsWord(character)) return { kind: 'mark', end: at + 1 }
  return { kind: 'word', end: endOfWord(text, at) }
}
