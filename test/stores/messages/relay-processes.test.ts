// Relays in processes of their own: killed with SIGKILL at every fault point, stopped there for longer than their
// lease, and two of them at once beside those who emit. Nothing is lost, each key is in order, and what is on the wire
// twice is counted.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { type RelayCounts, type RelayFaultPoint, relayFaultPoints } from '../../../src/messaging/index.js'
import type { SqliteDomain, SqliteTransaction } from '../../../src/stores/sqlite/index.js'
import { faultEnvironment, killAt } from '../../../src/testing/index.js'
import { bundledScript } from '../../bundled-script.js'
import { joinStores, keepTable } from '../../faults/operations/fault-table.js'
import { worlds } from '../windows/worlds.js'

const relays = bundledScript(new URL('./processes/relays.mjs', import.meta.url), {
  kernel: 'kernel',
  messaging: 'messaging',
  broker: 'brokers/memory',
  testing: 'testing',
  postgres: 'stores/postgres',
  sqlite: 'stores/sqlite',
})
const folder = mkdtempSync(join(tmpdir(), 'reprise-relay-broker-'))
let files = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A broker in a file: what is on the wire, as key, number and id. */
function freshBroker() {
  files += 1
  const file = join(folder, `${files}.txt`)
  const lines = (): readonly string[] => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
  return { file, lines }
}

/** What was found, for the page. */
const table: string[][] = []

const keys = ['a', 'b', 'c', 'd', 'e']
const each = 8

/** How often something is on the wire that was there before; the first of each has to be in order, and all there. */
function duplicatesOn(lines: readonly string[], numbers: number): number {
  for (const key of keys) {
    const all = lines.filter((line) => line.startsWith(`${key} `)).map((line) => Number(line.split(' ')[1]))
    expect([...new Set(all)], `the order of ${key}`).toEqual(Array.from({ length: numbers }, (_, index) => index + 1))
  }
  const ids = lines.map((line) => line.split(' ')[2])
  expect(new Set(ids).size).toBe(keys.length * numbers)
  return lines.length - new Set(lines).size
}

/** What the tests need of either domain. */
interface Domain {
  readonly messages: Pick<SqliteDomain<unknown>['messages'], 'register'>
  transact(body: (tx: Pick<SqliteTransaction<unknown>, 'emit'>) => Promise<unknown>): Promise<unknown>
}

/** The domain on a database of its own, with its tables. */
async function migrated(maker: () => Promise<{ migrate(): Promise<unknown> }>): Promise<Domain> {
  const db = await maker()
  await db.migrate()
  return db as unknown as Domain
}

/** Emits the next number of each key, each in a transaction of its own. */
async function emit(db: Domain, from: number, to: number): Promise<void> {
  for (let number = from; number <= to; number += 1) {
    for (const key of keys) await db.transact((tx) => tx.emit({ type: 'counted', key, data: number }))
  }
}

// PostgreSQL and SQLite.
describe.each(worlds.slice(0, 2))('relays in processes of their own, on %s', (store, inWorld) => {
  /** Whether messages are on the wire and not marked when the process is dead. */
  const isTwice: Readonly<Record<RelayFaultPoint, boolean>> = {
    'relay.claimed': false,
    'relay.published': true,
    'relay.marked': false,
  }

  it.each(relayFaultPoints)('killed at %s: nothing is lost, and each key is in order', (point) =>
    inWorld(async ({ maker, place }) => {
      const db = await migrated(maker)
      await db.messages.register({ name: 'out', kind: 'relay', reads: 'outbox' }, { deadline: deadlineAfter('1m') })
      await emit(db, 1, each)
      const { file, lines } = freshBroker()
      expect(await relays.run([place, file], killAt(point))).toMatchObject({
        signal: 'SIGKILL',
        stderr: `reprise-fault ${point}:1=kill\n`,
      })
      const before = lines().length
      expect(before > 0).toBe(point !== 'relay.claimed')
      const ended = await relays.run([place, file])
      expect(ended).toMatchObject({ signal: null, stderr: '' })
      const duplicates = duplicatesOn(lines(), each)
      console.log(`${point}: ${before} published before the kill, ${duplicates} on the wire twice`)
      expect(duplicates > 0).toBe(isTwice[point])
      expect(JSON.parse(ended.stdout) as RelayCounts).toMatchObject({ parked: 0, refused: 0 })
      table.push([`killed at \`${point}\``, store, '0', 'kept', isTwice[point] ? 'what it had published' : 'nothing'])
    }),
  )

  it.each(relayFaultPoints)(
    'stopped at %s for longer than its lease: it goes on, and marks and publishes nothing more',
    (point) =>
      inWorld(async ({ maker, place }) => {
        const db = await migrated(maker)
        await db.messages.register({ name: 'out', kind: 'relay', reads: 'outbox' }, { deadline: deadlineAfter('1m') })
        await emit(db, 1, each)
        const { file, lines } = freshBroker()
        const zombie = relays.start([place, file], faultEnvironment(point, 'stop'))
        await expect.poll(zombie.said, { timeout: 60_000 }).toBe(`reprise-fault ${point}:1=stop\n`)
        const before = lines().length
        expect(before > 0).toBe(point !== 'relay.claimed')
        // Ends when all is done, so when the lease of the other one is over.
        const follower = await relays.run([place, file])
        expect(JSON.parse(follower.stdout) as RelayCounts).toMatchObject({ parked: 0, refused: 0, fenced: 0 })
        const duplicates = duplicatesOn(lines(), each)
        expect(duplicates > 0).toBe(isTwice[point])
        const published = lines().length
        zombie.child.kill('SIGCONT')
        const { fenced, parked } = JSON.parse((await zombie.ended).stdout) as RelayCounts
        // What it had claimed was marked by the other one, or had been by itself; it writes and publishes nothing more.
        expect([fenced > 0, parked]).toEqual([point !== 'relay.marked', 0])
        expect(lines()).toHaveLength(published)
        table.push([
          `stopped at \`${point}\``,
          store,
          '0',
          'kept',
          isTwice[point] ? 'what it had published' : 'nothing',
        ])
      }),
  )

  it('two at once, beside those who emit: each message once, in order', () =>
    inWorld(async ({ maker, place }) => {
      const db = await migrated(maker)
      await db.messages.register({ name: 'out', kind: 'relay', reads: 'outbox' }, { deadline: deadlineAfter('1m') })
      const { file, lines } = freshBroker()
      await emit(db, 1, 1)
      const both = [relays.run([place, file]), relays.run([place, file])]
      await emit(db, 2, each)
      const counts = (await Promise.all(both)).map(({ stdout }) => JSON.parse(stdout) as RelayCounts)
      // Both may have ended before the last were emitted.
      await relays.run([place, file])
      const fenced = counts.reduce((sum, count) => sum + count.fenced, 0)
      const duplicates = duplicatesOn(lines(), each)
      if (fenced === 0) expect(duplicates).toBe(0)
    }))
})

it('relays that were killed and stopped, as the page says', () => {
  expect(table).toHaveLength(relayFaultPoints.length * 2 * 2)
  const head = ['a relay', 'store', 'lost', 'order of each key', 'twice on the wire']
  keepTable('relays', head, joinStores(table, 1), 'message-faults.md')
})
