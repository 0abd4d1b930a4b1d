// What a body may not send: statements that begin or end transactions, and pragmas that change how the store works.

import { RepriseError } from '../../../kernel/index.js'
import {
  type InnerStatement,
  innerStatementIn,
  refuseTransactionStatements,
  sqliteDialect,
  statementsOf,
  transactionRefusal,
} from '../../sql/index.js'

// These only look, also with an argument.
const looking: ReadonlySet<string> = new Set([
  'collation_list',
  'compile_options',
  'database_list',
  'foreign_key_check',
  'foreign_key_list',
  'function_list',
  'index_info',
  'index_list',
  'index_xinfo',
  'integrity_check',
  'quick_check',
  'table_info',
  'table_list',
  'table_xinfo',
  // Ends with the transaction, and cannot do harm beyond it.
  'defer_foreign_keys',
])

// These look as long as they have no argument.
const lookingAlone: ReadonlySet<string> = new Set([
  'application_id',
  'cache_size',
  'data_version',
  'encoding',
  'foreign_keys',
  'freelist_count',
  'page_count',
  'page_size',
  'user_version',
])

let mayDefer = false

/** Whether any body of this process may have put off the check of foreign keys to the end of its transaction. */
export function mayDeferForeignKeys(): boolean {
  return mayDefer
}

// Texts that were looked at and may be prepared; programs have few of them, and looking costs as much as running a
// small one.
const mayBePrepared = new Set<string>()
const mostRemembered = 500
const longestRemembered = 2_000

/** Refuses what {@link refuseInside} and {@link refuseSeveral} refuse. */
export function refuseUnpreparable(text: string): void {
  if (mayBePrepared.has(text)) return
  refuseInside(text)
  refuseSeveral(text)
  if (text.length > longestRemembered) return
  if (mayBePrepared.size >= mostRemembered) mayBePrepared.clear()
  mayBePrepared.add(text)
}

/**
 * What a text of a query builder says about a transaction of its own; undefined: nothing. Refuses as
 * {@link innerStatementIn} does.
 */
export function innerStatementOf(text: string): InnerStatement | undefined {
  // What is no text is refused elsewhere.
  return typeof text !== 'string' || mayBePrepared.has(text) ? undefined : innerStatementIn(text, sqliteDialect)
}

const ways: ReadonlySet<string> = new Set(['deferred', 'immediate', 'exclusive', 'transaction'])

/** Refuses words after BEGIN that SQLite does not know; how the open transaction was begun is decided. */
export function refuseOtherModes(modes: readonly string[]): void {
  if (!modes.every((word) => ways.has(word))) throw transactionRefusal(`begin ${modes.join(' ')}`)
}

/** Refuses with TRANSACTION_STATEMENT what a body must not send. */
export function refuseInside(text: string): void {
  if (typeof text !== 'string') throw new RepriseError('ARGUMENT_INVALID', 'A statement is text.')
  refuseTransactionStatements(text, sqliteDialect)
  if (!/pragma/i.test(text)) return
  for (const statement of statementsOf(text, sqliteDialect)) {
    if (statement.words[0] === 'pragma' && !isLook(statement)) {
      throw new RepriseError(
        'TRANSACTION_STATEMENT',
        'Inside a transaction a pragma may look, not change: set it where the connection is opened.',
      )
    }
  }
}

/**
 * Refuses more than one statement with ARGUMENT_INVALID: drivers differ in whether they run, refuse or silently skip
 * the rest.
 */
function refuseSeveral(text: string): void {
  const statements = statementsOf(text, sqliteDialect)
  // The body of a trigger holds semicolons of its own.
  if (statements.length === 1 || statements[0]?.words.slice(0, 3).includes('trigger')) return
  throw new RepriseError('ARGUMENT_INVALID', 'Exactly one statement can be prepared.', {
    details: { statements: statements.length },
  })
}

// A quoted name is not in any list, so it is refused, as is a schema in front of a name that is not.
function isLook({ text, words }: { readonly text: string; readonly words: readonly string[] }): boolean {
  const [, first = '', second = ''] = words
  const name = first === 'main' || first === 'temp' ? second : first
  if (name === 'defer_foreign_keys') mayDefer = true
  return looking.has(name) || (lookingAlone.has(name) && !/[=(]/.test(text))
}
