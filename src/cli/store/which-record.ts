// Which record a command is about: by operation, scope and key, by the route, its caller and the key, or by the id
// under which it is stored.

import type { RecordLimits } from '../../atomicity/index.js'
import { operationId, type RecordStore } from '../../idempotency/index.js'
import { isStoredKey, type Key, mintKey, parseKey, type Scope, type StoredKey, scope } from '../../identity/index.js'
import type { Io } from '../io.js'
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
    { name: 'route', kind: 'text', value: 'NAME', text: 'in place of the two, for a route: the name in its options' },
    {
      name: 'principal',
      kind: 'texts',
      value: 'NAME',
      text: 'with it: whose request it was, as principal returned it; give it once for each name of a pair',
    },
    { name: 'method', kind: 'text', value: 'METHOD', text: 'with it: the method of the request (POST)' },
    { name: 'key', kind: 'text', value: 'KEY', text: 'the key, as the caller sent it' },
    {
      name: 'id',
      kind: 'text',
      value: 'ID',
      text: 'in place of all of them: the name under which it is stored, as inspect shows it',
    },
  ],
}

/** What the options say of records. */
export interface NamedParts {
  readonly operation: string | undefined
  readonly scope: Scope | undefined
  readonly key: Key | undefined
  /** The record itself; undefined where not all of its parts were given. */
  readonly id: StoredKey | undefined
}

/** What the options say: one record, or what many have in common. */
export function partsNamed(given: GivenOptions): NamedParts {
  const id = given.text('id')
  const { operation, parts } = given.has('route') ? routeParts(given) : operationParts(given)
  const written = given.text('key')
  if (id !== undefined) {
    if (parts !== undefined || written !== undefined || given.has('route')) {
      throw new UsageError('--id stands in place of --scope, --route and --key')
    }
    if (!isStoredKey(id)) throw new UsageError('--id is the name of a record, as inspect shows it')
    return { operation, scope: undefined, key: undefined, id }
  }
  const named = parts === undefined ? undefined : scope(...(parts as [string, ...string[]]))
  const key = written === undefined ? undefined : parseKey(written)
  const isWhole = operation !== undefined && named !== undefined && key !== undefined
  return { operation, scope: named, key, id: isWhole ? operationId(operation, named, key) : undefined }
}

/** The id of the record; undefined where none was named. Refuses what names only a part of one. */
export function recordNamed(given: GivenOptions): StoredKey | undefined {
  const { scope: named, key, id } = partsNamed(given)
  if (id === undefined && (named !== undefined || key !== undefined)) throw new UsageError(howToName)
  return id
}

/** How a record is named. */
export const howToName =
  'a record is named by --operation, --scope and --key together, by --route, --principal and --key, or by --id'

function operationParts(given: GivenOptions) {
  for (const name of ['principal', 'method']) {
    if (given.has(name)) throw new UsageError(`--${name} goes with --route`)
  }
  return { operation: given.text('operation'), parts: given.texts('scope') }
}

// As the identity of a request is made: see `arrivalIdentity` of the routes.
function routeParts(given: GivenOptions) {
  for (const name of ['operation', 'scope']) {
    if (given.has(name)) throw new UsageError(`--route stands in place of --${name}`)
  }
  const route = given.text('route') as string
  const principal = given.texts('principal')
  const parts = principal && [...principal, (given.text('method') ?? 'POST').toUpperCase(), route]
  return { operation: route, parts }
}

/** The id as the store has it, which may have a pepper. */
export function idIn({ records: { pepper } }: Pick<RecordStore, 'records'>, id: StoredKey): StoredKey {
  return pepper === undefined ? id : pepper.hide(id)
}

/** The store's clock, in ms since 1970: as it was when it was asked for a record that nobody has. */
export async function storeNowMs(store: Pick<RecordStore, 'records'>, limits: RecordLimits): Promise<number> {
  const nobody = operationId('reprise', scope('the command line asks for the time'), mintKey())
  return (await store.records.read(idIn(store, nobody), limits)).nowMs
}

/** Who decides, by the options and the environment. */
export function actorOf(given: GivenOptions, io: Pick<Io, 'environment'>): string {
  return given.text('actor') ?? (io.environment?.('USER') || 'command line')
}
