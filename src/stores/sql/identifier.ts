// Names in SQL: quoted, so that no name can be read as anything else.

import { checkName, type TableName, tableParts } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import type { SqlDialect } from './dialect.js'

/**
 * A name in double quotes, as the standard has it. Refuses an empty one, one with a NUL, and one over 63 bytes of
 * UTF-8.
 */
export function quoteName(name: string): string {
  return `"${checkName(name).replaceAll('"', '""')}"`
}

/**
 * A table's name, with its schema before a dot where there is one: `'shop.orders'` gives `"shop"."orders"`;
 * `{ table: 'shop.orders' }` gives `"shop.orders"`.
 */
export function quoteTable(table: TableName, dialect: Pick<SqlDialect, 'quoteName'>): string {
  return tableParts(table).map(dialect.quoteName).join('.')
}

/**
 * A prefix of table names: small letters, digits and `_`, a letter or `_` first, at most 40 characters, so that every
 * name made with it stays under the limit of all engines. An empty one is allowed.
 */
export function checkPrefix(prefix: string): string {
  if (typeof prefix === 'string' && /^(?:[a-z_][a-z0-9_]{0,39})?$/.test(prefix)) return prefix
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'The option prefix has up to 40 small letters, digits and _, the first no digit; capitals would need quotes in every statement about the tables.',
    { details: { option: 'prefix' } },
  )
}

/** A schema's name: small letters, digits and `_`, a letter or `_` first, at most 63 characters. */
export function checkSchema(schema: string): string {
  if (typeof schema === 'string' && /^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return schema
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'The option schema has 1 to 63 small letters, digits and _, the first no digit; capitals would need quotes in every statement about the tables.',
    { details: { option: 'schema' } },
  )
}
