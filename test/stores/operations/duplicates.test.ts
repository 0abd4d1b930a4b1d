// A thousand duplicates at once on a real store: they wait in memory and hold nothing, so that all other work goes on.

import { beforeAll, describe, expect, it } from 'vitest'
import { type Key, mintKey } from '../../../src/identity/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { engines, type Handle, identity, type LedgerWorld, type Order } from './worlds.js'

const many = 1_000
const order = (): Order => ({ key: mintKey(), amount: 5 })

describe.each(engines)('a thousand duplicates on %s', (_name, open) => {
  let world: LedgerWorld
  beforeAll(async () => {
    world = await open()
  })

  /** An operation whose body waits until it is let go, and what was seen of the pool meanwhile. */
  function paying(name: string, work: (run: number) => Promise<void> | void) {
    let [runs, atOnce, mostAtOnce] = [0, 0, 0]
    const pay = world.db.operation(name, {
      ...identity,
      bodyLimit: '100s',
      wait: '100s',
      run: async (tx: Handle, { key }: Order) => {
        const run = ++runs
        mostAtOnce = Math.max(mostAtOnce, ++atOnce)
        try {
          await world.effect(tx, key)
          await work(run)
          return { run }
        } finally {
          atOnce -= 1
        }
      },
    })
    return { pay, runs: () => runs, mostAtOnce: () => mostAtOnce }
  }

  it('neither fail nor starve other work: transactions of others go on while all of them wait', async () => {
    const pool = { most: 0, waiting: 0 }
    const look = (): void => {
      pool.most = Math.max(pool.most, world.pool?.totalCount ?? 0)
      pool.waiting = Math.max(pool.waiting, world.pool?.waitingCount ?? 0)
    }
    // As many others as the engine lets work beside the leader: where it has one writer, they read.
    const readOnly = world.db.manifest.writers === 'one'
    const bystanders = 50
    let seen = 0
    const bystand = async (): Promise<void> => {
      for (let n = 0; n < bystanders; n += 1) {
        const read = async (tx: Handle) => void (await tx.readRow('ledger', { intent: 'nobody' }))
        await world.db.transact(read, { readOnly, attempts: 1, connectionWait: '60s' })
        seen += 1
        look()
      }
    }
    const inside = gate(2)
    let duringBody = 0
    const { pay, runs } = paying('pay.beside', async () => {
      await inside.arrive()
      duringBody = seen
    })
    const one = order()
    const calls = Array.from({ length: many }, () => pay.outcome(one, { deadline: '200s' }))
    await inside.waiting(1)
    look()
    await bystand()
    await inside.arrive()
    const ends = await Promise.all(calls)
    // All of theirs were done while the leader was still in its body, and the others waited for it.
    expect(duringBody).toBe(bystanders)
    expect(ends.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(new Set(ends.map((end) => JSON.stringify(end.outcome === 'succeeded' && end.value)))).toEqual(
      new Set(['{"run":1}']),
    )
    expect([runs(), (await world.ledger())[one.key]]).toEqual([1, 1])
    expect(pool.most).toBeLessThanOrEqual(10)
    expect(pool.waiting).toBeLessThanOrEqual(1)
  })

  it('have exactly one executor after a rollback', async () => {
    const { pay, runs, mostAtOnce } = paying('pay.rollback', (run) => {
      if (run === 1) throw new Error('not this time')
    })
    const one = order()
    const ends = await Promise.allSettled(Array.from({ length: many }, () => pay(one, { deadline: '200s' })))
    const failed = ends.filter(({ status }) => status === 'rejected')
    expect(failed).toMatchObject([{ reason: { message: 'not this time' } }])
    const answers = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value.run] : []))
    expect([answers.length, ...new Set(answers)]).toEqual([many - 1, 2])
    expect([runs(), mostAtOnce(), (await world.ledger())[one.key]]).toEqual([2, 1, 1])
  })

  it('of as many different keys are all carried out, through a pool that is a hundredth of them', async () => {
    const { pay } = paying('pay.apart', () => undefined)
    const orders = Array.from({ length: 200 }, order)
    const work = async (): Promise<void> => {
      for (let one = orders.pop(); one !== undefined; one = orders.pop()) {
        const copies = Array.from({ length: 5 }, () => pay(one as Order, { deadline: '200s' }))
        expect(new Set((await Promise.all(copies)).map(({ run }) => run)).size).toBe(1)
      }
    }
    const keys: Key[] = orders.map(({ key }) => key)
    await Promise.all(Array.from({ length: 8 }, work))
    const ledger = await world.ledger()
    expect(keys.filter((key) => ledger[key] !== 1)).toEqual([])
    expect(world.pool?.totalCount ?? 0).toBeLessThanOrEqual(10)
  })
})
