// Names in SQL: quoted, so that no name can be read as anything else.

import type { TableName } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'

/** The longest name PostgreSQL keeps, in bytes (NAMEDATALEN - 1); a longer one is cut silently there, and refused here. */
const maxNameBytes = 63

/** A name in double quotes, for either engine. Refuses an empty one, one with a NUL, and one over 63 bytes of UTF-8. */
export function quoteName(name: string): string {
  if (typeof name !== 'string' || name === '' || name.includes('\0')) {
    throw new RepriseError('ARGUMENT_INVALID', 'A name in SQL must be text of at least one character, without NUL.')
  }
  const bytes = new TextEncoder().encode(name).length
  if (bytes > maxNameBytes) {
    throw new RepriseError('ARGUMENT_INVALID', `A name in SQL has at most ${maxNameBytes} bytes.`, {
      details: { bytes },
    })
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** A table's name, with its schema before a dot where there is one: `'shop.orders'` gives `"shop"."orders"`; `{ table: 'shop.orders' }` gives `"shop.orders"`. */
export function quoteTable(table: TableName): string {
  if (typeof table === 'object' && table !== null) {
    const { schema } = table
    return schema === undefined ? quoteName(table.table) : `${quoteName(schema)}.${quoteName(table.table)}`
  }
  if (typeof table !== 'string') throw new RepriseError('ARGUMENT_INVALID', 'The name of a table must be text.')
  const parts = table.split('.')
  if (parts.length > 2)
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'The name of a table has at most one dot, after its schema; one with a dot of its own is given as { table }.',
    )
  return parts.map(quoteName).join('.')
}

/**
 * A prefix of table names: small letters, digits and `_`, a letter or `_` first, at most 40 characters, so that every name made with it stays under the limit
 * of all engines. An empty one is allowed.
 */
export function checkPrefix(prefix: string): string {
  if (typeof prefix === 'string' && /^(?:[a-z_][a-z0-9_]{0,39})?$/.test(prefix)) return prefix
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'The prefix of table names has up to 40 small letters, digits and _, the first no digit.',
  )
}

/** A schema's name: small letters, digits and `_`, a letter or `_` first, at most 63 characters. */
export function checkSchema(schema: string): string {
  if (typeof schema === 'string' && /^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return schema
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'The name of a schema has 1 to 63 small letters, digits and _, the first no digit.',
  )
}
