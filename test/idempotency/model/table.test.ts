// The written table of states and events is what the machine decides, in every cell. REPRISE_WRITE_DOCS=1 writes it
// anew.

import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Decision, decide, type MachineEvent } from '../../../src/idempotency/machine.js'
import { withTable } from '../../docs-tables.js'
import { root } from '../../markdown.js'
import { allFeatures, linesOf, madeTables, nowMs, recordOf } from './table.js'
import type { Features } from './table-features.js'

const page = 'docs/reference/operation-machine.md'
const made = madeTables()

describe('the table of', () => {
  it.each(made.map((one) => [one.table.name, one] as const))('%s', (name, one) => {
    expect(one.homeless).toBe(0)
    expect(one.decisions).toBeGreaterThan(50_000)
    // Every row has records, and all of a row are decided alike.
    expect(one.rows.filter(({ records }) => records === 0)).toEqual([])
    expect(one.rows.filter(({ cells }) => cells.some((cell) => cell.size !== 1))).toEqual([])
    const text = withTable(readFileSync(`${root}/${page}`, 'utf8'), name, linesOf(one))
    if (process.env['REPRISE_WRITE_DOCS'] === '1') writeFileSync(`${root}/${page}`, text)
    expect(readFileSync(`${root}/${page}`, 'utf8'), 'stale: run this test with REPRISE_WRITE_DOCS=1').toBe(text)
  })

  it('would show a cell in which records are decided differently', () => {
    const rows = made[0]?.rows ?? []
    const merged = new Set([...(rows[0]?.cells[0] ?? []), ...(rows[1]?.cells[0] ?? [])])
    expect(merged.size).toBe(2)
  })
})

interface Cell {
  readonly features: Features
  readonly event: MachineEvent
  readonly decision: Decision
  /** Whether anything is written to the record. */
  readonly writes: boolean
}

const finished = ({ state }: Features): boolean => state === 'succeeded' || state === 'failed'
// Only leased claims have one.
const leaseLives = ({ mode, state, due }: Features): boolean =>
  mode === 'leased' && state === 'claimed' && due !== 'past the margin' && due !== 'never'
const isOwners = ({ event }: Cell): boolean => 'fence' in event
const runsAgain = ({ decision }: Cell): boolean => 'how' in decision && decision.how === 'rerun'

/** Laws over every cell, whatever the table says: what they are about, and what must be so then. */
const laws: readonly (readonly [title: string, about: (cell: Cell) => boolean, holds: (cell: Cell) => boolean])[] = [
  ['a newer format is never written', ({ features: { format } }) => format === 3, ({ writes }) => !writes],
  [
    'an outcome within its window is never written',
    ({ features }) => finished(features) && features.window !== 'over',
    ({ writes }) => !writes,
  ],
  [
    'only its owner writes a claim whose lease or margin is not over',
    ({ features, writes }) => leaseLives(features) && writes,
    (cell) => cell.features.token === 'mine' && (!isOwners(cell) || cell.features.fence === 'mine'),
  ],
  [
    'an owner of another token or fence never writes',
    (cell) => isOwners(cell) && (cell.features.token !== 'mine' || cell.features.fence !== 'mine'),
    ({ writes }) => !writes,
  ],
  [
    'nothing runs again that may have happened, unless the receiver still knows the key',
    runsAgain,
    ({ features }) => features.receiver === 'long enough',
  ],
  [
    'nothing runs a first time after others, unless the memory of them has ended',
    ({ decision }) =>
      decision.act === 'insert' || ('how' in decision && (decision.how === 'run' || decision.how === 'anew')),
    ({ features }) =>
      features.state === 'absent' || features.claims === 1 || (finished(features) && features.window === 'over'),
  ],
  [
    'whatever is unknown can be settled',
    ({ features, event }) =>
      features.state === 'unknown' && features.mode === 'leased' && features.format === 2 && event.kind === 'settle',
    ({ writes }) => writes,
  ],
  [
    'a sweep leaves alone what is left to a person',
    ({ features, event }) => features.state === 'unknown' && features.due === 'never' && event.kind === 'look',
    ({ writes }) => !writes,
  ],
  [
    'a removed record was nobody’s, or its owner’s with proof',
    ({ decision }) => decision.act === 'remove',
    ({ features, event }) =>
      event.kind === 'settle'
        ? !leaseLives(features)
        : event.kind === 'release' && (features.claims === 1 || event.proof === 'asked'),
  ],
]

describe('in every cell', () => {
  const broken = new Map<string, Cell>()
  const met = new Map<string, number>()
  for (const features of allFeatures()) {
    if (features.state === 'absent') continue
    const record = recordOf(features)
    for (const { table } of made) {
      for (const [, eventOf] of table.columns) {
        const event = eventOf(features, { sameMode: true, sameContent: true })
        const decision = decide(record, event, nowMs)
        const writes = decision.act === 'remove' || ('change' in decision && decision.change !== undefined)
        const cell = { features, event, decision, writes }
        for (const [title, about, holds] of laws) {
          if (!about(cell)) continue
          met.set(title, (met.get(title) ?? 0) + 1)
          if (!holds(cell)) broken.set(title, cell)
        }
      }
    }
  }

  it.each(laws.map(([title]) => title))('%s', (title) => {
    expect(met.get(title) ?? 0).toBeGreaterThan(500)
    expect(broken.get(title)).toBeUndefined()
  })
})
