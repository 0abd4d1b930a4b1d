// COMMIT of TypeORM whose answer is lost on the wire: with a key it is found out, without one it stays unknown.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Key, mintKey } from '../../../src/identity/index.js'
import { type FaultMoment, type PostgresProxy, postgresProxy } from '../../../src/testing/index.js'
import { transactionHistoryOf, UnknownCommitError } from '../../../src/transaction/index.js'
import { paymentEntity, typeormStack } from './orms.js'
import { callbackWorld, caught, tests, type World } from './world.js'

let world: World
let proxy: PostgresProxy
let typeorm: Awaited<ReturnType<typeof typeormStack>>
beforeAll(async () => {
  world = await callbackWorld()
  const { hostname, port, username, pathname } = new URL(world.url)
  proxy = await postgresProxy({ upstream: { host: hostname, port: Number(port) } })
  typeorm = world.keep(await typeormStack(`postgres://${username}@${proxy.host}:${proxy.port}${pathname}`))
})
afterAll(() => proxy.close())

let runs = 0
async function pay(intent: string, key?: Key): Promise<{ readonly run: number }> {
  runs = 0
  return typeorm.db.transact(
    async (tx) => {
      runs += 1
      await tx.db.getRepository(paymentEntity).insert({ id: randomUUID(), intent })
      return { run: runs }
    },
    { deadline: '20s', ...(key === undefined ? {} : { key: { scope: tests, key }, content: { value: intent } }) },
  )
}

/** The write of the outcome, the last statement before COMMIT. */
const isLast = (text: string): boolean => text.startsWith('UPDATE ') && text.includes(' SET state = ')
const loseCommit = (at: FaultMoment) => proxy.arm({ at, action: 'rst', statement: (text) => text === 'COMMIT' })

it.each([
  ['before it reached the server', 'before-forward', 2],
  ['after the server had carried it out', 'before-answer', 1],
] as const)('with a key, the connection lost %s: the effect is there once', async (_when, at, wanted) => {
  const intent = randomUUID()
  const key = mintKey()
  const before = proxy.fired.length
  loseCommit(at)
  expect(await pay(intent, key)).toEqual({ run: wanted })
  expect([runs, proxy.fired.length - before, await world.payments(intent)]).toEqual([wanted, 1, 1])
  // And a repeat is told the same.
  expect(await pay(intent, key)).toEqual({ run: wanted })
  expect([runs, await world.payments(intent)]).toEqual([0, 1])
})

it('without a key the outcome stays unknown, and the body is not run again', async () => {
  const intent = randomUUID()
  const before = proxy.fired.length
  loseCommit('before-answer')
  const error = await caught(pay(intent))
  expect(error).toBeInstanceOf(UnknownCommitError)
  expect([runs, proxy.fired.length - before, await world.payments(intent)]).toEqual([1, 1, 1])
})

it('the connection lost under the last statement is a definite abort: COMMIT was not sent', async () => {
  const intent = randomUUID()
  const before = proxy.fired.length
  proxy.arm({ at: 'before-answer', action: 'rst', statement: isLast })
  expect(await pay(intent, mintKey())).toEqual({ run: 2 })
  expect([runs, proxy.fired.length - before, await world.payments(intent)]).toEqual([2, 1, 1])
})

it('without an answer to the last statement, the work is not let return after the time is over', async () => {
  const intent = randomUUID()
  const key = mintKey()
  proxy.arm({ at: 'before-answer', action: 'delay', delayMs: 3_600, statement: isLast })
  const error = await caught(
    typeorm.db.transact(
      async (tx) => {
        await tx.db.getRepository(paymentEntity).insert({ id: randomUUID(), intent })
        return 'late'
      },
      { content: 'none', deadline: '3s', key: { scope: tests, key } },
    ),
  )
  expect(transactionHistoryOf(error)?.attempts[0]?.phase).toBe('committing')
  await typeorm.db.close()
  expect(await world.payments(intent)).toBe(0)
})
