// Which record is meant: operation, scope and key, since stored names are digests of the three.

import type { RecordStore, Records } from '../../atomicity/index.js'
import { isStoredKey, type Key, type Scope, type StoredKey } from '../../identity/index.js'
import { type Clock, type Duration, type Random, RepriseError } from '../../kernel/index.js'
import { operationId } from '../call-identity.js'
import type { AnyOperation } from '../definition.js'
import { timeOfRecords } from '../domain.js'
import type { TimeAndChance } from '../leased/store-calls.js'
import { type KnownOperation, knownOperation } from './known-operations.js'

/** Which record is meant: by what its callers know, or by the name under which it is stored. */
export type Which<Named extends AnyOperation | string = AnyOperation | string> = WhichByName<Named> | WhichStored

/** The same, where the store is known. */
export type WhichHere<Named extends AnyOperation | string = AnyOperation | string> =
  | Pick<WhichStored, 'id'>
  | NameOfRecord<Named>

/** A record by the name under which it is stored, as events and listings show it. */
export interface WhichStored {
  readonly id: StoredKey
  readonly store: Pick<RecordStore, 'records'>
}

/** Operation, scope and key. */
export interface NameOfRecord<Named extends AnyOperation | string = AnyOperation | string> {
  /** The operation, or its name; a name needs a store. */
  readonly operation: Named
  /** Who may share the key. */
  readonly scope: Scope
  readonly key: Key
}

/** A record by operation, scope and key. */
export interface WhichByName<Named extends AnyOperation | string = AnyOperation | string> extends NameOfRecord<Named> {
  /** The store. Default: the operation's. */
  readonly store?: Pick<RecordStore, 'records'>
}

/** How long a call may take, and by which clock. */
export interface UpkeepCall {
  /** How long it may take. Default `'5s'`. */
  readonly deadline?: Duration
  /** Time. Default the domain's. */
  readonly clock?: Clock
  /** Chance. Default the domain's. */
  readonly random?: Random
}

/** A record that can be asked for. */
export interface Located {
  /** The record's name. */
  readonly id: StoredKey
  /** Where it is. */
  readonly records: Records
  /** What is known of the operation here; undefined where only its name was given. */
  readonly known: KnownOperation | undefined
}

/** Finds the record. Refuses with ARGUMENT_INVALID or the codes of scopes and keys. */
export function locate(which: Which): Located {
  if (typeof which !== 'object' || which === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'A record is named by operation, scope and key, or by its id.')
  }
  if ('id' in which) {
    const { records } = Object(which.store) as Partial<WhichStored['store']>
    if (records === undefined)
      throw new RepriseError('ARGUMENT_INVALID', 'A record that is given by its id needs a store.')
    return { id: checkedId(which.id, records), records, known: undefined }
  }
  const { operation, scope, key, store } = which
  const known = knownOperation(operation)
  const name = known?.name ?? operation
  if (typeof name !== 'string' || name === '') {
    throw new RepriseError('ARGUMENT_INVALID', 'The operation is neither one that is defined here nor a name.')
  }
  const records = store?.records ?? known?.records
  if (records === undefined) {
    throw new RepriseError('ARGUMENT_INVALID', 'An operation that is given by its name needs a store.')
  }
  return { id: operationId(name, scope, key, records.pepper), records, known }
}

// A name of before the pepper finds its record too.
function checkedId(id: StoredKey, { pepper }: Records): StoredKey {
  if (isStoredKey(id)) return pepper === undefined ? id : pepper.hide(id)
  throw new RepriseError('ARGUMENT_INVALID', 'The id is not the name of a record.')
}

/** Time and chance of a call: as given, or those of the domain. */
export function timeAndChance(
  records: Records,
  given: { readonly clock?: Clock; readonly random?: Random },
): TimeAndChance {
  const { clock, random } = timeOfRecords(records)
  return { clock: given.clock ?? clock, random: given.random ?? random }
}
