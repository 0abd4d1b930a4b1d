// Two processes with the same keys at the same time: the store's index decides, each effect is there once, and both are
// told the same.

import { createInterface } from 'node:readline'
import { beforeAll, describe, expect, it } from 'vitest'
import { mintKey } from '../../../src/identity/index.js'
import { bundledScript } from '../../bundled-script.js'
import { engines, type LedgerWorld } from './worlds.js'

const pays = bundledScript(new URL('./processes/pays.mjs', import.meta.url), {
  postgres: 'stores/postgres',
  sqlite: 'stores/sqlite',
  identity: 'identity',
})

/** What the calls of one process for one key were told. */
interface CallsOfKey {
  readonly key: string
  readonly began: string
  readonly ended: string
  readonly told: readonly { readonly by: number; readonly replayed: boolean }[]
}

/** A process that pays what it is told to. */
async function payer(engine: string, place: string) {
  const { child } = pays.start([engine, place])
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('ready')
  return {
    async pay(key: string): Promise<CallsOfKey> {
      child.stdin.write(`${key}\n`)
      return JSON.parse((await lines.next()).value)
    },
    async end(): Promise<void> {
      child.stdin.end()
      expect((await lines.next()).done).toBe(true)
    },
  }
}

describe.each(engines)('two processes on %s', (engine, open) => {
  let world: LedgerWorld
  beforeAll(async () => {
    world = await open()
  })

  it('with the same keys have each effect once, and tell all callers the same', async () => {
    const payers = [await payer(engine, world.place), await payer(engine, world.place)] as const
    const keys = Array.from({ length: 60 }, () => mintKey() as string)
    let raced = 0
    for (const key of keys) {
      const both = await Promise.all(payers.map(({ pay }) => pay(key)))
      const told = both.flatMap((one) => one.told)
      expect([told.length, new Set(told.map(({ by }) => by)).size]).toEqual([6, 1])
      expect(told.filter(({ replayed }) => !replayed)).toHaveLength(1)
      const latest = both.map(({ began }) => BigInt(began)).reduce((a, b) => (a > b ? a : b))
      if (both.every(({ ended }) => BigInt(ended) > latest)) raced += 1
    }
    for (const { end } of payers) await end()
    const ledger = await world.ledger()
    expect(keys.filter((key) => ledger[key] !== 1)).toEqual([])
    // Both were at the same key at the same time, again and again.
    expect(raced).toBeGreaterThan(5)
  })
})
