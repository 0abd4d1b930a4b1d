// What every store must do with its records: the unique index decides a claim, the version decides a write, and the
// store's clock dates both.

import { inspectionOf, type Written } from '../../atomicity/index.js'
import { type Key, scope, storedKey } from '../../identity/index.js'
import type { ConformanceCase, RecordCase } from './conformance-case.js'
import { holds, same } from './expectations.js'
import { race } from './race.js'
import { manyRecordCases } from './record-sweep-cases.js'
import { at, cannotInspect, id, leasedDraft, leasedRecord, limits, refusesInspection } from './record-world.js'

const settled = { action: 'settled', actor: 'ops', reason: 'it’s \\ "done" \u{1f600}' } as const

const singleRecordCases: readonly RecordCase[] = [
  {
    id: 'store.record.01',
    title: 'MUST store a claim with all its members, dated by the clock that it answers with',
    async run({ db: { records }, second }) {
      const absent = await records.read(id('a'), limits())
      same(absent.record, undefined, 'what is there before')
      const { written, record, nowMs } = await records.insert(id('a'), leasedDraft('one'), limits())
      same(
        { ...record, fence: 0 },
        { ...leasedRecord(nowMs, 0), token: 'one', fence: 0, dueAtMs: nowMs + 60_000 },
        'the claim',
      )
      const seen = await (await second()).records.read(id('a'), limits())
      same([written, seen.record], [true, record], 'written, and what another one reads')
      holds(absent.nowMs <= nowMs && nowMs <= seen.nowMs, 'a clock that goes on')
    },
  },
  {
    id: 'store.record.02',
    title: 'MUST let the unique index decide a race of claims, and show all others the winner',
    async run({ db, second }) {
      const domains = [db, await second()]
      const { results } = await race(6, ({ number, call }) =>
        call(() => (domains[number % 2] ?? db).records.insert(id('a'), leasedDraft(`claim ${number}`), limits())),
      )
      const winners = results.flatMap(({ written }, number) => (written ? [`claim ${number}`] : []))
      same(winners.length, 1, 'claims that were written')
      same([...new Set(results.map(({ record }) => record?.token))], winners, 'tokens that were shown')
    },
  },
  {
    id: 'store.record.03',
    title: 'MUST change a record of the expected version, member by member',
    async run({ db: { records } }) {
      const first = await records.insert(id('a'), leasedDraft('one'), limits())
      const beat = await records.swap(id('a'), await at(records, 'a', 1), { state: 'claimed', dueInMs: 5 }, limits())
      same(beat.record, { ...first.record, version: 2, dueAtMs: beat.nowMs + 5 }, 'a heartbeat')
      const over = {
        state: 'succeeded',
        dueInMs: null,
        value: '{"a":"ü\u{1f600}\'\\\\"}',
        codec: 'json',
        input: null,
      } as const
      const done = await records.swap(id('a'), await at(records, 'a', 2), { ...over, remembered: 1_000 }, limits())
      const { input: _, dueAtMs: __, ...kept } = { ...beat.record }
      same(
        done.record,
        {
          ...kept,
          version: 3,
          state: 'succeeded',
          value: over.value,
          codec: 'json',
          completedAtMs: done.nowMs,
          expiresAtMs: done.nowMs + 1_000,
        },
        'an outcome',
      )
      const anew = { state: 'claimed', claimed: 'first', token: 'two', fence: 'next', dueInMs: 9, value: null } as const
      const again = await records.swap(id('a'), await at(records, 'a', 3), anew, limits())
      holds((again.record?.fence ?? 0) > (first.record?.fence ?? 0), 'a fence that grows')
      same(
        [again.record?.claims, again.record?.firstClaimedAtMs, again.record?.expiresAtMs, again.record?.value],
        [1, again.nowMs, undefined, undefined],
        'a key that is used anew',
      )
      same((await records.read(id('a'), limits())).record, again.record, 'what is read')
    },
  },
  {
    id: 'store.record.04',
    title: 'MUST refuse a write that expects another version, and show what is there',
    async run({ db: { records } }) {
      const change = { state: 'unknown', because: 'x' } as const
      same(
        (await records.swap(id('a'), await at(records, 'a', 1), change, limits())).record,
        undefined,
        'a write to nothing',
      )
      const { record } = await records.insert(id('a'), leasedDraft('one'), limits())
      for (const write of [change, null]) {
        const refused = await records.swap(id('a'), await at(records, 'a', 2), write, limits(), settled)
        same([refused.written, refused.record], [false, record], 'a write to another version')
      }
      same(
        [(await records.read(id('a'), limits())).record, (await records.inspection?.notes(id('a'), limits())) ?? []],
        [record, []],
        'rest',
      )
    },
  },
  {
    id: 'store.record.05',
    title: 'MUST let one of several writes to a version through, and show the others what it wrote',
    async run({ db, second }) {
      const domains = [db, await second()]
      await db.records.insert(id('a'), leasedDraft('one'), limits())
      const read = await at(db.records, 'a', 1)
      const { results } = await race<Written>(6, ({ number, call }) =>
        call(() => {
          const change = { state: 'unknown', because: `write ${number}` } as const
          return (domains[number % 2] ?? db).records.swap(id('a'), read, change, limits())
        }),
      )
      const winners = results.flatMap(({ written }, number) => (written ? [`write ${number}`] : []))
      same(winners.length, 1, 'writes that went through')
      same([...new Set(results.map(({ record }) => record?.because))], winners, 'what was shown')
    },
  },
  {
    id: 'store.record.06',
    title: 'MUST remove a record of the expected version, after which the key is free',
    async run({ db: { records } }) {
      await records.insert(id('a'), leasedDraft('one'), limits())
      const removed = await records.swap(id('a'), await at(records, 'a', 1), null, limits())
      same([removed.written, removed.record], [true, undefined], 'the removal')
      const again = await records.swap(id('a'), await at(records, 'a', 1), null, limits())
      same([again.written, again.record], [false, undefined], 'its repeat')
      const next = await records.insert(id('a'), leasedDraft('two'), limits())
      same([next.written, next.record?.version, next.record?.token], [true, 1, 'two'], 'the next claim')
    },
  },
  {
    id: 'store.record.17',
    title: 'MUST refuse a late write that depends on an earlier life of the key, though its version has come again',
    async run({ db: { records } }) {
      const { record: old } = await records.insert(id('a'), leasedDraft('one'), limits())
      if (old === undefined) return holds(false, 'the first life is there')
      await records.swap(id('a'), old, null, limits())
      const { record: next } = await records.insert(id('a'), leasedDraft('two'), limits())
      same(next?.version, old.version, 'the version that has come again')
      for (const late of [{ state: 'succeeded', value: '1', remembered: 1 } as const, null]) {
        const refused = await records.swap(id('a'), old, late, limits())
        same([refused.written, refused.record], [false, next], 'a late write')
      }
      const sameToken = await records.swap(id('a'), { ...old, token: 'two' }, null, limits())
      same(sameToken.written, false, 'a write with the token of the one, and the fence of the other')
    },
  },
  {
    id: 'store.record.07',
    title: 'MUST take fences from one sequence that grows, also after a removal and for another domain object',
    async run({ db, second }) {
      const fences: (number | undefined)[] = []
      for (const [round, { records }] of [db, await second(), db, await second()].entries()) {
        const { record } = await records.insert(id('a'), leasedDraft(`claim ${round}`), limits())
        const next = await records.swap(
          id('a'),
          await at(records, 'a', 1),
          { state: 'claimed', fence: 'next', claimed: true },
          limits(),
        )
        fences.push(record?.fence, next.record?.fence)
        await records.swap(id('a'), await at(records, 'a', 2), null, limits())
      }
      holds(
        fences.every((fence, place) => (fence ?? 0) > (fences[place - 1] ?? 0)),
        `growing fences: ${fences.join(', ')}`,
      )
      const atomic = await db.records.insert(id('b'), { mode: 'atomic', token: 'x' }, limits())
      same([atomic.record?.fence, atomic.record?.dueAtMs], [undefined, undefined], 'a claim without a lease')
    },
  },
  {
    id: 'store.record.08',
    title: 'MUST store a note in the same commit as its write, and hand notes out oldest first',
    deniedBy: cannotInspect,
    refusal: refusesInspection,
    async run({ db: { records } }) {
      await records.insert(id('a'), leasedDraft('one'), limits())
      const swept = { action: 'swept', actor: 'sweep', reason: 'lease-expired' } as const
      const first = await records.swap(id('a'), await at(records, 'a', 1), { state: 'unknown' }, limits(), swept)
      const second = await records.swap(id('a'), await at(records, 'a', 2), null, limits(), settled)
      const order = ['id', 'atMs', 'action', 'actor', 'reason', 'from', 'to']
      const notes = await inspectionOf(records).notes(id('a'), limits())
      same(
        notes.map((note) => order.map((name) => note[name as keyof typeof note])),
        [
          [id('a'), first.nowMs, 'swept', 'sweep', 'lease-expired', 'claimed', 'unknown'],
          [id('a'), second.nowMs, 'settled', 'ops', settled.reason, 'unknown', 'absent'],
        ],
        'notes',
      )
      same(await inspectionOf(records).notes(id('b'), limits()), [], 'notes of another record')
    },
  },
  {
    id: 'store.record.09',
    title: 'MUST show a record of a newer format, and never write to it',
    async run({ db: { records }, putRecord }) {
      const { nowMs } = await records.read(id('a'), limits())
      const state = 'of the future' as 'unknown'
      for (const [name, some] of Object.entries({ odd: { state }, due: {}, over: { state: 'failed' } } as const)) {
        await putRecord(id(name), leasedRecord(nowMs, 100_000, { format: 99, expiresAtMs: nowMs - 1, ...some }))
      }
      const names = ['due', 'odd', 'over'].map(id)
      const stored = async () =>
        Promise.all(names.map(async (name) => ({ id: name, record: (await records.read(name, limits())).record })))
      const before = await stored()
      same(
        before.map(({ record }) => record?.format),
        [99, 99, 99],
        'formats that are shown',
      )
      for (const { id: name, record } of before) {
        if (record === undefined) return holds(false, 'a record of a newer format')
        const inserted = await records.insert(name, leasedDraft('x'), limits())
        const removed = await records.swap(name, record, null, limits())
        const changed = await records.swap(name, record, { state: 'failed' }, limits())
        same([inserted.written, removed.written, changed.written], [false, false, false], 'what was written')
        same(changed.record, record, 'what is shown')
      }
      const query = { operations: ['charge'], limit: 10, marginMs: 0, baseMs: 1, capMs: 1 }
      same(await records.due(query, limits()), [], 'what is due')
      await records.purge({ limit: 10, unknownAfterMs: 0, markersAfterMs: 0 }, limits())
      same(await stored(), before, 'what is left')
    },
  },
]

