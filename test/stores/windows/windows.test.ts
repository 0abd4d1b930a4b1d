// Dedupe windows on real databases: what they remember, how exactly, and what two processes let through.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deadlineAfter, sha256 } from '../../../src/kernel/index.js'
import { type DedupeWindowOptions, dedupeWindow, type WindowStore } from '../../../src/messaging/index.js'
import { barrier, manualClock } from '../../../src/testing/index.js'
import { worlds } from './worlds.js'

const isDuplicate = { accepted: false, because: 'duplicate' }
const seed = Number(process.env['REPRISE_SEED'])
// No machine is too busy for it.
const patient = { within: '1h', most: 1_000, storeLimit: '1m' } as const
const options = (store: WindowStore, more: Partial<DedupeWindowOptions> = {}): DedupeWindowOptions => ({
  name: 'orders',
  ...patient,
  store,
  ...more,
})
const call = { deadline: '2m' } as const

type Step = { readonly pass: number } | { readonly waitMs: number } | { readonly restart: boolean }

describe.each(worlds)('a window on %s', (_name, inWorld) => {
  it('remembers over restarts all that was marked, and tells windows apart', () =>
    inWorld(async ({ maker, open }) => {
      const first = await maker()
      await first.migrate()
      expect((await first.doctor()).filter(({ code }) => /TABLES|MIGRATIONS/.test(code))).toEqual([])
      const before = dedupeWindow(options(await open()))
      const ids = Array.from({ length: 30 }, (_, n) => ['source', `${n}`] as const)
      for (const id of ids) {
        expect(await before.pass(id, () => id, call)).toEqual({ accepted: true, value: id, remembered: 'store' })
      }
      const store = await open()
      const after = dedupeWindow(options(store))
      for (const id of ids) expect(await after.pass(id, () => expect.unreachable(), call)).toEqual(isDuplicate)
      expect(after.counts).toMatchObject({ duplicates: 30, accepted: 0 })
      const other = dedupeWindow(options(store, { name: 'refunds' }))
      expect(await other.pass(ids[0] ?? 'none', () => 1, call)).toMatchObject({ accepted: true })
    }))

  it('numbers what two processes mark at once without a gap', () =>
    inWorld(async ({ maker, open, raw }) => {
      await (await maker()).migrate()
      const windows = [dedupeWindow(options(await open())), dedupeWindow(options(await open()))]
      const passes = windows.flatMap((window, place) =>
        Array.from({ length: 40 }, (_, n) => window.pass([`${place}`, `${n}`], () => n, call)),
      )
      for (const passed of await Promise.all(passes)) expect(passed).toMatchObject({ remembered: 'store' })
      const rows = await raw('select number from reprise_seen order by number')
      expect(rows.map(({ number }) => Number(number))).toEqual(Array.from({ length: 80 }, (_, n) => n + 1))
      expect(await raw('select name, last from reprise_window')).toMatchObject([{ name: 'orders' }])
      expect(Number((await raw('select last from reprise_window'))[0]?.['last'])).toBe(80)
    }))

  it('forgets in order, by count and by age of the store, as a list of all acceptances says', () =>
    inWorld(async ({ maker, open, raw }) => {
      await (await maker()).migrate()
      const [most, withinMs] = [3, 3_600_000]
      const stores = [await open(), await open()]
      let run = 0
      const steps = fc.array(
        fc.oneof(
          { weight: 8, arbitrary: fc.record({ pass: fc.integer({ min: 0, max: 5 }) }) },
          { weight: 1, arbitrary: fc.record({ waitMs: fc.integer({ min: 1, max: 3 }) }) },
          { weight: 2, arbitrary: fc.record({ restart: fc.constant(true) }) },
        ),
        { minLength: 10, maxLength: 30 },
      )
      const check = async (list: readonly Step[]) => {
        run += 1
        const clock = manualClock()
        let opened = 0
        const restarted = () => {
          opened += 1
          const store = stores[opened % 2] as WindowStore
          return dedupeWindow({ name: `run ${run}`, within: withinMs, most, store, storeLimit: '50m', clock })
        }
        let window = restarted()
        const accepted: { id: number; atMs: number }[] = []
        for (const step of list) {
          if ('restart' in step) window = restarted()
          else if ('waitMs' in step) {
            // A third of the window, and a little more, passes for the process and for the store.
            const ms = step.waitMs * 1_201_000
            await clock.advance(ms)
            await raw(`update reprise_seen set at_ms = at_ms - ${ms}`)
          } else {
            const nowMs = clock.monotonicMs()
            const isKnown = accepted.slice(-most).some(({ id, atMs }) => id === step.pass && nowMs - atMs < withinMs)
            const passed = await window.pass(`${step.pass}`, () => 1, { deadline: '55m' })
            expect(passed.accepted).toBe(!isKnown)
            if (!isKnown) accepted.push({ id: step.pass, atMs: nowMs })
          }
        }
      }
      await fc.assert(fc.asyncProperty(steps, check), { numRuns: 25, seed })
    }))

  it('keeps few rows that it has forgotten', () =>
    inWorld(async ({ maker, open, raw }) => {
      await (await maker()).migrate()
      const store = await open()
      const window = dedupeWindow(options(store, { most: 10 }))
      const rows = async (): Promise<number> =>
        Number((await raw('select count(*) as rows from reprise_seen'))[0]?.['rows'])
      for (let n = 0; n < 60; n += 1) {
        await window.pass(`${n}`, () => n, call)
        expect(await rows()).toBeLessThanOrEqual(11)
      }
      expect(window.counts).toMatchObject({ evictedByCount: 50, evictedByAge: 0 })
      const after = dedupeWindow(options(store, { most: 10 }))
      expect(await after.pass('50', () => 1, call)).toEqual(isDuplicate)
      expect(await after.pass('49', () => 1, call)).toMatchObject({ accepted: true })
      // What is too old goes too, and what is marked anew stays though its row was forgotten.
      await raw('update reprise_seen set at_ms = at_ms - 3600000')
      expect(await after.pass('59', () => 1, call)).toMatchObject({ accepted: true })
      expect(await dedupeWindow(options(store, { most: 10 })).pass('59', () => 1, call)).toEqual(isDuplicate)
      expect(await rows()).toBe(1)
    }))

  it('is purged of all that it has forgotten, of its head with the last row, and of nothing else', () =>
    inWorld(async ({ maker, open, raw }) => {
      await (await maker()).migrate()
      const store = await open()
      const [window, other] = [dedupeWindow(options(store)), dedupeWindow(options(store, { name: 'refunds' }))]
      expect(await window.purge()).toBe(0)
      // More than leave in one commit.
      const order: string[] = []
      const ids = Array.from({ length: 700 }, (_, n) => `${n}`)
      await Promise.all(ids.map((id) => window.pass(id, () => order.push(id), call)))
      await other.pass('a', () => 1, call)
      const rows = async () =>
        (await raw('select window_name, count(*) as n from reprise_seen group by window_name order by 1')).map(
          ({ window_name, n }) => [window_name, Number(n)],
        )
      expect(await window.purge()).toBe(0)
      expect(await rows()).toEqual([
        ['orders', 700],
        ['refunds', 1],
      ])
      // By count, as whoever purges says it.
      expect(await dedupeWindow(options(store, { most: 650 })).purge()).toBe(50)
      const after = dedupeWindow(options(store, { most: 650 }))
      expect(await after.pass(order[50] ?? '', () => expect.unreachable(), call)).toEqual(isDuplicate)
      // Abandoned: its ids are past their time, and nobody marks any more.
      await raw(`update reprise_seen set at_ms = at_ms - 3600001 where window_name = 'orders'`)
      expect(await dedupeWindow(options(store)).purge()).toBe(650)
      expect(await rows()).toEqual([['refunds', 1]])
      expect(await raw('select name from reprise_window')).toEqual([{ name: 'refunds' }])
      // Used again, it begins anew, and the other one has forgotten nothing.
      const again = dedupeWindow(options(store))
      expect(await again.pass('0', () => 1, call)).toMatchObject({ accepted: true, remembered: 'store' })
      expect(await dedupeWindow(options(store)).pass('0', () => 1, call)).toEqual(isDuplicate)
      expect(await dedupeWindow(options(store, { name: 'refunds' })).pass('a', () => 1, call)).toEqual(isDuplicate)
    }))

  it('keeps what is marked while it is purged', () =>
    inWorld(async ({ maker, open, raw }) => {
      await (await maker()).migrate()
      const [marking, purging] = [await open(), await open()]
      const known = dedupeWindow(options(marking))
      for (let round = 0; round < 20; round += 1) {
        await raw('update reprise_seen set at_ms = at_ms - 3600001')
        const ids = ['a', 'b', 'c'].map((id) => [id, `${round % 2}`] as const)
        // Its memory is that of the store alone: it forgot with the restart.
        const window = dedupeWindow(options(marking))
        const [purged] = await Promise.all([
          dedupeWindow(options(purging)).purge(),
          ...ids.map((id) => window.pass(id, () => 1, call)),
        ])
        expect(purged).toBeLessThanOrEqual(3)
        for (const id of ids) {
          expect(await dedupeWindow(options(purging)).pass(id, () => expect.unreachable(), call)).toEqual(isDuplicate)
        }
        const [head] = await raw('select last from reprise_window')
        const [top] = await raw('select max(number) as number from reprise_seen')
        expect(Number(head?.['last'])).toBe(Number(top?.['number']))
      }
      await expect(known.purge()).resolves.toEqual(expect.any(Number))
    }))

  it('has forgotten what is past the count, though its row is there', () =>
    inWorld(async ({ maker, open, raw }) => {
      await (await maker()).migrate()
      const store = await open()
      const window = dedupeWindow(options(store))
      for (let n = 1; n <= 20; n += 1) await window.pass(`${n}`, () => n, call)
      expect(await raw('select id from reprise_seen')).toHaveLength(20)
      const smaller = () => dedupeWindow(options(store, { most: 10 }))
      expect(await smaller().pass('11', () => 1, call)).toEqual(isDuplicate)
      expect(await smaller().pass('10', () => 1, call)).toMatchObject({ accepted: true })
    }))

  it('lets through in two processes what is with the sink in both at once, and nothing after it', () =>
    inWorld(async ({ maker, open }) => {
      await (await maker()).migrate()
      const windows = [dedupeWindow(options(await open())), dedupeWindow(options(await open()))]
      const both = barrier(2, { limitMs: 240_000 })
      const raced = await Promise.all(
        windows.map((window) => window.pass('a', () => both.arrive(), { deadline: '5m' })),
      )
      // Both were asked about, and handed to the sink, before either was accepted.
      expect(both.opened).toBe(true)
      expect(raced).toEqual([1, 2].map(() => expect.objectContaining({ accepted: true, remembered: 'store' })))
      for (const window of windows) expect(await window.pass('a', () => 1, call)).toEqual(isDuplicate)
      expect(await dedupeWindow(options(await open())).pass('a', () => 1, call)).toEqual(isDuplicate)
      // One after the other, the second process drops it.
      expect(await windows[0]?.pass('b', () => 1, call)).toMatchObject({ accepted: true })
      expect(await windows[1]?.pass('b', () => 1, call)).toEqual(isDuplicate)
    }))

  it('keeps digests and no ids, hides them under a pepper, and lets nobody with another one mark beside it', () =>
    inWorld(async ({ maker, open, raw }) => {
      const plain = await maker()
      await plain.migrate()
      await dedupeWindow(options(await open())).pass('guessable', () => 1, call)
      const guess = sha256('7:window16:orders9:guessable')
      expect(await raw('select id from reprise_seen')).toEqual([{ id: guess }])
      const pepper = 'the-secret-of-the-shop'
      await expect((await maker(pepper)).migrate()).rejects.toMatchObject({ code: 'PEPPER_MISMATCH' })
      await (await maker(pepper)).migrate({ rename: true })
      const [row] = await raw('select id from reprise_seen')
      expect(row?.['id']).toMatch(/^hmac256-/)
      // Nothing is forgotten for it.
      const peppered = dedupeWindow(options(await open(pepper)))
      expect(await peppered.pass('guessable', () => expect.unreachable(), call)).toEqual(isDuplicate)
      expect(await peppered.pass('new', () => 1, call)).toMatchObject({ remembered: 'store' })
      const stranger = dedupeWindow(options(await open(), { storeAway: 'pass' }))
      await expect(stranger.pass('guessable', () => expect.unreachable(), call)).rejects.toMatchObject({
        code: 'PEPPER_MISMATCH',
      })
      await expect(dedupeWindow(options(await open())).purge()).rejects.toMatchObject({ code: 'PEPPER_MISMATCH' })
      // Also one that has asked before the pepper came is refused its marks.
      const { seen } = await open()
      const bounds = { name: 'orders', withinMs: 1_000, most: 10 }
      const limits = { deadline: deadlineAfter('1m') }
      const marking = seen.mark(bounds, [{ id: guess as never, agoMs: 0 }], limits)
      await expect(marking).rejects.toMatchObject({ code: 'PEPPER_MISMATCH' })
    }))

  it('has tables that the doctor knows', () =>
    inWorld(async ({ maker, raw }) => {
      const store = await maker()
      await store.migrate()
      const found = async () => (await store.doctor()).filter(({ code }) => /TABLES|MIGRATIONS|KEY/.test(code))
      expect(await found()).toEqual([])
      await raw('drop index reprise_seen_order')
      expect(await found()).toMatchObject([{ code: 'TABLES_INCOMPLETE' }])
      await raw('drop table reprise_window')
      const [finding] = await found()
      expect(finding?.what).toContain('reprise_window, reprise_seen_order')
    }))

  it('is refused where the tables are not there', () =>
    inWorld(async ({ open }) => {
      const window = dedupeWindow(options(await open(), { storeAway: 'pass' }))
      await expect(window.pass('a', () => expect.unreachable(), call)).rejects.toMatchObject({
        code: 'MIGRATION_MISSING',
      })
      expect(window.counts).toMatchObject({ accepted: 0, failed: 0 })
    }))
})
