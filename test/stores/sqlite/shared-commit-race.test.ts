// Many writers at once, drawn at random: quick and slow ones, ones that fail, give up or roll everything back, repeats
// of the same keys, and COMMITs that fail or whose outcome nobody knows. What each was told is what the file holds.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseKey, scope } from '../../../src/identity/index.js'
import { armFaultPoints, eventLoopTurn, seededRandom, systemClock } from '../../../src/kernel/index.js'
import type { TransactionSharedEvent } from '../../../src/telemetry/index.js'
import { freshFile, itemStore, rowsIn } from './files.js'

const seed = Number(process.env['REPRISE_SEED'] ?? 1)
const workers = 24
const callsEach = 25
const kinds = [
  'quick',
  'quick',
  'quick',
  'quick',
  'repeat',
  'repeat',
  'throws',
  'slow',
  'gives-up',
  'rolls-back',
] as const

// On a busy machine the milliseconds that a shared COMMIT stays open would be over early; with this clock they never
// are. Nor is the wait for a turn.
const clock = { ...systemClock, monotonicMs: () => 1_000 }
const patient = { deadline: '200s', connectionWait: '150s', bodyLimit: '100s', lockWait: '60s' } as const

let shared: TransactionSharedEvent[] = []
const onShared = (event: unknown) => shared.push(event as TransactionSharedEvent)
let disarm: (() => void) | undefined
beforeEach(() => {
  shared = []
  subscribe('reprise.transaction.shared', onShared)
})
afterEach(() => {
  unsubscribe('reprise.transaction.shared', onShared)
  disarm?.()
})

it(`tells everybody what is there, with the seed ${seed}`, async () => {
  const random = seededRandom(seed)
  const draw = <Value>(values: readonly Value[]): Value => values[Math.floor(random.next() * values.length)] as Value
  const file = freshFile()
  const db = await itemStore(file, { clock, ...patient })
  await db.transact((tx) => tx.query("INSERT INTO item (id, note) VALUES (1, 'there')"))
  // What rolls everything back does not share again, so there are several of it.
  const operations = new Map(
    [...new Set(kinds), ...['rolls-back-1', 'rolls-back-2', 'rolls-back-3']].map((kind) => [
      kind,
      db.operation(kind, {
        scope: () => scope('race'),
        key: ({ note }: { note: string }) => parseKey(note),
        window: '1h',
        run: async (tx, { note }) => {
          await tx.query('INSERT INTO item (note) VALUES (?)', [note])
          if (kind === 'slow') await new Promise((resolve) => setTimeout(resolve, 1))
          if (kind.startsWith('rolls')) await tx.query("INSERT OR ROLLBACK INTO item (id, note) VALUES (1, 'b')")
          if (kind === 'throws') throw new Error('thrown')
          return note
        },
      }),
    ]),
  )
  const codes = ['SQLITE_FULL', 'SQLITE_IOERR_FSYNC']
  disarm = armFaultPoints((point) => {
    if (point === 'sqlite.sharing' && random.next() < 0.2) {
      throw Object.assign(new Error('on purpose'), { code: draw(codes) })
    }
  })
  const told = new Map<string, { readonly kind: string; readonly heard: Set<string> }>()
  const worker = async (number: number): Promise<void> => {
    for (let call = 0; call < callsEach; call += 1) {
      const drawn = draw(kinds)
      const notes = [...told.keys()]
      const note = drawn === 'repeat' && notes.length > 0 ? draw(notes) : `note-${number}-${call}`
      const kind =
        told.get(note)?.kind ??
        (drawn === 'rolls-back' ? draw(['rolls-back', 'rolls-back-1', 'rolls-back-2', 'rolls-back-3']) : drawn)
      const { heard } = told.get(note) ?? { heard: new Set<string>() }
      told.set(note, { kind, heard })
      const controller = new AbortController()
      if (kind === 'gives-up') void eventLoopTurn().then(() => controller.abort(new Error('enough')))
      const write = operations.get(kind)
      await write?.({ note }, { signal: controller.signal }).then(
        (value) => heard.add(value === note ? 'done' : `another’s result: ${value}`),
        (error: { message: string; code?: string }) => heard.add(error.code ?? error.message),
      )
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, number) => worker(number)))
  const counts = new Map(rowsIn(file, 'SELECT note, count(*) FROM item GROUP BY note') as [string, number][])
  for (const [note, { heard }] of told) {
    const certain = !heard.has('UNKNOWN_OUTCOME')
    // Who gives up before the repeat is told why there was to be one: nothing of it happened.
    if (told.get(note)?.kind === 'gives-up') for (const why of ['SHARED_COMMIT_UNDONE', ...codes]) heard.delete(why)
    const expected = heard.has('done') ? 1 : 0
    if (certain || expected === 1) expect([note, counts.get(note) ?? 0, ...heard]).toEqual([note, expected, ...heard])
  }
  const heard = new Set([...told.values()].flatMap((each) => [...each.heard]))
  for (const word of heard)
    expect(['done', 'thrown', 'enough', 'SQLITE_CONSTRAINT_PRIMARYKEY', 'UNKNOWN_OUTCOME']).toContain(word)
  // It was a race, and what was to go wrong went wrong.
  expect(Math.max(...shared.map(({ members }) => members))).toBeGreaterThan(4)
  expect(new Set(shared.map(({ outcome }) => outcome))).toEqual(new Set(['committed', 'undone', 'unknown']))
  expect([...heard]).toEqual(expect.arrayContaining(['done', 'thrown', 'SQLITE_CONSTRAINT_PRIMARYKEY']))
})
