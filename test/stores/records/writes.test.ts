// What the statements of each SQL store make of a record is what `draftedRecord` and `changedRecord` make of it: drawn
// sequences of writes, on the real engines.

import fc from 'fast-check'
import Libsql from 'libsql'
import { afterAll, beforeAll, describe, expect, inject } from 'vitest'
import {
  changedRecord,
  draftedRecord,
  type Expected,
  type RecordChange,
  type RecordDraft,
  type Records,
  type StoredRecord,
} from '../../../src/atomicity/index.js'
import type { StoredKey } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import type { SqliteHandle } from '../../../src/stores/sqlite/index.js'
import { property } from '../../property.js'
import { postgresWorld } from '../conformance/postgres-world.js'
import { sqliteWorld } from '../conformance/sqlite-world.js'
import type { OpenWorld } from '../conformance/store-under-test.js'

type Step =
  | { readonly kind: 'insert'; readonly draft: RecordDraft }
  | { readonly kind: 'change'; readonly change: RecordChange; readonly stale: keyof Expected | undefined }
  | { readonly kind: 'remove' }

/** An object with only those members that are there. */
const optional = <Shape extends object>(arbitraries: { [Name in keyof Shape]: fc.Arbitrary<Shape[Name]> }) =>
  fc.record(arbitraries, { requiredKeys: [] }) as fc.Arbitrary<Partial<Shape>>

// NUL cannot be stored in PostgreSQL; everything else can.
const text = fc.string({ unit: 'grapheme', maxLength: 12 }).map((drawn) => drawn.replaceAll('\0', '\\u0000'))
const cell = fc.option(text)
const ms = fc.integer({ min: 0, max: 1_000_000 })
const mode = fc.constantFrom('atomic' as const, 'leased' as const)

const draft: fc.Arbitrary<RecordDraft> = fc
  .tuple(mode, text, optional({ operation: text, scope: text, fingerprint: text, leaseMs: ms, input: text }))
  .map(([mode, token, more]) => ({ mode, token, ...more }) as RecordDraft)

const change: fc.Arbitrary<RecordChange> = fc
  .tuple(
    fc.constantFrom('claimed', 'succeeded', 'failed', 'unknown'),
    optional({
      mode,
      token: cell,
      fence: fc.constant('next'),
      claimed: fc.constantFrom(true, 'first'),
      dueInMs: fc.option(ms),
      remembered: fc.oneof(ms, fc.constant(Number.POSITIVE_INFINITY)),
      fingerprint: cell,
      codec: cell,
      value: cell,
      input: cell,
      because: cell,
    }),
  )
  .map(([state, more]) => ({ state, ...more }) as RecordChange)

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('insert' as const), draft }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('change' as const),
      change,
      stale: fc.constantFrom('version', 'token', 'fence', ...Array.from({ length: 3 }, () => undefined)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const) }) },
)

const engines = {
  'PostgreSQL (pg)': () => postgresWorld(inject('postgresUrl')),
  'SQLite (libsql)': () => sqliteWorld((file) => new Libsql(file) as unknown as SqliteHandle),
}

const limits = () => ({ deadline: deadlineAfter('20s') })

/** What no record of these tests has: each alone must keep a write out. */
const another = { version: { version: 1e6 }, token: { token: 'of another life' }, fence: { fence: 1e12 } }

/** What the pure functions say, where the store gives the time and, in turn, the fences. */
class Model {
  record: StoredRecord | undefined
  #last = 0

  /** Checks that a fence is a new one, and takes it over. */
  taken(fence: number | undefined): () => number {
    return () => {
      expect(fence).toBeGreaterThan(this.#last)
      this.#last = fence ?? 0
      return this.#last
    }
  }
}

async function run(records: Records, id: StoredKey, model: Model, step: Step): Promise<void> {
  const before = model.record
  if (step.kind === 'insert') {
    const { written, record, nowMs } = await records.insert(id, step.draft, limits())
    if (before === undefined) model.record = draftedRecord(step.draft, nowMs, model.taken(record?.fence))
    expect([written, record]).toEqual([before === undefined, model.record])
    return
  }
  const over = { version: before?.version ?? 1, token: before?.token, fence: before?.fence }
  const stale = step.kind === 'change' ? step.stale : undefined
  const write = step.kind === 'remove' ? null : step.change
  const { written, record, nowMs } = await records.swap(
    id,
    stale === undefined ? over : { ...over, ...another[stale] },
    write,
    limits(),
  )
  if (before !== undefined && stale === undefined) {
    model.record = write === null ? undefined : changedRecord(before, write, nowMs, model.taken(record?.fence))
  }
  expect([written, record]).toEqual([before !== undefined && stale === undefined, model.record])
}

describe.each(Object.entries(engines))('%s', (_name, open) => {
  let world: OpenWorld
  let count = 0
  beforeAll(async () => {
    world = await open()
  })
  afterAll(() => world.close())

  property(
    'writes what the pure functions say',
    [fc.array(step, { maxLength: 8 })],
    async (steps) => {
      const id = `case ${++count}` as StoredKey
      const model = new Model()
      for (const step of steps) await run(world.db.records, id, model, step)
      expect((await world.db.records.read(id, limits())).record).toEqual(model.record)
    },
    { cases: 400 },
  )
})
