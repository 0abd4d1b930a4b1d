// Numbers of one producer from two processes at the same time, and from processes that are killed: each number has one
// effect, both are told the same, and what a dead process committed is a duplicate to the next.

import { createInterface } from 'node:readline'
import { beforeAll, describe, expect, it } from 'vitest'
import type { SequenceNumber } from '../../../src/identity/index.js'
import { killAt } from '../../../src/testing/index.js'
import type { TransactionFaultPoint } from '../../../src/transaction/index.js'
import { bundledScript } from '../../bundled-script.js'
import { engines, type LedgerWorld } from '../operations/worlds.js'

const accepts = bundledScript(new URL('./processes/accepts.mjs', import.meta.url), {
  postgres: 'stores/postgres',
  sqlite: 'stores/sqlite',
  testing: 'testing',
})

/** What became of a number in another process. */
interface Accepted {
  readonly result: string
  readonly value?: { readonly by: number }
  readonly began: string
  readonly ended: string
}

/** A process that accepts what it is given. Its answer is undefined where it died. */
async function acceptor(engine: string, place: string, environment?: Readonly<Record<string, string>>) {
  const { child, ended } = accepts.start([engine, place], environment)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('ready')
  return {
    ended,
    async accept(at: SequenceNumber): Promise<Accepted | undefined> {
      child.stdin.write(`${JSON.stringify(at)}\n`)
      const { value, done } = await lines.next()
      return done === true ? undefined : JSON.parse(value)
    },
    async end(): Promise<void> {
      child.stdin.end()
      await ended
    },
  }
}

describe.each(engines)('processes on %s', (engine, open) => {
  let world: LedgerWorld
  beforeAll(async () => {
    world = await open()
  })

  it('that bring the same numbers at the same time have each effect once, in order', async () => {
    const orders = world.db.sequence('orders')
    const epoch = await orders.open('race')
    const both = [await acceptor(engine, world.place), await acceptor(engine, world.place)] as const
    let raced = 0
    for (let number = 1; number <= 40; number += 1) {
      const told = await Promise.all(both.map(({ accept }) => accept({ producer: 'race', epoch, number })))
      expect(told.map((one) => one?.result).sort()).toEqual(['duplicate', 'new'])
      expect(new Set(told.map((one) => one?.value?.by)).size).toBe(1)
      const latest = told.map((one) => BigInt(one?.began ?? 0)).reduce((a, b) => (a > b ? a : b))
      if (told.every((one) => BigInt(one?.ended ?? 0) > latest)) raced += 1
    }
    // The processes go on, as zombies, when somebody else has opened the next epoch.
    await orders.open('race')
    const late = await Promise.all(both.map(({ accept }) => accept({ producer: 'race', epoch, number: 41 })))
    expect(late.map((one) => one?.result)).toEqual(['SEQUENCE_FENCED', 'SEQUENCE_FENCED'])
    for (const { end } of both) await end()
    const ledger = await world.ledger()
    const counts = Array.from({ length: 41 }, (_, index) => ledger[`race/${epoch}/${index + 1}`] ?? 0)
    expect(counts).toEqual([...Array.from({ length: 40 }, () => 1), 0])
    expect(raced).toBeGreaterThan(3)
  })

  it.each<[TransactionFaultPoint, 'new' | 'duplicate']>([
    ['transaction.begun', 'new'],
    ['transaction.body-done', 'new'],
    ['transaction.before-commit', 'new'],
    ['transaction.committed', 'duplicate'],
  ])('that are killed at %s leave a number that is %s to the next', async (point, result) => {
    const orders = world.db.sequence('orders')
    const producer = `killed.at.${point}`
    const at = { producer, epoch: await orders.open(producer), number: 1 }
    const { accept, ended } = await acceptor(engine, world.place, killAt(point))
    expect([await accept(at), (await ended).signal]).toEqual([undefined, 'SIGKILL'])
    const told = await world.db.transact((tx) =>
      orders.accept(tx, at, async () => {
        await world.effect(tx, `${producer}/${at.epoch}/1`)
        return { by: process.pid }
      }),
    )
    expect(told.result).toBe(result)
    // The result is the one of whoever carried it out.
    expect(told.value?.by === process.pid).toBe(result === 'new')
    expect((await world.ledger())[`${producer}/${at.epoch}/1`]).toBe(1)
  })
})
