// What a transaction in memory has emitted, written into its view before it is committed: heads, messages, and the
// lanes of everybody who reads them.

import { type Emission, type Row, versionTaken } from '../../../atomicity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import type { MemoryRecords } from '../records/records.js'
import type { TableView } from '../table.js'
import type { Views } from '../tables.js'
import { messageTables } from './tables.js'

/**
 * Writes the messages of a transaction. Refuses with MESSAGE_EXISTS and VERSION_TAKEN.
 *
 * @param source Who makes them.
 */
export function writeEmissions(
  views: Views,
  emissions: readonly Emission[],
  source: string,
  records: Pick<MemoryRecords, 'nowMs' | 'nextFence'>,
): void {
  const atMs = records.nowMs()
  const heads = views.view(messageTables.head)
  const messages = views.view(messageTables.message)
  // The last message of each key.
  const last = new Map<string, { readonly head: Row; readonly emission: Emission }>()
  for (const emission of emissions) {
    // The head of a delayed message has the time at which it is due: a reader that comes later learns it from there.
    const head = advanced(heads, emission.key, atMs + emission.afterMs, records.nextFence)
    last.set(emission.key, { head, emission })
    insert(messages, { source, emission, head, atMs })
  }
  const lanes = views.view(messageTables.lane)
  const readers = views.view(messageTables.reader)
  const names = readers.find({ reads: 'outbox' }).map((id) => String(readers.row(id)?.['name']))
  for (const [key, { head, emission }] of last) {
    const dueAtMs = atMs + emission.afterMs
    for (const reader of names) tell(lanes, { reader, key }, head, dueAtMs)
  }
}

// The head with the next number; a new one begins a new epoch.
function advanced(heads: TableView, key: string, atMs: number, nextFence: () => number): Row {
  const [id] = heads.find({ key })
  const before = id === undefined ? undefined : heads.row(id)
  if (id === undefined || before === undefined) {
    const head = { key, epoch: nextFence(), number: 1, purged_version: null, at_ms: atMs }
    heads.insert(head)
    return head
  }
  heads.update(id, { number: Number(before['number']) + 1, at_ms: atMs })
  return heads.row(id) as Row
}

interface Placed {
  readonly source: string
  readonly emission: Emission
  readonly head: Row
  readonly atMs: number
}

function insert(messages: TableView, { source, emission, head, atMs }: Placed): void {
  const { id, type, subject = null, key, version = null, intent = null, traceparent = null } = emission
  const { schema = null, codec = null, data } = emission
  if (messages.find({ source, id }).length > 0) {
    throw new RepriseError('MESSAGE_EXISTS', 'A message with the same source and id is there already.')
  }
  // Of the versions that were purged only the highest is remembered: a lower one may have been taken, and is refused.
  const purged = head['purged_version']
  const wasPurged = version !== null && purged !== null && purged !== undefined && version <= Number(purged)
  if (wasPurged || (version !== null && messages.find({ subject, version }).length > 0)) {
    throw versionTaken()
  }
  const place = { epoch: Number(head['epoch']), number: Number(head['number']) }
  messages.insert({
    source,
    id,
    type,
    subject,
    key,
    ...place,
    version,
    at_ms: atMs,
    intent,
    traceparent,
    schema,
    codec,
    data,
  })
}

// A lane that is idle is due now, or after the delay; of one that is not, only what it knows changes.
function tell(
  lanes: TableView,
  lane: { readonly reader: string; readonly key: string },
  head: Row,
  dueAtMs: number,
): void {
  const known = { known_epoch: Number(head['epoch']), known_number: Number(head['number']) }
  const due = { state: 1, due_at_ms: dueAtMs }
  const [id] = lanes.find(lane)
  const before = id === undefined ? undefined : lanes.row(id)
  if (id === undefined || before === undefined) {
    const idle = { epoch: 0, number: 0, owner: null, attempt: 0, claims: 0, failures: 0, history: '' }
    lanes.insert({ ...lane, ...idle, ...known, ...due })
  } else lanes.update(id, before['state'] === 0 ? { ...known, ...due } : known)
}
