// A database of the first release is brought up to date: its keys are remembered, and both releases can work on it side
// by side.

import { describe, expect, it } from 'vitest'
import { inspectionOf } from '../../../src/atomicity/index.js'
import { type Key, type StoredKey, storedKey } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { newestMigration } from '../newest-migration.js'
import { engines, fixtureOf, type Opened, withFixture } from './fixtures.js'

const { scope, records } = fixtureOf(1)
const markers = records.map(({ key, id, outcome }) => ({
  key: { scope, key },
  id: id as string as StoredKey,
  value: 'succeeded' in outcome ? outcome.succeeded : undefined,
}))

const limits = () => ({ deadline: deadlineAfter('20s') })
const never = (): never => expect.unreachable('the body of a repeat ran')

describe.each(engines)('a database of the first release, on %s', (engine) => {
  const open = (work: (db: Opened['db'], raw: Opened['raw']) => Promise<void>): Promise<void> =>
    withFixture(engine, 1, ({ db, raw }) => work(db, raw))

  it('is missed by name until it is migrated', () =>
    open(async (db) => {
      const key = { scope, key: 'order-3' as Key }
      let bodies = 0
      await expect(db.transact(() => ++bodies, { content: 'none', key })).rejects.toMatchObject({
        code: 'MIGRATION_MISSING',
      })
      const { records } = db
      const due = { operations: ['a'], limit: 1, marginMs: 0, baseMs: 1, capMs: 1 }
      for (const call of [
        () => records.read('x' as StoredKey, limits()),
        () => inspectionOf(records).notes('x' as StoredKey, limits()),
        () => inspectionOf(records).list({ limit: 1, state: 'unknown' }, limits()),
        () => records.due(due, limits()),
        () => records.purge({ limit: 1 }, limits()),
      ]) {
        await expect(call()).rejects.toMatchObject({ code: 'MIGRATION_MISSING' })
      }
      expect(await db.migrate()).toEqual({ from: 1, to: newestMigration[engine] })
      expect(await db.transact(() => ++bodies, { content: 'none', key })).toBe(1)
    }))

  it('keeps its keys: a repeat gets what was stored, and the record says where it is from', () =>
    open(async (db) => {
      await db.migrate()
      for (const [place, { key, id, value }] of markers.entries()) {
        expect(storedKey(key.scope, key.key)).toBe(id)
        expect(await db.transact<unknown>(never, { content: 'none', key })).toEqual(value)
        const atMs = 1_750_000_000_000 + place
        expect((await db.records.read(id, limits())).record).toEqual({
          format: 1,
          version: 1,
          mode: 'atomic',
          state: 'succeeded',
          firstClaimedAtMs: atMs,
          claimedAtMs: atMs,
          claims: 1,
          looks: 0,
          value: JSON.stringify(value),
        })
      }
      expect(await db.records.purge({ limit: 10 }, limits())).toMatchObject({ finished: 0, markers: 0 })
    }))

  it('can be written to by the first release still', () =>
    open(async (db, raw) => {
      await db.migrate()
      const key = { scope, key: 'order-4' as Key }
      const id = storedKey(key.scope, key.key)
      await raw(`INSERT INTO reprise_marker (id, claimed_at_ms) VALUES ('${id}', 5)`)
      await raw(`UPDATE reprise_marker SET value = '"old"' WHERE id = '${id}'`)
      expect(await db.transact<unknown>(never, { content: 'none', key })).toBe('old')
      const changed = await db.records.swap(
        id,
        { version: 1, token: undefined, fence: undefined },
        { state: 'claimed', claimed: true, token: 'x' },
        limits(),
      )
      expect(changed.record).toMatchObject({ format: 2, version: 2, firstClaimedAtMs: 5, claims: 2 })
    }))
})
