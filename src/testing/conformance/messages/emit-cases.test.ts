// The cases about what is emitted catch stores that do less than they must.

import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../../test/stores/conformance/memory-world.js'
import type { MessageDraft } from '../../../atomicity/index.js'
import { type ConformanceHandle, runConformanceCase } from '../conformance-case.js'
import { emitCases } from './emit-cases.js'
import { emitRaceCases } from './emit-race-cases.js'
import type { OutboxRow, OutboxWorld } from './outbox-world.js'

interface Tampered {
  /** What becomes of a draft. */
  readonly draft?: (draft: MessageDraft) => MessageDraft
  /** What becomes of the rows of a table. */
  readonly rows?: (table: string, rows: readonly OutboxRow[]) => readonly OutboxRow[]
  readonly handle?: (tx: ConformanceHandle) => Partial<ConformanceHandle>
  readonly wakesNobody?: true
}

/** A world that was tampered with. */
async function tampered({ draft, rows, handle, wakesNobody }: Tampered): Promise<OutboxWorld> {
  const world = await memoryWorld()
  const around = (tx: ConformanceHandle): ConformanceHandle => {
    const changed: Partial<ConformanceHandle> = handle?.(tx) ?? {}
    const emit = (given: MessageDraft | readonly MessageDraft[]) =>
      draft === undefined || typeof given !== 'object'
        ? tx.emit(given as MessageDraft)
        : tx.emit((Array.isArray(given) ? given.map(draft) : draft(given as MessageDraft)) as MessageDraft)
    return new Proxy(tx, {
      get: (target, name) => {
        if (name in changed) return Reflect.get(changed, name)
        if (name === 'emit') return emit
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
  const db = {
    ...world.db,
    transact: ((body, options) =>
      world.db.transact((tx) => body(around(tx)), options as never)) as typeof world.db.transact,
    messages: wakesNobody ? { ...world.db.messages, onEmit: () => () => undefined } : world.db.messages,
  }
  const outboxRows: OutboxWorld['outboxRows'] = async (table) => {
    const real = await world.outboxRows(table)
    return rows?.(table, real) ?? real
  }
  return { ...world, db, second: async () => db, outboxRows }
}

const outcome = async (number: string, world: OutboxWorld): Promise<unknown> => {
  const subject = emitCases.find(({ id }) => id === `store.emit.${number}`)
  return subject === undefined ? 'no such case' : runConformanceCase(subject, world)
}

const without =
  (name: keyof MessageDraft) =>
  (draft: MessageDraft): MessageDraft => {
    const { [name]: _left, ...rest } = Object(draft) as MessageDraft
    return rest as MessageDraft
  }

/** Bugs that a store may have, and the cases that find them. */
const bugs: Readonly<Record<string, readonly [cases: readonly string[], tampered: Tampered]>> = {
  'keeps what was emitted in a savepoint that is undone': [['03'], { handle: () => ({ savepoint: (work) => work() }) }],
  'leaves a gap where something was rolled back': [
    ['02', '15'],
    {
      rows: (table, rows) =>
        table === 'message'
          ? rows.map((row) => (Number(row['number']) > 1 ? { ...row, number: Number(row['number']) + 1 } : row))
          : rows,
    },
  ],
  'forgets the ids that it is given': [['01', '05'], { draft: without('id') }],
  'forgets versions': [['06'], { draft: without('version') }],
  'delivers at once what is to wait': [['12'], { draft: without('after') }],
  'gives a key that comes back its old epoch': [
    ['07'],
    { rows: (table, rows) => (table === 'head' ? rows.map((row) => ({ ...row, epoch: 1 })) : rows) },
  ],
  'tells nobody': [['08', '12'], { rows: (table, rows) => (table === 'lane' ? [] : rows) }],
  'wakes a lane that is parked': [
    ['08'],
    { rows: (table, rows) => (table === 'lane' ? rows.map((row) => ({ ...row, state: 1 })) : rows) },
  ],
  'stores the key of the intent': [
    ['09'],
    { rows: (table, rows) => (table === 'message' ? rows.map((row) => ({ ...row, intent: 'emit-once' })) : rows) },
  ],
  'takes whatever it is given': [
    ['04'],
    { handle: () => ({ emit: (async () => 'an id') as unknown as ConformanceHandle['emit'] }) },
  ],
  'wakes nobody in the process': [['14'], { wakesNobody: true }],
}

describe('cases about what is emitted', () => {
  it('are one list, with those of races in it', () => {
    expect(emitCases).toEqual(expect.arrayContaining([...emitRaceCases]))
  })

  it.each(emitCases.map(({ id }) => id.slice(-2)))('store.emit.%s passes where nothing is wrong', async (id) => {
    expect(await outcome(id, await tampered({}))).toBe('passed')
  })

  it.each(Object.keys(bugs))('catch a store that %s', async (bug) => {
    const [cases, planted] = bugs[bug] as (typeof bugs)[string]
    for (const id of cases) await expect(outcome(id, await tampered(planted))).rejects.toThrow()
  })
})
