import { describe, expect, it, vi } from 'vitest'
import { memoryBroker } from '../../brokers/memory/index.js'
import { type Key, scope } from '../../identity/index.js'
import { deadlineAfter } from '../../kernel/index.js'
import { consume, type Message } from '../../messaging/index.js'
import { transient } from '../../retry/index.js'
import { type MemoryDomain, memory } from '../../stores/memory/index.js'
import { ProofFailed, prove } from '../index.js'

function shop() {
  const db = memory({ name: 'shop' })
  db.table('payment', { unique: [['number']] })
  let number = 0
  const charge = (tx: Parameters<Parameters<MemoryDomain['transact']>[0]>[0], order: string) => {
    number += 1
    return tx.insertOnce('payment', { number, order }, ['number'])
  }
  const count = (order: string) => db.rows('payment').filter((row) => row['order'] === order).length
  return { db, charge, count }
}

const named = { scope: () => scope('shop'), key: (order: string) => order as Key, window: '24h' } as const

/** The report of a proof that must fail. */
async function failed(proof: Promise<unknown>): Promise<ProofFailed> {
  const error = await proof.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ProofFailed)
  return error as ProofFailed
}

describe('prove', () => {
  it('finds nothing in an operation, having met every fault that it armed', async () => {
    const { db, charge, count } = shop()
    const pay = db.operation('pay', { ...named, run: async (tx, order) => void (await charge(tx, order)) })
    const told: string[] = []
    const report = await prove(pay, {
      input: (id) => id,
      effects: count,
      seed: 1,
      onSchedule: ({ schedule }) => told.push(schedule),
    })
    expect(report.findings).toEqual([])
    const enumerated = report.lines.filter(({ schedule }) => !schedule.startsWith('round '))
    expect(enumerated.filter(({ met }) => !met)).toEqual([])
    expect(enumerated.map(({ schedule }) => schedule)).toEqual(
      expect.arrayContaining([
        'called again after its answer',
        '5 calls at once',
        'an error at transaction.before-commit',
        'an error at transaction.committed',
        'duplicates while it stands at operation.stored',
      ]),
    )
    expect(report.lines.every(({ effects, calls }) => effects === 1 && calls >= 2)).toBe(true)
    expect(told).toEqual(report.lines.map(({ schedule }) => schedule))
    expect(report.text.split('\n')[0]).toMatch(/^\d+ schedules, \d+ calls, \d+ effects, 0 findings, seed 1$/)
  })

  it('finds a check before the act', async () => {
    const { db, charge, count } = shop()
    const careless = async (order: string) => {
      if (count(order) === 0) await db.transact((tx) => charge(tx, order))
      return 'paid'
    }
    const { report } = await failed(prove(careless, { input: (id) => id, effects: count, rounds: 0 }))
    expect(report.findings[0]).toMatchObject({ schedule: '5 calls at once', kind: 'duplicate' })
  })

  it('finds a marker that commits after its effect, by the fault alone', async () => {
    const { db, charge, count } = shop()
    const marked = new Set<string>()
    const careless = async (order: string) => {
      if (!marked.has(order)) {
        await db.transact((tx) => charge(tx, order))
        await db.transact(() => marked.add(order))
      }
      return 'paid'
    }
    const options = { input: (id: string) => id, effects: count, rounds: 0 }
    const { report, message } = await failed(prove(careless, options))
    const one = report.findings.find(({ schedule }) => schedule === 'an error at transaction.begun, visit 2')
    expect(one?.kind).toBe('duplicate')
    expect(message).toContain(`only: ${JSON.stringify(report.findings[0]?.schedule)}`)
    const again = await failed(prove(careless, { ...options, only: 'an error at transaction.begun, visit 2' }))
    expect(again.report.lines).toHaveLength(1)
  })

  it('finds an answer without an effect', async () => {
    const { db, charge, count } = shop()
    const pay = db.operation('pay', { ...named, run: async (tx, order) => void (await charge(tx, order)) })
    const hasty = async (order: string) => {
      await pay(order).catch(() => undefined)
      return 'paid'
    }
    const { report } = await failed(
      prove(hasty, { input: (id) => id, effects: count, rounds: 0, only: 'an error at transaction.begun' }),
    )
    // The late duplicate makes up for it: what was told was not true when it was told.
    expect(report.findings.map(({ kind }) => kind)).toEqual(['lost'])
  })

  it('finds nothing in a consumer that owns its loop', async () => {
    const { db, charge, count } = shop()
    const broker = memoryBroker()
    const publisher = broker.publisher('orders')
    const receipts = () =>
      consume(db, {
        name: 'receipts',
        from: broker.source('orders'),
        handle: async (tx, { id }) => void (await charge(tx, id)),
        classify: () => transient('a fault', 'no'),
      })
    const message = (id: string): Message => ({
      source: '/shop',
      id,
      type: 'order.placed',
      subject: undefined,
      key: id,
      place: undefined,
      version: undefined,
      atMs: 0,
      intent: undefined,
      traceparent: undefined,
      schema: undefined,
      data: { id },
    })
    // Each call is a process: it delivers, its consumer works until the effect is there, and ends. What it has not
    // answered by then goes back.
    const deliver = async (one: Message) => {
      await publisher.publish([one], { deadline: deadlineAfter('5s') })
      const end = new AbortController()
      const running = receipts().run({ signal: end.signal })
      await vi.waitUntil(() => count(one.id) > 0, { interval: 2, timeout: 1_000 }).finally(() => end.abort())
      await running
      return 'handled'
    }
    const report = await prove(deliver, { input: message, effects: ({ id }) => count(id), rounds: 3 })
    const met = report.lines.filter(({ met }) => met).map(({ schedule }) => schedule)
    expect(met).toEqual(expect.arrayContaining(['an error at consumer.handled', 'an error at consumer.committed']))
  })

  it('says where no fault could be tried: in the report, its text, and as a warning', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    try {
      const seen = new Set<string>()
      const byHand = async (order: string) => void seen.add(order)
      const report = await prove(byHand, { input: (id) => id, effects: (order) => Number(seen.has(order)), seed: 1 })
      const what = 'A call passes no fault point in this process: only duplicates were made.'
      expect(report.untried).toEqual([what])
      expect(report.text.split('\n')[1]).toBe(`Not tried: ${what}`)
      expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringContaining(what), {
        type: 'RepriseWarning',
        code: 'PROOF_UNTRIED',
      })
      warned.mockClear()
      const { db, charge, count } = shop()
      const pay = db.operation('pay', { ...named, run: async (tx, order) => void (await charge(tx, order)) })
      expect((await prove(pay, { input: (id) => id, effects: count, rounds: 0 })).untried).toEqual([])
      expect(warned).not.toHaveBeenCalled()
    } finally {
      warned.mockRestore()
    }
  })

  it('prints all that a round is drawn by, so that it can be run again as printed', async () => {
    const { db, charge, count } = shop()
    const pay = db.operation('pay', { ...named, run: async (tx, order) => void (await charge(tx, order)) })
    // Wrong where an intent is called very often, which some of the random rounds do.
    const calls = new Map<string, number>()
    const careless = async (order: string) => {
      const nth = (calls.get(order) ?? 0) + 1
      calls.set(order, nth)
      if (nth === 15) await db.transact((tx) => charge(tx, order))
      await pay(order)
      return 'paid'
    }
    const options = { input: (id: string) => id, effects: count, seed: 4, rounds: 60, duplicates: 29 }
    const { report, message } = await failed(prove(careless, options))
    expect(report).toMatchObject({ seed: 4, rounds: 60, duplicates: 29 })
    expect(message).toContain('prove(…, { seed: 4, rounds: 60, duplicates: 29, only: ')
    // Beyond the rounds and the calls that are the default.
    const late = report.findings.findLast(({ schedule }) => /^round [3-6]\d$/.test(schedule))
    const again = await failed(prove(careless, { ...options, only: late?.schedule ?? '' }))
    expect(again.report.findings).toMatchObject([{ schedule: late?.schedule, kind: 'duplicate' }])
  })

  it('says what a call without faults failed by, and what cannot be used', async () => {
    const { count } = shop()
    const options = { input: (id: string) => id, effects: count }
    const broken = () => Promise.reject(new Error('no table payment'))
    await expect(prove(broken, options)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      message: expect.stringContaining('no table payment'),
    })
    const wrong: readonly [object, string][] = [
      [{ efects: 1 }, 'Did you mean effects?'],
      [{ input: 1 }, 'input'],
      [{ effects: undefined }, 'effects'],
      [{ duplicates: 1 }, 'duplicates'],
      [{ rounds: 1.5 }, 'rounds'],
      [{ postgres: 'localhost' }, 'postgres'],
      [{ only: 'no such' }, 'called again after its answer'],
      [{ effects: () => Number.NaN }, 'effects'],
    ]
    for (const [option, says] of wrong) {
      await expect(
        prove(async () => 'paid', { ...options, ...option }),
        says,
      ).rejects.toMatchObject({
        code: 'ARGUMENT_INVALID',
        message: expect.stringContaining(says),
      })
    }
    await expect(prove(1 as never, options)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })
})
