// What every store must do with the outcome of an atomic operation: what is stored is handed out again as it was, and
// what is not stored leaves nothing behind.

import { inspectionOf } from '../../../atomicity/index.js'
import { encrypted, fail, OperationFailedError, operationId } from '../../../idempotency/index.js'
import { isRepriseError } from '../../../kernel/index.js'
import type { ConformanceCase } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { leasedRecord, limits } from '../record-world.js'
import {
  chargeId,
  charging,
  endWindow,
  identity,
  type Order,
  order,
  paying,
  storeNowMs,
  tests,
  until,
  which,
} from './operation-world.js'

const failureIn = (error: unknown): unknown =>
  error instanceof OperationFailedError ? [error.failure.code, error.failure.data, error.replayed] : error

/** Cases of the group `store.operation.replay`. */
export const replayCases: readonly ConformanceCase[] = [
  {
    id: 'store.operation.replay.01',
    title: 'MUST store a failure that was returned together with what was written, and replay its code and data',
    async run({ db, effect, effectsOf }) {
      const pay = db.operation('pay', {
        ...identity,
        failures: ['declined'],
        run: async (tx, { amount }: Order) => {
          await effect(tx, 'declined')
          return fail('declined', { amount, note: 'ü\u{1f600}' })
        },
      })
      const answers = [await failing(pay(order('a'))), await failing(pay(order('a')))].map(failureIn)
      const data = { amount: 5, note: 'ü\u{1f600}' }
      same(
        [answers, await effectsOf('declined')],
        [
          [
            ['declined', data, false],
            ['declined', data, true],
          ],
          1,
        ],
        'failures and effects',
      )
    },
  },
  {
    id: 'store.operation.replay.02',
    title: 'MUST undo what was written before a final failure was thrown, and store the failure all the same',
    async run({ db, effect, effectsOf }) {
      let runs = 0
      const thrown = new Error('no such account')
      const pay = db.operation('pay', {
        ...identity,
        failures: ['no-account'],
        terminal: (error) => (error === thrown ? fail('no-account', { again: false }) : undefined),
        run: async (tx, _: Order) => {
          await effect(tx, 'a')
          runs += 1
          throw thrown
        },
      })
      const answers = [await failing(pay(order('a'))), await failing(pay(order('a')))].map(failureIn)
      const data = { again: false }
      same(
        answers,
        [
          ['no-account', data, false],
          ['no-account', data, true],
        ],
        'failures',
      )
      same([runs, await effectsOf('a')], [1, 0], 'runs and effects')
    },
  },
  {
    id: 'store.operation.replay.03',
    title: 'MUST roll back what is not stored, and leave the key free',
    async run(world) {
      const own = new Error('of the body')
      let first = true
      const { pays } = await paying(world, {}, async () => {
        if (first) {
          first = false
          throw own
        }
      })
      holds((await failing(pays[0](order('a')))) === own, 'the body’s own error')
      same([await world.effectsOf('a'), (await world.db.lookup(which('pay', order('a')))).state], [0, 'absent'], 'rest')
      same([await pays[1](order('a')), await world.effectsOf('a')], [{ run: 1 }, 1], 'the next call')
    },
  },
  {
    id: 'store.operation.replay.04',
    title: 'MUST give every caller the same value, text by text, the first one included',
    async run(world) {
      const { db } = world
      const value = { b: ['ü\u{1f600}\u2028', null, -0.5, 1e21], a: { 'it’s "\\': "'" }, n: '' }
      const pay = db.operation('pay', { ...identity, run: async (_tx, _order: Order) => value })
      const nothing = db.operation('nothing', { ...identity, run: async (_tx, _order: Order) => undefined })
      const texts = [await pay(order('a')), await pay(order('a')), await pay(order('a'))].map((one) =>
        JSON.stringify(one),
      )
      const { record } = await db.records.read(operationId('pay', tests, order('a').key, db.records.pepper), limits())
      same([...new Set([...texts, record?.value])], [record?.value], 'values and what is stored')
      same(
        [await nothing(order('a')), await nothing(order('a'))],
        [undefined, undefined],
        'a body that returns nothing',
      )
    },
  },
  {
    id: 'store.operation.replay.05',
    title: 'MUST carry a key out anew when its window is over by the store’s clock, which a replay does not move',
    async run(world) {
      const { pays, runs } = await paying(world, {})
      const known = async () => {
        const found = await world.db.lookup(which(pays[0], order('a')))
        return found.state === 'absent' ? undefined : found
      }
      await pays[0](order('a'))
      const before = await known()
      await pays[1](order('a'))
      const after = await known()
      same([runs(), after?.expiresAtMs], [1, before?.expiresAtMs], 'runs, and the end of the window after a replay')
      await endWindow(world, operationId('pay', tests, order('a').key, world.db.records.pepper))
      await until('the window is over', async () => (await known())?.forgotten === true)
      const again = await pays[1].outcome(order('a', 6))
      same([again.replayed, (await known())?.claims], [false, 1], 'other content after the window: replayed, claims')
      same(await world.effectsOf('a'), runs(), 'effects, as many as runs')
    },
  },
  {
    id: 'store.operation.replay.06',
    title: 'MUST leave a tombstone in place of an outcome that is too large, and never run it again',
    async run({ db, second }) {
      let runs = 0
      const define = (domain: typeof db) =>
        domain.operation('pay', {
          ...identity,
          largestOutcome: 64,
          run: async (_tx, _order: Order) => `${++runs}`.padEnd(100, 'x'),
        })
      const pay = define(db)
      same((await pay(order('a'))).length, 100, 'what the first caller gets')
      await failing(pay(order('a')), 'OUTCOME_TOO_LARGE')
      const other = await second()
      if (other !== db) await failing(define(other)(order('a')), 'OUTCOME_TOO_LARGE')
      same(runs, 1, 'runs')
    },
  },
  {
    id: 'store.operation.replay.07',
    title: 'MUST store outcomes by the operation’s codec, bound to their record where it encrypts',
    async run({ db, putRecord }) {
      let runs = 0
      const codec = encrypted<string>({ keys: { k1: new Uint8Array(32).fill(7) }, current: 'k1' })
      const pay = db.operation('pay', { ...identity, codec, run: async (_tx, _order: Order) => `secret ${++runs}` })
      const [first, again] = [await pay(order('a')), await pay(order('a'))]
      const { record } = await db.records.read(operationId('pay', tests, order('a').key, db.records.pepper), limits())
      holds(record?.value?.includes('secret') === false, 'a stored text that does not show the value')
      same([first, again, record?.codec], ['secret 1', 'secret 1', codec.name], 'first, repeat, codec')
      if (record === undefined) return
      await putRecord(operationId('pay', tests, order('b').key, db.records.pepper), {
        ...record,
        fingerprint: undefined,
      })
      await failing(pay(order('b')), 'OUTCOME_UNREADABLE')
      same(runs, 1, 'runs')
    },
  },
  {
    id: 'store.operation.replay.08',
    title: 'MUST refuse a record of a newer format, and neither run the operation nor change the record',
    async run(world) {
      const { db, putRecord } = world
      const nowMs = await storeNowMs(world)
      let runs = 0
      const run = async (): Promise<number> => ++runs
      const pay = db.operation('pay', { ...identity, run: (_tx, _order: Order) => run() })
      const charge = charging(db, { run, recover: { rule: { kind: 'rerun', windowMs: 1e9 } } })
      const ids = [operationId('pay', tests, order('a').key, db.records.pepper), chargeId(order('a'), db)]
      for (const id of ids) await putRecord(id, leasedRecord(nowMs, 100_000, { format: 99, expiresAtMs: nowMs - 1 }))
      const before = await inspectionOf(db.records).list({ limit: 10 }, limits())
      for (const call of [() => pay(order('a')), () => charge(order('a'))]) {
        const error = await failing(call(), 'RECORD_FORMAT_NEWER')
        same(isRepriseError(error) ? error.details['format'] : 0, 99, 'the format that is named')
      }
      await db.sweep([charge])
      await db.records.purge({ limit: 10, unknownAfterMs: 0, markersAfterMs: 0 }, limits())
      same([runs, await inspectionOf(db.records).list({ limit: 10 }, limits())], [0, before], 'runs, and what is there')
    },
  },
]
