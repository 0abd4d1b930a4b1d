// Names of tables and columns, the same rules for every store.

import { RepriseError } from '../../kernel/index.js'
import type { TableName } from './rows.js'

/**
 * The longest name PostgreSQL keeps, in bytes (NAMEDATALEN - 1); a longer one is cut silently there, and refused here.
 */
const maxNameBytes = 63

/**
 * The name of a table or column. Refuses with ARGUMENT_INVALID an empty one, one with a NUL, and one over 63 bytes of
 * UTF-8.
 */
export function checkName(name: string): string {
  if (typeof name !== 'string' || name === '' || name.includes('\0')) {
    throw new RepriseError('ARGUMENT_INVALID', 'A name in SQL must be text of at least one character, without NUL.')
  }
  // No character of JavaScript takes more than three bytes.
  const bytes = name.length * 3 <= maxNameBytes ? name.length : new TextEncoder().encode(name).length
  if (bytes <= maxNameBytes) return name
  throw new RepriseError('ARGUMENT_INVALID', `A name in SQL has at most ${maxNameBytes} bytes.`, { details: { bytes } })
}

/**
 * The parts of a table's name: its schema, where there is one, and its own name. `'shop.orders'` has two, `{ table:
 * 'shop.orders' }` one. Refuses with ARGUMENT_INVALID what is no name, and more than one dot.
 */
export function tableParts(table: TableName): readonly string[] {
  if (typeof table === 'object' && table !== null) {
    const { schema, table: own } = table
    return schema === undefined ? [checkName(own)] : [checkName(schema), checkName(own)]
  }
  if (typeof table !== 'string') throw new RepriseError('ARGUMENT_INVALID', 'The name of a table must be text.')
  const parts = table.split('.')
  if (parts.length <= 2) return parts.map(checkName)
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'The name of a table has at most one dot, after its schema; one with a dot of its own is given as { table }.',
  )
}
