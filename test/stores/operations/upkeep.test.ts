// The upkeep that services do by themselves, in several processes on one store: what is over is forgotten once, by one
// of them, and by another where that one is killed in its turn.

import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { happened, leased, operationId, resolve } from '../../../src/idempotency/index.js'
import { mintKey, scope } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import type { UpkeepReport } from '../../../src/messaging/index.js'
import { bundleInto } from '../../bundle.js'
import { engines, identity, type LedgerWorld } from './worlds.js'

const script = fileURLToPath(new URL('./processes/keeps.mjs', import.meta.url))
const bundle = fileURLToPath(new URL(`../../../.cache/upkeep-processes-${process.pid}`, import.meta.url))
const children = new Set<ChildProcess>()
const source = (path: string): string => fileURLToPath(new URL(`../../../src/${path}/index.ts`, import.meta.url))

beforeAll(() => bundleInto(bundle, { postgres: source('stores/postgres'), sqlite: source('stores/sqlite') }))
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(bundle, { recursive: true, force: true })
})

const limits = () => ({ deadline: deadlineAfter('60s') })
const old = 300

/** Records whose window is over at once. */
async function forgottenRecords({ db }: LedgerWorld, count = old): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const id = operationId('pay', scope('old'), mintKey())
    const { record } = await db.records.insert(id, { mode: 'atomic', operation: 'pay', token: 't' }, limits())
    if (record === undefined) throw new Error('not inserted')
    await db.records.swap(id, record, { state: 'succeeded', remembered: 1 }, limits())
  }
}

/** Forgets whose turn it was, so that whoever comes next may begin at once. */
async function endTurn({ db }: LedgerWorld): Promise<void> {
  const turns = await db.records.inspection?.list({ operation: 'reprise.upkeep', limit: 10 }, limits())
  for (const { id, record } of turns ?? []) await db.records.swap(id, record, null, limits())
}

async function left({ db }: LedgerWorld): Promise<number> {
  const found = await db.records.inspection?.list({ operation: 'pay', limit: 1_000 }, limits())
  return found?.length ?? Number.NaN
}

interface Line {
  readonly part?: string
  readonly counts?: Readonly<Record<string, number>>
  readonly error?: string
  readonly report?: UpkeepReport
}

/** A process that does the upkeep. */
function keeper(engine: string, place: string, options: object) {
  const args = [script, bundle, engine, place, JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  children.add(child)
  const told: Line[] = []
  const over = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout })
      .on('line', (line) => told.push(JSON.parse(line)))
      .on('close', () => {
        children.delete(child)
        resolve()
      })
  })
  return {
    hasTurn: () => told.some(({ part, counts }) => part === 'turn' && counts?.['turns'] === 1),
    async kill(): Promise<void> {
      child.kill('SIGKILL')
      await over
    },
    async end(): Promise<UpkeepReport> {
      child.stdin.end()
      await over
      const report = told.at(-1)?.report
      if (report === undefined) throw new Error('it ended without a report')
      return report
    },
  }
}

describe.each(engines)('upkeep on %s', (engine, open) => {
  let world: LedgerWorld
  beforeAll(async () => {
    world = await open()
  })

  it('is done by one of three processes, once', async () => {
    await forgottenRecords(world)
    const three = [1, 2, 3].map(() => keeper(engine, world.place, { purgeEvery: '1h', batch: 40, pause: '5ms' }))
    await expect.poll(() => left(world)).toBe(0)
    const reports = await Promise.all(three.map(({ end }) => end()))
    expect(reports.map(({ turns }) => turns).sort()).toEqual([0, 0, 1])
    expect(reports.map(({ records }) => records.finished).sort((a, b) => a - b)).toEqual([0, 0, old])
    expect(reports.map(({ failures }) => failures)).toEqual([0, 0, 0])
  })

  it('goes on in another process where the one that has the turn is killed in it', async () => {
    await endTurn(world)
    await forgottenRecords(world)
    const slowly = { purgeEvery: '3s', batch: 10, pause: '200ms' }
    const two = [keeper(engine, world.place, slowly), keeper(engine, world.place, slowly)]
    const isFirst = () => two.find(({ hasTurn }) => hasTurn())
    await expect.poll(isFirst).toBeDefined()
    const [first, second] = isFirst() === two[0] ? two : [two[1], two[0]]
    await first?.kill()
    expect(second?.hasTurn()).toBe(false)
    const rest = await left(world)
    expect(rest).toBeGreaterThan(0)
    await expect.poll(() => left(world)).toBe(0)
    const report = await second?.end()
    expect(report?.turns).toBeGreaterThan(0)
    // One batch of the killed process may have come through after it was counted.
    expect(report?.records.finished).toBeGreaterThanOrEqual(rest - 10)
    expect(report?.records.finished).toBeLessThanOrEqual(rest)
  })

  it('sweeps what this process can recover, also what is defined later, and ends when it is told to', async () => {
    const { db } = world
    const ending = new AbortController()
    const upkeep = db.upkeep({ signal: ending.signal, sweepEvery: '20ms' })
    const asked: string[] = []
    const mail = leased('mail', {
      ...identity,
      store: db,
      lease: '1s',
      lookAfter: '10ms',
      recover: resolve(async () => {
        asked.push('mail')
        return happened('sent')
      }),
      run: async (): Promise<string> => {
        throw new Error('cut off')
      },
    })
    const order = { key: mintKey(), amount: 1 }
    await expect(mail(order)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
    await expect
      .poll(async () => (await db.lookup({ operation: mail, scope: identity.scope(), key: order.key })).state)
      .toBe('succeeded')
    ending.abort()
    expect(await upkeep).toMatchObject({ swept: { taken: 1, succeeded: 1 }, failures: 0 })
    expect(asked).toEqual(['mail'])
  })

  it('finishes the batch under way when it is told to end, and leaves the rest', async () => {
    const { db } = world
    await endTurn(world)
    await forgottenRecords(world, 100)
    const ending = new AbortController()
    const upkeep = db.upkeep({ signal: ending.signal, purgeEvery: '50ms', batch: 10, pause: '1h' })
    await expect.poll(() => left(world)).toBe(90)
    ending.abort()
    expect(await upkeep).toMatchObject({ turns: 1, records: { finished: 10 } })
    expect(await left(world)).toBe(90)
  })
})
