// Consumers in processes that are killed at every fault point, race, and are stopped for longer than their lease: each
// message has its effect once, in the order of its key.

import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { beforeAll, describe, expect, it } from 'vitest'
import type { LeasedFaultPoint } from '../../../src/idempotency/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import type {
  ConsumerCounts,
  ConsumerFaultPoint,
  DeadLetter,
  Message,
  MessageDomain,
} from '../../../src/messaging/index.js'
import type { QueryHandle } from '../../../src/stores/sql/index.js'
import { killAt } from '../../../src/testing/index.js'
import { bundledScript } from '../../bundled-script.js'
import { messageOf } from '../../messaging/consumer/scripted-source.js'
import { engines, type Handle, type LedgerWorld } from '../operations/worlds.js'

const consumes = bundledScript(new URL('./processes/consumes.mjs', import.meta.url), {
  idempotency: 'idempotency',
  messaging: 'messaging',
  postgres: 'stores/postgres',
  retry: 'retry',
  sqlite: 'stores/sqlite',
  testing: 'testing',
})

/** The lease of one that follows: a busy machine does not take it away, and its margin is the shortest there is. */
const patientLease = '10s'

/** A process with a consumer, and what it has printed. */
async function consumer(
  engine: string,
  place: string,
  from: 'outbox' | 'source',
  environment: Readonly<Record<string, string>>,
  lease = '30s',
) {
  const { child, ended } = consumes.start([engine, place, from, lease], environment)
  child.stdin.on('error', () => undefined)
  const told: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => told.push(line))
  await expect.poll(() => told).toContain('open')
  const of = (word: string): string[] =>
    told.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  return {
    child,
    ended,
    of,
    deliver(content: Message, count: number): void {
      child.stdin.write(`${JSON.stringify({ content, count })}\n`)
    },
    async end(): Promise<ConsumerCounts> {
      child.stdin.end()
      await ended
      return JSON.parse(of('counts')[0] ?? '{}')
    },
  }
}

