// What every store must do for the upkeep of operations: sweeps that share the work, purges that forget nothing too
// early, decisions of a person that are kept with their reason.

import { inspectionOf } from '../../../atomicity/index.js'
import {
  didNotHappen,
  fail,
  failedFinally,
  happened,
  hold,
  type Operation,
  operationId,
  type ResolveCall,
  rerunKeyed,
  resolve,
  stillUnknown,
} from '../../../idempotency/index.js'
import { isRepriseError } from '../../../kernel/index.js'
import type { ConformanceCase, RecordCase, RecordWorld } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { gate } from '../gate.js'
import { race } from '../race.js'
import { leasedRecord, limits, noted } from '../record-world.js'
import {
  abandoned,
  chargeId,
  charging,
  endWindow,
  identity,
  type Order,
  onEach,
  order,
  paying,
  storeNowMs,
  tests,
  until,
  which,
} from './operation-world.js'

const reasons = (notes: readonly { action: string; actor: string; reason: string; from: string; to: string }[]) =>
  notes.map(({ action, actor, reason, from, to }) => [action, actor, reason, from, to])
const by = { reason: 'it’s in the bank’s list', actor: 'ops' } as const

/** A charge whose outcome is unknown. */
async function unknownCharge(world: RecordWorld, one: Order) {
  const charge = charging(world.db, { recover: hold(), run: async () => 'run anew' })
  await abandoned(world, one, -1)
  await failing(charge(one), 'OPERATION_UNKNOWN')
  return charge
}

/** What is stored of some charges. */
async function storedCharges({ db }: RecordWorld, names: readonly string[]) {
  return Promise.all(names.map(async (name) => (await db.records.read(chargeId(order(name), db), limits())).record))
}

/** Cases of the groups `store.operation.sweep`, `.purge` and `.settle`. */
export const sweepCases: readonly RecordCase[] = [
  {
    id: 'store.operation.sweep.01',
    title: 'MUST run again, with the input that was kept, what its receiver still knows by its key',
    async run(world) {
      const inputs: unknown[] = []
      const charge = charging(world.db, {
        recover: rerunKeyed('24h'),
        keepInput: true,
        run: async (_, input) => {
          inputs.push(input)
          return 'swept'
        },
      })
      await abandoned(world, order('a'), -1)
      const { taken, succeeded } = await world.db.sweep([charge])
      same([taken, succeeded, inputs], [1, 1, [order('a')]], 'taken, succeeded, inputs')
      const known = await world.db.lookup(which(charge, order('a')))
      same(
        reasons(known.notes),
        noted(world, [['swept', 'sweep', 'run again: it succeeded', 'claimed', 'succeeded']]),
        'notes',
      )
      same(await charge.outcome(order('a')), { outcome: 'succeeded', value: 'swept', replayed: true }, 'a repeat')
    },
  },
  {
    id: 'store.operation.sweep.02',
    title: 'MUST do what was found out about each record, and write each decision down',
    async run(world) {
      const charge = charging(world.db, {
        recover: resolve(({ input }: ResolveCall<Order>) => {
          if (input?.key === 'throws') throw new Error('not now')
          if (input?.key === 'did') return happened(1)
          return input?.key === 'failed' ? failedFinally(fail('declined')) : didNotHappen()
        }),
        run: async () => 'run anew',
      })
      const names = ['did', 'failed', 'not', 'throws']
      for (const name of names) await abandoned(world, order(name), -1)
      const { taken, succeeded, failed, released, unknown } = await world.db.sweep([charge])
      same([taken, succeeded, failed, released, unknown], [4, 1, 1, 1, 1], 'counts')
      const found = await Promise.all(names.map((name) => world.db.lookup(which(charge, order(name)))))
      same(
        found.map(({ state }) => state),
        ['succeeded', 'failed', 'absent', 'unknown'],
        'states',
      )
      same(
        found.flatMap(({ notes }) => notes.map(({ to }) => to)),
        noted(world, ['succeeded', 'failed', 'absent', 'unknown']),
        'one note of each decision',
      )
      same(await charge(order('not')), 'run anew', 'what did not happen')
    },
  },
  {
    id: 'store.operation.sweep.03',
    title: 'MUST look less and less often at what stays unknown, and leave to a person what nobody can be asked about',
    async run(world) {
      const asks = charging(world.db, { recover: resolve(() => stillUnknown()), run: async () => 1 })
      await abandoned(world, order('a'), -1)
      for (const [pass, mostMs] of [40, 80, 160].entries()) {
        const beforeMs = await storeNowMs(world)
        await world.db.sweep([asks], { baseDelay: 40, capDelay: 1_000 })
        const { record, nowMs } = await world.db.records.read(chargeId(order('a'), world.db), limits())
        const dueAtMs = record?.dueAtMs ?? 0
        // Counted from an instant between the two reads, however far a busy machine pulls them apart.
        const waits = `a wait of ${dueAtMs - nowMs} to ${dueAtMs - beforeMs} ms, by at most ${mostMs}`
        holds(dueAtMs - nowMs <= mostMs && dueAtMs - beforeMs > mostMs / 2, `waits that double: ${waits}`)
        same(record?.looks, pass + 1, 'looks')
        await until('it is due again', async () => (await storeNowMs(world)) >= dueAtMs)
      }
    },
  },
  {
    id: 'store.operation.sweep.04',
    title: 'MUST share the work between several sweeps at once: each record is taken by one of them',
    async run(world) {
      const runs = new Map<string, number>()
      const names = Array.from({ length: 20 }, (_, number) => `order-${number}`)
      for (const name of names) await abandoned(world, order(name), -1)
      const domains = [world.db, await world.second()]
      const charges = onEach(domains, (domain) =>
        charging(domain, {
          recover: rerunKeyed('24h'),
          run: async (_, { key }) => {
            runs.set(key, (runs.get(key) ?? 0) + 1)
            return key
          },
        }),
      )
      const { results } = await race(4, ({ number, call }) =>
        call(() => (domains[number % 2] ?? world.db).sweep(charges.slice(number % 2, (number % 2) + 1), { batch: 3 })),
      )
      const sum = (pick: (counts: (typeof results)[number]) => number): number =>
        results.reduce((all, one) => all + pick(one), 0)
      same([sum(({ taken }) => taken), sum(({ succeeded }) => succeeded)], [20, 20], 'taken and succeeded')
      same([runs.size, Math.max(...runs.values())], [20, 1], 'orders, and most runs of one')
    },
  },
  {
    id: 'store.operation.sweep.05',
    title: 'MUST leave alone what is being worked on, what belongs to others, and what a person is to settle',
    async run(world) {
      const { db, putRecord } = world
      const charge = charging(db, { recover: hold(), run: async () => 1 })
      const nowMs = await storeNowMs(world)
      await abandoned(world, order('alive'), 60_000)
      await abandoned(world, order('other'), -1, { operation: 'refund' })
      await abandoned(world, order('held'), -1, { state: 'unknown', dueAtMs: undefined, because: 'held' })
      await putRecord(chargeId(order('newer'), db), leasedRecord(nowMs, 100_000, { format: 99 }))
      const stored = async () => storedCharges(world, ['alive', 'other', 'held', 'newer'])
      const before = await stored()
      same((await db.sweep([charge])).taken, 0, 'what was taken')
      same(await stored(), before, 'what is there')
    },
  },
]