const markerCase: ConformanceCase = {
  id: 'store.record.10',
  title: 'MUST show the marker of a transaction with a key as a record, once it has committed',
  async run({ db }) {
    const key = { scope: scope('conformance'), key: 'one' as Key }
    const name = storedKey(key.scope, key.key, db.records.pepper)
    let during: unknown = 'not looked at'
    // A store with one writer is read past it.
    await db.transact(
      async () => {
        during = (await db.records.read(name, limits())).record
        return { a: 1 }
      },
      { content: 'none', key },
    )
    same(during, undefined, 'what is there before the commit')
    const { record } = await db.records.read(name, limits())
    const { mode, state, version, claims, value, expiresAtMs, operation, fence } = { ...record }
    same(
      [mode, state, version, claims, value, expiresAtMs, operation, fence],
      ['atomic', 'succeeded', 1, 1, '{"a":1}', undefined, undefined, undefined],
      'the record',
    )
  },
}

/** Cases of the group `store.record` that need no transactions: one record at a time, then many at once. */
export const leasedRecordCases: readonly RecordCase[] = [...singleRecordCases, ...manyRecordCases]

/** All cases of the group `store.record`. */
export const recordCases: readonly ConformanceCase[] = [...singleRecordCases, markerCase, ...manyRecordCases]