/** What left the processes. */
function linesIn(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

/** Emits messages of a key, with ids that are sorted as they are emitted. */
async function emitIn({ db }: LedgerWorld, key: string, messages: number, first = 0): Promise<void> {
  for (let id = 1000 + first; id < 1000 + first + messages; id += 1) {
    await db.transact((tx: Handle) => tx.emit({ type: 'order.placed', id: `${key}-${id}`, subject: key, data: { id } }))
  }
}

function lettersOf({ db }: LedgerWorld, reader: string): Promise<readonly DeadLetter[]> {
  const { messages } = db as unknown as MessageDomain<Handle>
  return messages.letters({ reader, limit: 10 }, { deadline: deadlineAfter('30s') })
}

describe.each(engines)('consumers on %s', (engine, open) => {
  let world: LedgerWorld
  beforeAll(async () => {
    world = await open()
  })

  const emit = (key: string, messages: number, first = 0): Promise<void> => emitIn(world, key, messages, first)

  const effects = async (key: string): Promise<Record<string, number>> =>
    Object.fromEntries(Object.entries(await world.ledger()).filter(([intent]) => intent.startsWith(`${key}/`)))

  it.each<[ConsumerFaultPoint, { readonly FAILS?: string }, begun: number]>([
    ['consumer.arrived', {}, 0],
    ['consumer.handled', {}, 1],
    ['consumer.committed', {}, 1],
    ['consumer.acked', {}, 1],
    ['consumer.failed', { FAILS: '1' }, 1],
    ['consumer.kept', { FAILS: '1' }, 1],
  ])('that are killed at %s leave a message that has its effect once', async (point, fails, begun) => {
    const key = `source at ${point}`
    const message = messageOf(`${key}-1`, key)
    const environment = { CONSUMER: `killed at ${point}`, ...fails }
    const first = await consumer(engine, world.place, 'source', { ...environment, ...killAt(point) }, '500ms')
    first.deliver(message, 1)
    expect((await first.ended).signal).toBe('SIGKILL')
    expect(first.of('begun')).toHaveLength(begun)
    // The broker delivers again what was not acknowledged, and what follows it.
    const second = await consumer(engine, world.place, 'source', { CONSUMER: environment.CONSUMER })
    if (first.of('acked').length === 0) second.deliver(message, 2)
    second.deliver(messageOf(`${key}-2`, key), 1)
    await expect.poll(() => effects(key)).toEqual({ [`${key}/${key}-1`]: 1, [`${key}/${key}-2`]: 1 })
    await expect.poll(() => second.of('acked').length).toBe(first.of('acked').length === 0 ? 2 : 1)
    const counts = await second.end()
    // What was kept may be handled from the inbox before it is delivered again.
    const possible = point === 'consumer.committed' ? [1] : point === 'consumer.kept' ? [0, 1] : [0]
    expect(possible).toContain(counts.duplicates)
  })

  it.each<ConsumerFaultPoint>(['consumer.claimed', 'consumer.handled', 'consumer.committed'])(
    'of the outbox that are killed at %s are followed: each effect once, in order',
    async (point) => {
      const key = `outbox-at-${point}`
      await emit(key, 5)
      const environment = { CONSUMER: `outbox killed at ${point}` }
      const first = await consumer(engine, world.place, 'outbox', { ...environment, ...killAt(point) }, '500ms')
      expect((await first.ended).signal).toBe('SIGKILL')
      const second = await consumer(engine, world.place, 'outbox', environment, patientLease)
      const all = Object.fromEntries([0, 1, 2, 3, 4].map((id) => [`${key}/${key}-${1000 + id}`, 1]))
      await expect.poll(() => effects(key)).toEqual(all)
      expect(await second.end()).toMatchObject({ parked: 0, failed: 0 })
    },
  )

  it('that a message kills blame that message alone, also where they restart after their lease', async () => {
    const innocents = ['kill-a', 'kill-b', 'kill-c', 'kill-e', 'kill-f', 'kill-g']
    for (const key of [...innocents.slice(0, 3), 'kill-d', ...innocents.slice(3)]) await emit(key, 2)
    const environment = { CONSUMER: 'kills', POISON: 'kill-d-1000' }
    const heldThen: number[] = []
    let deaths = 0
    for (; deaths < 20; deaths += 1) {
      const one = await consumer(engine, world.place, 'outbox', environment, '1s')
      const isDead = (): boolean => one.child.signalCode !== null
      await expect
        .poll(async () => isDead() || (await lettersOf(world, 'kills')).length > 0, { timeout: 60_000 })
        .toBe(true)
      if (!isDead()) {
        await expect.poll(async () => Object.keys(await allOf(innocents)).length).toBe(12)
        expect(await one.end()).toMatchObject({ parked: 1 })
        break
      }
      const held = "select key from reprise_lane where reader = 'kills' and owner is not null"
      const { rows } = await world.db.transact((tx: Handle) => (tx as unknown as QueryHandle).query(held, []))
      heldThen.push(rows.length)
      // The next one comes when the leases of this one are over.
      await new Promise((resolve) => setTimeout(resolve, 1_500))
    }
    // The first in company, the others while they ran nothing else.
    expect(deaths).toBe(4)
    expect(heldThen[0]).toBeGreaterThan(1)
    expect(heldThen.slice(1)).toEqual([1, 1, 1])
    expect(await lettersOf(world, 'kills')).toMatchObject([{ code: 'MESSAGE_KILLS', message: { id: 'kill-d-1000' } }])
    expect(Object.values(await allOf(innocents))).toEqual(Array.from({ length: 12 }, () => 1))
  })

  const allOf = async (keys: readonly string[]): Promise<Record<string, number>> =>
    Object.assign({}, ...(await Promise.all(keys.map(effects))))

  it('of one name share the work: each effect once, in the order of its key', async () => {
    const keys = ['race-a', 'race-b', 'race-c', 'race-d', 'race-e', 'race-f']
    const both = await Promise.all(
      [1, 2].map(() => consumer(engine, world.place, 'outbox', { CONSUMER: 'race' }, '60s')),
    )
    // Until both are at work: one of them may have all keys for a while.
    let rounds = 0
    const isShared = (): boolean => both.every(({ of }) => of('begun').length > 0)
    for (; rounds < 3 || (rounds < 200 && !isShared()); rounds += 1) {
      for (const key of keys) await emit(key, 1, rounds)
    }
    for (const key of keys) {
      const all = Object.fromEntries(Array.from({ length: rounds }, (_, id) => [`${key}/${key}-${1000 + id}`, 1]))
      await expect.poll(() => effects(key)).toEqual(all)
    }
    const counts = await Promise.all(both.map(({ end }) => end()))
    for (const { of } of both) {
      for (const key of keys) {
        const order = of('begun').filter((id) => id.startsWith(key))
        expect(order).toEqual([...order].sort())
      }
    }
    expect(counts.reduce((sum, { failed, parked }) => sum + failed + parked, 0)).toBe(0)
    expect(isShared()).toBe(true)
  })
})

describe.each(engines)('consumers with effects outside of %s', (engine, open) => {
  it.each<[LeasedFaultPoint | ConsumerFaultPoint, 'outbox' | 'source', sends: number]>([
    ['leased.claimed', 'outbox', 1],
    ['leased.before-complete', 'outbox', 2],
    ['leased.completed', 'outbox', 1],
    ['consumer.handled', 'outbox', 1],
    ['consumer.committed', 'outbox', 1],
    ['leased.before-complete', 'source', 2],
    ['leased.completed', 'source', 1],
    ['consumer.kept', 'source', 1],
  ])('that are killed at %s of a message of the %s send it under one key', async (...given) => {
    const [point, from, sends] = given
    const world = await open()
    const key = `leased-${from}-${point}`
    const environment = { CONSUMER: key, LEASED: `${consumes.folder}/${engine}-${key}` }
    const first = await consumer(engine, world.place, from, { ...environment, ...killAt(point) }, '500ms')
    const messages = ['1000', '1001'].map((id) => messageOf(`${key}-${id}`, key))
    if (from === 'outbox') await emitIn(world, key, 2)
    else first.deliver(messages[0] as Message, 1)
    expect((await first.ended).signal).toBe('SIGKILL')
    // It is in the inbox before it is sent. Where the loop over the lanes is faster than its delivery, that is all the
    // delivery waits for; else the broker delivers it again.
    const delivered = from === 'outbox' ? [] : messages.slice(first.of('acked').length)
    if (from === 'outbox') expect(first.of('acked')).toEqual([])
    const second = await consumer(engine, world.place, from, environment, patientLease)
    for (const one of delivered) second.deliver(one, one === messages[0] ? 2 : 1)
    const lines = (): readonly string[] => linesIn(environment.LEASED)
    await expect.poll(() => lines().length, { timeout: 60_000 }).toBe(sends + 1)
    await expect.poll(() => second.of('acked').length).toBe(delivered.length)
    expect(await second.end()).toMatchObject({ failed: 0, parked: 0 })
    const sent = lines().map((line) => line.split(' ') as [string, string])
    expect(sent.map(([id]) => id)).toEqual([...Array(sends).fill(`${key}-1000`), `${key}-1001`])
    expect(new Set(sent.map(([, name]) => name)).size).toBe(2)
  })

  it('that are held leave what may have happened to a person, and send nothing again', async () => {
    const environment = { CONSUMER: 'held', LEASED: `${consumes.folder}/${engine}-held`, RECOVER: 'hold' }
    const world = await open()
    await emitIn(world, 'held', 2)
    const kill = killAt('leased.before-complete')
    const first = await consumer(engine, world.place, 'outbox', { ...environment, ...kill }, '500ms')
    expect((await first.ended).signal).toBe('SIGKILL')
    const second = await consumer(engine, world.place, 'outbox', environment, patientLease)
    const held = (): Promise<readonly DeadLetter[]> => lettersOf(world, 'held')
    await expect.poll(async () => (await held()).length, { timeout: 60_000 }).toBe(1)
    expect(await held()).toMatchObject([{ code: 'OPERATION_UNKNOWN', parks: true, message: { id: 'held-1000' } }])
    expect(await second.end()).toMatchObject({ handled: 0, parked: 1 })
    expect(linesIn(environment.LEASED)).toHaveLength(1)
  })
})

describe.each(engines.filter(([name]) => name === 'PostgreSQL'))('a consumer on %s', (engine, open) => {
  // On SQLite a stopped writer holds all others until it goes on, so nobody can follow it there.
  it('that is stopped for longer than its lease is fenced: whoever followed it had the effect', async () => {
    const world = await open()
    const environment = { CONSUMER: 'stopped' }
    // In its handler for long enough to be stopped there.
    const first = await consumer(engine, world.place, 'outbox', { ...environment, SLOW_MS: '5000' }, '3s')
    await world.db.transact((tx: Handle) => tx.emit({ type: 'order.placed', id: '1', subject: 'stopped', data: {} }))
    await expect.poll(() => first.of('begun')).toEqual(['1'])
    first.child.kill('SIGSTOP')
    const second = await consumer(engine, world.place, 'outbox', environment, patientLease)
    await expect.poll(() => world.ledger()).toEqual({ 'stopped/1': 1 })
    first.child.kill('SIGCONT')
    expect(await first.end()).toMatchObject({ handled: 0 })
    expect(await second.end()).toMatchObject({ handled: 1 })
    expect(await world.ledger()).toEqual({ 'stopped/1': 1 })
  })
})
