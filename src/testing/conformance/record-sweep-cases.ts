// What every store must do with many records at once: hand out what is due to one sweeper each, forget what is past its
// time and nothing else, list in order.

import { inspectionOf, type RecordQuery, type StoredRecord } from '../../atomicity/index.js'
import type { RecordCase, RecordWorld } from './conformance-case.js'
import { holds, same } from './expectations.js'
import { race } from './race.js'
import { at, cannotInspect, id, leasedDraft, leasedRecord, limits, present, refusesInspection } from './record-world.js'

const look = { operations: ['charge'], limit: 100, marginMs: 1_000, baseMs: 60_000, capMs: 150_000 }

async function storeNowMs({ db }: Pick<RecordWorld, 'db'>): Promise<number> {
  return (await db.records.read(id('nobody'), limits())).nowMs
}

/** Cases of the group `store.record` about many records. */
export const manyRecordCases: readonly RecordCase[] = [
  {
    id: 'store.record.11',
    title: 'MUST take a claim whose lease is over, past the margin, and make it unknown',
    async run(world) {
      const { db, putRecord } = world
      const nowMs = await storeNowMs(world)
      const put: Record<string, [agoMs: number, otherwise: Partial<StoredRecord>]> = {
        expired: [100_000, {}],
        'in-margin': [0, { dueAtMs: nowMs - 100, token: 'alive' }],
        alive: [0, { dueAtMs: nowMs + 60_000 }],
        unknown: [50_000, { state: 'unknown', dueAtMs: nowMs - 100, token: undefined, because: 'x', looks: 1 }],
        held: [50_000, { state: 'unknown', dueAtMs: undefined }],
        over: [100_000, { state: 'succeeded' }],
        elsewhere: [100_000, { operation: 'other' }],
        atomic: [100_000, { mode: 'atomic' }],
      }
      for (const [name, [agoMs, otherwise]] of Object.entries(put)) {
        await putRecord(id(name), leasedRecord(nowMs, agoMs, otherwise))
      }
      const taken = await db.records.due({ ...look, marginMs: 60_000 }, limits())
      same(
        taken.map((one) => one.id),
        [id('expired'), id('unknown')],
        'what was taken, oldest first',
      )
      const [expired, unknown] = taken.map(({ record }) => record)
      same(
        [expired?.state, expired?.because, expired?.token, expired?.version, expired?.looks, expired?.fence],
        ['unknown', 'lease-expired', undefined, 2, 1, 1],
        'the claim whose lease is over',
      )
      same([unknown?.state, unknown?.because, unknown?.version, unknown?.looks], ['unknown', 'x', 2, 2], 'the unknown')
      for (const { id: name, record } of taken) {
        same((await db.records.read(name, limits())).record, record, 'what was taken, read again')
      }
      same(await db.records.due({ ...look, marginMs: 60_000 }, limits()), [], 'what is due right after')
    },
  },
  {
    id: 'store.record.12',
    title: 'MUST put a record off for twice as long each time, up to the cap, and take the oldest first',
    async run(world) {
      const { db, putRecord } = world
      const nowMs = await storeNowMs(world)
      for (const looks of [0, 1, 2, 40]) {
        const some = { state: 'unknown', looks, dueAtMs: nowMs - 100 + looks } as const
        await putRecord(id(`looks ${looks}`), leasedRecord(nowMs, 50_000, some))
      }
      const taken = [
        ...(await db.records.due({ ...look, limit: 1 }, limits())),
        ...(await db.records.due({ ...look, limit: 2 }, limits())),
        ...(await db.records.due(look, limits())),
      ]
      same(
        taken.map(({ record }) => record.looks),
        [1, 2, 3, 41],
        'looks, oldest first',
      )
      const afterMs = await storeNowMs(world)
      for (const [place, waitMs] of [60_000, 120_000, 150_000, 150_000].entries()) {
        const dueAtMs = taken[place]?.record.dueAtMs ?? 0
        holds(dueAtMs >= nowMs + waitMs && dueAtMs <= afterMs + waitMs, `a wait of ${waitMs} ms`)
      }
    },
  },
  {
    id: 'store.record.13',
    title: 'MUST give each record that is due to one of several sweepers',
    async run(world) {
      const { db, second, putRecord } = world
      const nowMs = await storeNowMs(world)
      const all = Array.from({ length: 40 }, (_, number) => id(`due ${String(number).padStart(2, '0')}`))
      for (const name of all) await putRecord(name, leasedRecord(nowMs, 100_000))
      const domains = [db, await second()]
      const { results } = await race(4, ({ number, call }) =>
        call(async () => {
          const taken: string[] = []
          for (let rounds = 0; rounds < 40; rounds++) {
            const batch = await (domains[number % 2] ?? db).records.due({ ...look, limit: 4 }, limits())
            taken.push(...batch.map((one) => one.id))
            if (batch.length === 0) break
          }
          return taken
        }),
      )
      // Whoever found everything locked went home; what is left is due still.
      const rest = (await db.records.due(look, limits())).map((one) => one.id)
      same([...results.flat(), ...rest].sort(), all, 'what was taken by all together')
    },
  },
  {
    id: 'store.record.14',
    title: 'MUST forget what finished past its window, in batches, and nothing else',
    async run(world) {
      const { db, putRecord } = world
      const nowMs = await storeNowMs(world)
      const put: Record<string, Partial<StoredRecord>> = {
        'a-failed': { state: 'failed', expiresAtMs: nowMs - 1 },
        'a-first': { state: 'succeeded', expiresAtMs: nowMs - 2 },
        'a-second': { state: 'succeeded', expiresAtMs: nowMs - 3 },
        'b-claimed': {},
        'c-in-window': { state: 'succeeded', expiresAtMs: nowMs + 60_000 },
        'd-for-ever': { state: 'succeeded' },
        'e-unknown': { state: 'unknown', expiresAtMs: nowMs - 1 },
      }
      for (const [name, some] of Object.entries(put)) await putRecord(id(name), leasedRecord(nowMs, 100_000, some))
      const counts: number[] = []
      for (let round = 0; round < 3; round++) counts.push((await db.records.purge({ limit: 2 }, limits())).finished)
      same(counts, [2, 1, 0], 'what was forgotten in each batch')
      same(
        await present(db.records, Object.keys(put)),
        ['b-claimed', 'c-in-window', 'd-for-ever', 'e-unknown'],
        'what is left',
      )
    },
  },
  {
    id: 'store.record.15',
    title: 'MUST forget unknown ones, markers and notes only when it is asked to, and an unknown with a note',
    deniedBy: cannotInspect,
    refusal: refusesInspection,
    async run(world) {
      const { db, putRecord } = world
      const nowMs = await storeNowMs(world)
      const marker = { mode: 'atomic', state: 'succeeded', operation: undefined, dueAtMs: undefined } as const
      await putRecord(id('new'), leasedRecord(nowMs, 1_000, { state: 'unknown' }))
      await putRecord(id('old'), leasedRecord(nowMs, 100_000, { state: 'unknown' }))
      await putRecord(id('plain-new'), leasedRecord(nowMs, 1_000, marker))
      await putRecord(id('plain-old'), leasedRecord(nowMs, 100_000, marker))
      const nothing = { finished: 0, unknown: 0, audit: 0, markers: 0 }
      same(await db.records.purge({ limit: 10 }, limits()), nothing, 'without being asked')
      const asked = { limit: 10, unknownAfterMs: 50_000, markersAfterMs: 50_000 }
      same(await db.records.purge(asked, limits()), { ...nothing, unknown: 1, markers: 1 }, 'asked')
      same(await present(db.records, ['new', 'old', 'plain-new', 'plain-old']), ['new', 'plain-new'], 'what is left')
      const [note, ...more] = await inspectionOf(db.records).notes(id('old'), limits())
      same([note?.action, note?.from, note?.to, more], ['dropped', 'unknown', 'absent', []], 'the note')
      same(await db.records.purge({ limit: 10, auditAfterMs: 60_000 }, limits()), nothing, 'a note that is new')
      same(await db.records.purge({ limit: 10, auditAfterMs: 0 }, limits()), { ...nothing, audit: 1 }, 'a note')
      same(await inspectionOf(db.records).notes(id('old'), limits()), [], 'notes that are left')
    },
  },
  {
    id: 'store.record.16',
    title: 'MUST list records in the order of their names, page by page, by state and by operation',
    deniedBy: cannotInspect,
    refusal: refusesInspection,
    async run(world) {
      const { records } = world.db
      for (const name of ['c', 'a', 'd', 'b']) {
        await records.insert(id(name), leasedDraft('x', 60_000, name === 'd' ? 'refund' : 'charge'), limits())
      }
      await records.swap(id('b'), await at(records, 'b', 1), { state: 'unknown' }, limits())
      const found = async (query: Partial<RecordQuery>): Promise<string[]> =>
        (await inspectionOf(records).list({ limit: 10, ...query }, limits())).map((one) => one.id.slice(-1))
      same(await found({}), ['a', 'b', 'c', 'd'], 'all')
      same(await found({ limit: 2 }), ['a', 'b'], 'the first page')
      same(await found({ limit: 2, after: id('b') }), ['c', 'd'], 'the second page')
      same(await found({ state: 'unknown' }), ['b'], 'by state')
      same(await found({ operation: 'refund' }), ['d'], 'by operation')
      same(await found({ operation: 'charge', state: 'claimed', after: id('a') }), ['c'], 'by all of it')
    },
  },
  {
    id: 'store.record.18',
    title: 'MUST count the remembered records of a scope, up to a limit, and none of another scope or past its window',
    deniedBy: cannotInspect,
    refusal: refusesInspection,
    async run(world) {
      const { db, putRecord } = world
      const nowMs = await storeNowMs(world)
      const put: Record<string, Partial<StoredRecord>> = {
        claimed: {},
        elsewhere: { scope: 'sha256:another' },
        failed: { state: 'failed', expiresAtMs: nowMs + 60_000 },
        'for-ever': { state: 'succeeded' },
        over: { state: 'succeeded', expiresAtMs: nowMs - 1 },
        'over-failed': { state: 'failed', expiresAtMs: nowMs - 1 },
        unknown: { state: 'unknown', expiresAtMs: nowMs - 1 },
      }
      for (const [name, some] of Object.entries(put)) await putRecord(id(name), leasedRecord(nowMs, 1_000, some))
      const counts: number[] = []
      for (const most of [1, 3, 4, 5, 1_000_000])
        counts.push(await inspectionOf(db.records).live('sha256:scope', most, limits()))
      same(counts, [1, 3, 4, 4, 4], 'records of the scope, up to each limit')
      same(await inspectionOf(db.records).live('sha256:another', 10, limits()), 1, 'records of another scope')
      same(await inspectionOf(db.records).live('sha256:nobody', 10, limits()), 0, 'records of nobody')
    },
  },
]
