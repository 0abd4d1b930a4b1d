// The table of states and events, made from the machine: every record there can be falls into a row, and all of a row
// are decided alike.

import { type RecordChange, recordFormat, type StoredRecord } from '../../../src/atomicity/index.js'
import { type Decision, decide, type MachineEvent } from '../../../src/idempotency/machine.js'
import type { Facets, Features } from './table-features.js'
import { type EventTable, eventTables, leaseMs, marginMs, windowMs } from './table-rows.js'

/** The store's clock in all cells, in ms. */
export const nowMs = 1_000

const values: { readonly [Name in keyof Features]: readonly Features[Name][] } = {
  state: ['claimed', 'succeeded', 'failed', 'unknown'],
  mode: ['leased', 'atomic'],
  token: ['mine', 'other', 'none'],
  fence: ['mine', 'other'],
  claims: [1, 2],
  due: ['later', 'now', 'in the margin', 'past the margin', 'never'],
  window: ['open', 'over', 'never ends'],
  receiver: ['long enough', 'too short'],
  input: [true, false],
  because: ['maybe', 'earlier-claim', 'settled'],
  format: [2, 3],
}

// Each at its very edge: one ms more or less, and it would be another one.
const dueAtMs = {
  later: nowMs + 1,
  now: nowMs,
  'in the margin': nowMs - marginMs + 1,
  'past the margin': nowMs - marginMs,
}
const expiresAtMs = { open: nowMs + 1, over: nowMs }
const leftMs = { 'long enough': leaseMs, 'too short': leaseMs - 1 }

/** Every combination, and nothing at all. */
export function allFeatures(): readonly Features[] {
  let all: readonly Partial<Features>[] = [{}]
  for (const [name, choices] of Object.entries(values)) {
    all = all.flatMap((some) => choices.map((choice) => ({ ...some, [name]: choice })))
  }
  return [{ ...(all[0] as Features), state: 'absent' }, ...(all as readonly Features[])]
}

/** A record of these features. */
export function recordOf(features: Features): StoredRecord | undefined {
  const { state, mode, token, fence, claims, due, window, receiver, input, because } = features
  if (state === 'absent') return undefined
  const finished = state === 'succeeded' || state === 'failed'
  const firstClaimedAtMs = nowMs + leftMs[receiver] + marginMs - windowMs
  return {
    format: features.format === 3 ? recordFormat + 1 : features.format,
    version: 7,
    mode,
    operation: 'pay',
    scope: 's',
    fingerprint: 'f',
    state,
    token: token === 'none' ? undefined : token,
    fence: fence === 'mine' ? 1 : 2,
    firstClaimedAtMs,
    claimedAtMs: firstClaimedAtMs,
    dueAtMs: due === 'never' ? undefined : dueAtMs[due],
    completedAtMs: finished ? nowMs - 1 : undefined,
    expiresAtMs: finished && window !== 'never ends' ? expiresAtMs[window] : undefined,
    claims,
    looks: 0,
    codec: undefined,
    value: finished ? '1' : undefined,
    input: input ? '{}' : undefined,
    because,
  }
}

/** A cell: what is decided, in a few words. */
function wordsOf(decision: Decision, record: StoredRecord | undefined): string {
  switch (decision.act) {
    case 'insert':
      return 'insert the claim, run'
    case 'execute':
      return decision.how === 'anew' ? 'claim anew, run' : 'take over, run again'
    case 'ask':
      return 'take over, ask'
    case 'own':
      return { run: 'renew, run', ask: 'renew, ask', rerun: 'renew, run again' }[decision.how]
    case 'refuse': {
      const again = decision.retryInMs === undefined ? '' : ', with a time'
      const change = decision.change === undefined ? '' : `; becomes ${writtenAs(decision.change, record)}`
      return `refuse: ${decision.because}${again}${change}`
    }
    case 'write':
      return `becomes ${writtenAs(decision.change, record)}${decision.note === undefined ? '' : ', with a note'}`
    case 'remove':
      return 'removed: the key is free'
    default:
      return decision.act
  }
}

function writtenAs({ state, dueInMs, because }: RecordChange, record: StoredRecord | undefined): string {
  if (state === 'claimed') return 'claimed, with a new lease'
  if (state !== 'unknown') return state
  const why = record?.state === 'unknown' && record.because === because ? 'as before' : because
  if (dueInMs === undefined) return `unknown (${why}, due when the lease ends)`
  return `unknown (${why}, due ${dueInMs === null ? 'never' : dueInMs === 0 ? 'now' : 'as said'})`
}

/**
 * A table with its cells: for every row and column all decisions that occur in it, and how many records fall into the
 * row.
 */
export interface MadeEventTable {
  readonly table: EventTable
  readonly rows: readonly {
    readonly text: string
    readonly records: number
    readonly cells: readonly ReadonlySet<string>[]
  }[]
  /** Records that no row fits. */
  readonly homeless: number
  /** How many decisions were taken. */
  readonly decisions: number
}

const facets: readonly Facets[] = [true, false].flatMap((sameMode) =>
  [true, false].map((sameContent) => ({ sameMode, sameContent })),
)

/** Asks the machine about every cell of every table. */
export function madeTables(all: readonly Features[] = allFeatures()): readonly MadeEventTable[] {
  return eventTables.map((table) => {
    const rows = table.rows.map(([text, fits]) => ({
      text,
      fits,
      records: 0,
      cells: table.columns.map(() => new Set<string>()),
    }))
    let [homeless, decisions] = [0, 0]
    for (const features of all) {
      const record = recordOf(features)
      for (const facet of table.faceted ? facets : facets.slice(0, 1)) {
        const row = rows.find(({ fits }) => fits(features, facet))
        if (row === undefined) homeless += 1
        else {
          row.records += 1
          table.columns.forEach(([, eventOf], index) => {
            const event: MachineEvent = eventOf(features, facet)
            row.cells[index]?.add(wordsOf(decide(record, event, nowMs), record))
            decisions += 1
          })
        }
      }
    }
    return { table, rows, homeless, decisions }
  })
}

/** The lines of a table in the documentation. */
export function linesOf({ table, rows }: MadeEventTable): readonly string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const head = [table.head, ...table.columns.map(([name]) => name)]
  return [
    line(head),
    `|${'---|'.repeat(head.length)}`,
    ...rows.map(({ text, cells }) => line([text, ...cells.map((cell) => [...cell].join(' **or** '))])),
  ]
}