const finishedPurgeCase: ConformanceCase = {
  id: 'store.operation.purge.01',
  title: 'MUST forget finished ones past their window, in batches, and nothing else',
  async run(world) {
    const { db } = world
    const { pays } = await paying(world, {})
    const keep = db.operation('keep', { ...identity, run: async (_tx, _order: Order) => 'kept' })
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await pays[0](order(name))
      await endWindow(world, operationId('pay', tests, order(name).key, db.records.pepper))
    }
    await keep(order('a'))
    await abandoned(world, order('claimed'), -1)
    await unknownCharge(world, order('unknown'))
    const endMs = await storeNowMs(world)
    await until('all windows are over', async () => (await storeNowMs(world)) > endMs + 1)
    const progress: number[] = []
    const purged = await db.purge({ batch: 2, pause: 0, onProgress: ({ finished }) => progress.push(finished) })
    same(
      [purged, progress],
      [{ finished: 5, unknown: 0, audit: 0, markers: 0, unconfirmed: 0, interrupted: false }, [2, 4, 5]],
      'what was forgotten',
    )
    const left = await inspectionOf(db.records).list({ limit: 10 }, limits())
    same(left.map(({ record }) => record.state).sort(), ['claimed', 'succeeded', 'unknown'], 'what is left')
    same([await pays[0](order('a')), await keep(order('a'))], [{ run: 6 }, 'kept'], 'a repeat of each')
  },
}

