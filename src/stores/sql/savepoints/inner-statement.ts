// The statements by which a query builder begins and ends transactions of its own. Inside an open transaction they are
// about savepoints.

import type { SqlDialect } from '../dialect.js'
import { tokensOf } from '../lexer.js'
import { transactionRefusal, transactionStatementIn } from '../statements.js'

/** A statement about an inner transaction. */
export type InnerStatement =
  /** Begins one, or sets how it works, with the bare words of its modes: `['isolation', 'level', 'serializable']`. */
  | { readonly does: 'begin'; readonly modes: readonly string[] }
  | { readonly does: 'set'; readonly modes: readonly string[] }
  | EndOrSavepoint

/** Ends an inner transaction; opens, forgets or goes back to a savepoint in it. */
export type EndOrSavepoint =
  | { readonly does: 'commit' | 'rollback' }
  | { readonly does: 'savepoint' | 'release' | 'rollback to'; readonly name: string }

/**
 * What a text says about an inner transaction; undefined: nothing. Refuses with TRANSACTION_STATEMENT what no query
 * builder says: two phases, chains, and such a statement beside others in one text.
 */
export function innerStatementIn(text: string, dialect: SqlDialect): InnerStatement | undefined {
  const found = transactionStatementIn(text, dialect)
  if (found === undefined && !settingIt.test(text)) return undefined
  const tokens = [...tokensOf(text, dialect.words)].filter(
    ({ kind, text }, at, all) => !isLastMark(kind, text, at, all),
  )
  const words = tokens.map(({ kind, text }) => (kind === 'quoted' ? '"' : text))
  if (found === undefined) {
    return words[0] === 'set' && words[1] === 'transaction' ? { does: 'set', modes: words.slice(2) } : undefined
  }
  const last = tokens.at(-1)
  const name = last === undefined ? '' : nameIn(text.slice(last.start, last.end))
  const statement = read(words, name)
  if (statement === undefined) throw transactionRefusal(found)
  return statement
}

const settingIt = /^\s*set\s+transaction/i

function isLastMark(kind: string, text: string, at: number, all: readonly unknown[]): boolean {
  return kind === 'mark' && text === ';' && at === all.length - 1
}

// A name in quotes and the same one without are one name.
function nameIn(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text.toLowerCase()
}

function read(words: readonly string[], name: string): InnerStatement | undefined {
  if (words.includes(';')) return undefined
  const [first = '', second = ''] = words
  const rest = words.slice(second === 'work' || second === 'transaction' ? 2 : 1)
  if (first === 'begin' || (first === 'start' && second === 'transaction')) return { does: 'begin', modes: rest }
  if (first === 'savepoint' && rest.length === 1) return { does: 'savepoint', name }
  if (first === 'release' && isNamed(rest)) return { does: 'release', name }
  if ((first === 'rollback' || first === 'abort') && rest.length === 0) return { does: 'rollback' }
  if (first === 'rollback' && rest[0] === 'to' && isNamed(rest.slice(1))) return { does: 'rollback to', name }
  return (first === 'commit' || first === 'end') && rest.length === 0 ? { does: 'commit' } : undefined
}

function isNamed(words: readonly string[]): boolean {
  return words.length === 1 || (words.length === 2 && words[0] === 'savepoint')
}
