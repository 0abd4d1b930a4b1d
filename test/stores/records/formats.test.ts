// Records of every format that was ever released, under today's code; and records of a format that is not known yet,
// which are left alone.

import { describe, expect, it } from 'vitest'
import { recordFormat } from '../../../src/atomicity/index.js'
import { encrypted, happened, leased, type Operation, resolve } from '../../../src/idempotency/index.js'
import type { Key } from '../../../src/identity/index.js'
import { deadlineAfter, systemClock } from '../../../src/kernel/index.js'
import { engines, type FixtureRecord, fixtureOf, hasFixture, type Opened, withFixture } from './fixtures.js'

interface Order {
  readonly key: Key
  readonly amount: number
}

const formats = Array.from({ length: recordFormat }, (_, place) => place + 1)
const cells = engines.flatMap((engine) => formats.map((format) => [engine, format] as const))

it('every format up to the newest has its fixture, written down when it was released', () => {
  expect(formats.filter((format) => !hasFixture(format))).toEqual([])
  expect(hasFixture(recordFormat + 1)).toBe(false)
})

/** The operations that wrote the fixtures, with bodies that say that they ran. */
function operationsOn({ db }: Opened, format: number) {
  const runs: string[] = []
  const { scope } = fixtureOf(format)
  const base = { scope: () => scope, key: ({ key }: Order) => key, window: '24h' } as const
  const run =
    (name: string) =>
    async (_: unknown, { key }: Order) => {
      runs.push(`${name} ${key}`)
      return 'carried out anew'
    }
  const codec = encrypted<string>({ keys: { k1: new Uint8Array(32).fill(7) }, current: 'k1' })
  const failures = ['declined'] as const
  const charge = leased<Order, unknown, 'declined'>('charge', {
    ...base,
    store: db,
    lease: '30s',
    keepInput: true,
    failures,
    recover: resolve(() => happened('asked')),
    run: run('charge'),
  })
  const operations: Record<string, Operation<Order, unknown, string>> = {
    pay: db.operation('pay', { ...base, failures, run: run('pay') }),
    brief: db.operation('brief', { ...base, run: run('brief') }),
    sealed: db.operation('sealed', { ...base, codec, run: run('sealed') }),
    charge,
  }
  /** Calls what wrote a record, as its caller does. */
  const call = async ({ operation, key }: FixtureRecord, amount = 5): Promise<unknown> => {
    if (operation !== undefined) return operations[operation]?.outcome({ key, amount })
    const value = await db.transact(() => runs.push(key), { content: 'none', key: { scope, key } })
    return { outcome: 'succeeded', value, replayed: true }
  }
  return { call, runs, charge }
}

describe.each(cells)('on %s, records of format %i', (engine, format) => {
  it('mean what they meant', () =>
    withFixture(engine, format, async (opened) => {
      await opened.db.migrate()
      const { call, runs } = operationsOn(opened, format)
      const expectedRuns: string[] = []
      for (const record of fixtureOf(format).records) {
        const { outcome } = record
        const told = await call(record).catch((error: unknown) => error)
        if ('succeeded' in outcome) {
          const value = outcome.succeeded ?? undefined
          expect(told).toEqual({ outcome: 'succeeded', value, replayed: true })
          if (record.operation !== undefined)
            await expect(call(record, 6)).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
        } else if ('failed' in outcome) {
          expect(told).toMatchObject({ outcome: 'failed', failure: outcome.failed, replayed: true })
        } else if ('refused' in outcome) expect(told).toMatchObject({ code: outcome.refused })
        else if ('asked' in outcome) expect(told).toEqual({ outcome: 'succeeded', value: 'asked', replayed: true })
        else {
          expect(told).toEqual({ outcome: 'succeeded', value: 'carried out anew', replayed: false })
          expectedRuns.push(`${record.operation} ${record.key}`)
        }
      }
      expect(runs).toEqual(expectedRuns)
    }))

  it('are the same in every cell after a migration', () =>
    withFixture(engine, format, async ({ db, raw }) => {
      const all = 'select * from reprise_marker order by id'
      const before = await raw(all)
      await db.migrate()
      const after = await raw(all)
      // What a migration adds has a value of its own; nothing that was there has changed.
      expect(after.map((row, place) => ({ ...row, ...before[place] }))).toEqual(after)
      expect(after).toHaveLength(fixtureOf(format).records.length)
    }))

  it('are of that format, and all of them are accounted for', () =>
    withFixture(engine, format, async ({ raw }) => {
      const rows = await raw('select format, count(*) as n from reprise_marker group by format')
      expect(rows.map((row) => [row['format'], Number(row['n'])])).toEqual([[format, fixtureOf(format).records.length]])
    }))
})

describe.each(engines)('on %s, records of a newer format', (engine) => {
  it('are refused by everybody, and neither carried out, changed nor forgotten', () =>
    withFixture(engine, recordFormat, async (opened) => {
      const { db, raw } = opened
      await db.migrate()
      // As a newer version might have left them: every state, and one that is not known here.
      await raw('update reprise_marker set format = 99')
      await raw("update reprise_marker set state = 'of the future' where value like '%plain%'")
      const all = 'select * from reprise_marker order by id'
      const before = await raw(all)
      const { call, runs, charge } = operationsOn(opened, recordFormat)
      const newer = { code: 'RECORD_FORMAT_NEWER', details: { format: 99 } }
      const { records, scope } = fixtureOf(recordFormat)
      for (const record of records) await expect(call(record)).rejects.toMatchObject(newer)
      // Other content is not even looked at.
      for (const record of records) await expect(call(record, 6)).rejects.toMatchObject(newer)
      expect(await db.sweep([charge])).toMatchObject({ taken: 0 })
      const limits = { deadline: deadlineAfter('10s', systemClock) }
      const every = { limit: 100, unknownAfterMs: 0, markersAfterMs: 0, auditAfterMs: 0 }
      const purged = await db.records.purge(every, limits)
      expect(purged).toEqual({ finished: 0, unknown: 0, audit: 0, markers: 0 })
      const held = { operation: charge, scope, key: 'held' as Key }
      await expect(db.settle(held, happened(1), { reason: 'x', actor: 'y' })).rejects.toMatchObject({
        code: 'SETTLE_REFUSED',
        details: { because: 'format' },
      })
      expect(await db.lookup({ ...held, key: 'done' as Key })).toMatchObject({ outcome: undefined })
      expect([runs, await raw(all)]).toEqual([[], before])
    }))
})