const unknownPurgeCase: RecordCase = {
  id: 'store.operation.purge.02',
  title: 'MUST forget an unknown outcome only when told to, and leave a note of it',
  async run(world) {
    const charge = await unknownCharge(world, order('a'))
    same((await world.db.purge({ unknownAfter: '1h' })).unknown, 0, 'one that is not old enough')
    same((await world.db.purge({ unknownAfter: 0 })).unknown, 1, 'one that is')
    const known = await world.db.lookup(which(charge, order('a')))
    same(
      [known.state, reasons(known.notes).map(([action, , , from, to]) => [action, from, to])],
      ['absent', noted(world, [['dropped', 'unknown', 'absent']])],
      'state and notes',
    )
  },
}

/** Cases of the group `store.operation.purge`. */
export const purgeCases: readonly ConformanceCase[] = [finishedPurgeCase, unknownPurgeCase]

/** Cases of the group `store.operation.settle`. */
export const settleCases: readonly RecordCase[] = [
  {
    id: 'store.operation.settle.01',
    title: 'MUST store what a person decides, with the reason in the same commit, and replay it',
    async run(world) {
      const { db } = world
      const charge = await unknownCharge(world, order('a'))
      await db.settle(which(charge, order('a')), happened({ receipt: 'by hand' }), by)
      const known = await db.lookup(which(charge, order('a')))
      if (known.state === 'absent') return holds(false, 'a record that is there')
      same(
        [known.state, known.because, known.outcome, reasons(known.notes)],
        [
          'succeeded',
          'settled',
          { outcome: 'succeeded', value: { receipt: 'by hand' }, replayed: true },
          noted(world, [['settled', 'ops', by.reason, 'unknown', 'succeeded']]),
        ],
        'what is known',
      )
      same(await charge(order('a')), { receipt: 'by hand' }, 'a repeat')
    },
  },
  {
    id: 'store.operation.settle.02',
    title: 'MUST store a final failure, or free the key, as a person decides',
    async run(world) {
      const { db } = world
      const charge = await unknownCharge(world, order('failed'))
      await abandoned(world, order('free'), -1)
      await db.settle(which(charge, order('failed')), failedFinally(fail('declined')), by)
      await db.settle(which(charge, order('free')), didNotHappen(), by)
      await failing(charge(order('failed')), 'OPERATION_FAILED')
      const known = await db.lookup(which(charge, order('free')))
      same(
        [known.state, reasons(known.notes)],
        ['absent', noted(world, [['settled', 'ops', by.reason, 'claimed', 'absent']])],
        'free',
      )
      same(await charge(order('free')), 'run anew', 'a call of the key that is free')
    },
  },
  {
    id: 'store.operation.settle.03',
    title: 'MUST refuse to settle what is absent, finished, being worked on, or of a newer format',
    async run(world) {
      const { db, putRecord } = world
      const inside = gate(2)
      const charge = charging(db, {
        recover: hold(),
        run: async (_, { key }) => {
          if (key === 'alive') await inside.arrive()
          return 1
        },
      })
      await charge(order('finished'))
      const alive = charge(order('alive'))
      await inside.waiting(1)
      await putRecord(chargeId(order('newer'), db), leasedRecord(await storeNowMs(world), 100_000, { format: 99 }))
      const names = ['absent', 'finished', 'alive', 'newer']
      const before = await storedCharges(world, names)
      const why: unknown[] = []
      for (const name of names) {
        const error = await failing(db.settle(which(charge, order(name)), happened(2), by), 'SETTLE_REFUSED')
        why.push(isRepriseError(error) ? error.details['because'] : error)
      }
      same(why, ['absent', 'finished', 'in-flight', 'format'], 'why')
      same(await storedCharges(world, names), before, 'what is there')
      await inside.arrive()
      same(await alive, 1, 'the one that was at work')
    },
  },
  {
    id: 'store.operation.settle.04',
    title: 'MUST let one of several decisions at once count, and keep its note alone',
    async run(world) {
      const charge: Operation<Order, unknown> = await unknownCharge(world, order('a'))
      const domains = [world.db, await world.second()]
      const { results } = await race(4, ({ number, call }) =>
        call(async () => {
          const settling = (domains[number % 2] ?? world.db).settle(which('charge', order('a')), happened(number), {
            ...by,
            actor: `person ${number}`,
          })
          return settling.then(
            () => number,
            () => undefined,
          )
        }),
      )
      const winners = results.filter((number) => number !== undefined)
      const { notes } = await world.db.lookup(which(charge, order('a')))
      same(
        [winners.length, notes.map(({ actor }) => actor)],
        [1, noted(world, [`person ${winners[0]}`])],
        'winners and notes',
      )
      same(await charge(order('a')), winners[0], 'the outcome')
    },
  },
]

/** The cases of this file for which records are enough, without transactions. */
export const leasedUpkeepCases: readonly RecordCase[] = [...sweepCases, unknownPurgeCase, ...settleCases]
