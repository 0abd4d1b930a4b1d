// Every HTTP case on every adapter and store: cells are played some at a time, the cases of a cell one after the other.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, inject, it } from 'vitest'
import {
  type CaseOutcome,
  type HttpCase,
  type HttpCaseRunner,
  httpCaseClient,
  httpCaseRunner,
  httpCases,
} from '../../../src/testing/index.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { type CellOutcome, tableOf } from '../../stores/conformance/cells.js'
import { adapterNames, dropInNames, type MountName } from '../subject/subject.js'
import { type StoreName, sayWhatIsLeft, storeInTurn, storeNames } from './stage.js'

/** Where a cell is played. */
export interface Cell {
  readonly adapter: MountName
  readonly database: string
  /** A folder of its own, for the sink. */
  readonly sink: string
}

/** A subject that is served, in one process or more. */
export interface Played {
  readonly urls: readonly string[]
  close(): Promise<void>
}

const atOnce = 2

interface Column<Name extends MountName> {
  readonly adapter: Name
  readonly store: StoreName
  readonly name: string
}

function columnsOf<Name extends MountName>(names: readonly Name[]): readonly Column<Name>[] {
  return names.flatMap((adapter) => storeNames.map((store) => ({ adapter, store, name: `${adapter} ${store}` })))
}

/** Every adapter on every store. */
const everyColumn = columnsOf(adapterNames)

/** Every form for handlers that exist, on every store. */
export const dropInColumns: readonly Column<MountName>[] = columnsOf(dropInNames)

type Columns = typeof everyColumn

/** Each adapter once, the stores in turn. */
export const halfOfColumns: Columns = everyColumn.filter(({ adapter, store }) => store === storeInTurn(adapter))

/** The other half: what is played in one process and in two is, together, every adapter on every store. */
export const otherHalfOfColumns: Columns = everyColumn.filter((column) => !halfOfColumns.includes(column))

/** Plays the cells of some columns, and prints their table. `serve` starts the subject of one. */
export function playMatrix(
  what: string,
  serve: (cell: Cell) => Promise<Played>,
  columns: readonly Column<MountName>[],
): void {
  const outcomes = new Map<string, CaseOutcome | `failed: ${string}`>()
  const again: string[] = []
  const folder = mkdtempSync(join(tmpdir(), 'reprise-http-matrix-'))
  afterAll(() => {
    const of = (id: string, column: string): CellOutcome | undefined => {
      const outcome = outcomes.get(`${id} ${column}`)
      return outcome?.startsWith('failed: ') ? 'FAILED' : (outcome as CaseOutcome | undefined)
    }
    const names = columns.map(({ name }) => name)
    console.log(`${what}\n${tableOf(httpCases, names, ({ id }, column) => of(id, column))}`)
    const left = columns === dropInColumns ? [] : everyColumn.filter((column) => !columns.includes(column))
    sayWhatIsLeft(left.map(({ name }) => name))
    for (const text of again) console.log(`tried again: ${text}`)
    rmSync(folder, { recursive: true, force: true })
  })

  async function play({ adapter, store, name }: (typeof columns)[number]): Promise<void> {
    const fresh = store === 'SQLite' ? undefined : await createDatabase(inject('postgresUrl'))
    const database = fresh?.url ?? `sqlite:${join(folder, `${adapter}.db`)}`
    const played = await serve({ adapter, database, sink: join(folder, name.replace(' ', '-')) })
    try {
      const client = httpCaseClient({ urls: played.urls, limitMs: 120_000 })
      const runner = httpCaseRunner(client)
      for (const one of httpCases) outcomes.set(`${one.id} ${name}`, await outcomeOf(one, again, runner))
    } finally {
      await played.close()
      await fresh?.drop()
    }
  }

  // What is not played at the moment holds no database and no process.
  let [inPlay, wake] = [0, (): void => undefined]
  it.concurrent.each(columns)('$name', { timeout: 1_800_000 }, async (column) => {
    while (inPlay >= atOnce) {
      await new Promise<void>((go) => {
        const others = wake
        wake = () => {
          others()
          go()
        }
      })
    }
    inPlay += 1
    try {
      await play(column)
    } finally {
      inPlay -= 1
      wake()
      wake = () => undefined
    }
    const failed = httpCases.map(({ id }) => `${id} ${outcomes.get(`${id} ${column.name}`)}`)
    expect(failed.filter((text) => / (failed|undefined)/.test(text))).toEqual([])
  })
}

// Leases of a second are lost, and waits of two seconds are over, where the machine is so busy that a turn takes as
// long: such cases have another try, which the table tells.
const isTimed = ({ routes }: HttpCase): boolean => routes.some((route) => /\/(leased\/slow|waiting)$/.test(route))
const mostTries = 3

async function outcomeOf(
  subject: HttpCase,
  again: string[],
  runner: HttpCaseRunner,
): Promise<CaseOutcome | `failed: ${string}`> {
  let end = await runner.run(subject)
  for (let tries = 1; end.outcome === 'failed' && isTimed(subject) && tries < mostTries; tries += 1) {
    again.push(`${subject.id}: ${end.why}`)
    end = await runner.run(subject)
  }
  if (end.outcome === 'passed') return 'passed'
  return end.outcome === 'not offered' ? `refused: ${end.why}` : `failed: ${end.why}`
}
