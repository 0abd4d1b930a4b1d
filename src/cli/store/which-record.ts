// Which record a command is about: by operation, scope and key, or by the id under which it is stored.

import { operationId } from '../../idempotency/index.js'
import { parseKey, type StoredKey, scope } from '../../identity/index.js'
import { type GivenOptions, type OptionGroup, UsageError } from '../option-table.js'

/** The options that name a record. */
export const recordOptions: OptionGroup = {
  title: 'Record',
  options: [
    { name: 'operation', kind: 'text', value: 'NAME', text: 'the operation’s name' },
    {
      name: 'scope',
      kind: 'texts',
      value: 'PART',
      text: 'one part of the scope, in its order; give it once for each part of scope(…)',
    },
    { name: 'key', kind: 'text', value: 'KEY', text: 'the key, as the caller sent it' },
    {
      name: 'id',
      kind: 'text',
      value: 'ID',
      text: 'in place of the three: the name under which it is stored, as inspect shows it',
    },
  ],
}

/** The id of the record; undefined where none was named. */
export function recordNamed(given: GivenOptions): StoredKey | undefined {
  const [operation, key, id] = [given.text('operation'), given.text('key'), given.text('id')]
  const parts = given.texts('scope')
  if (id !== undefined) {
    if (parts !== undefined || key !== undefined) throw new UsageError('--id stands in place of --scope and --key')
    if (!/^sha256:[A-Za-z0-9_-]{43}$/.test(id))
      throw new UsageError('--id is the name of a record, as inspect shows it')
    return id as StoredKey
  }
  if (parts === undefined && key === undefined) return undefined
  if (operation === undefined || parts === undefined || key === undefined) {
    throw new UsageError('a record is named by --operation, --scope and --key together, or by --id')
  }
  return operationId(operation, scope(...(parts as [string, ...string[]])), parseKey(key))
}
