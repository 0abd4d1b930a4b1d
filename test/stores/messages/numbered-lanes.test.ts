// A consumer that checks numbers knows by its lanes which message is late. They are purged when its memory is over, and
// not before; the key then starts anew with the first number that is seen.

import { expect, it } from 'vitest'
import { deadlineAfter } from '../../../src/kernel/index.js'
import type { Arrived } from '../../../src/messaging/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { arrivalOf, inbox } from '../../../src/testing/conformance/messages/message-world.js'
import { manualClock } from '../../../src/testing/index.js'
import { type LettersWorld, letterWorlds } from './letters-world.js'

const dayMs = 86_400_000
const limits = () => ({ deadline: deadlineAfter('1m') })
const transactOptions = { deadline: '60s', bodyLimit: '60s', connectionWait: '60s' } as const

/** @param age Makes what the lanes know so many ms older. */
async function forgetsInTime(
  db: Pick<LettersWorld['db'], 'messages' | 'transact'>,
  age: (ms: number) => Promise<unknown>,
): Promise<void> {
  const { messages } = db
  await messages.register({ ...inbox, memoryMs: 8 * dayMs }, limits())
  const arrives = async (number: number): Promise<Arrived['is']> => {
    const arrival = arrivalOf(`m-${number}`, 'gapless', { number })
    return (await db.transact((tx) => messages.arrive(tx, arrival, 1_000), transactOptions)).is
  }
  const none = { sentAfterMs: undefined, processedAfterMs: undefined, lettersAfterMs: undefined, limit: 100 }
  const purged = async () => (await messages.purge({ ...none, headsAfterMs: 60_000 }, limits())).heads
  expect([await arrives(5), await purged()]).toEqual(['new', 0])
  await age(7 * dayMs)
  expect([await purged(), await arrives(4)]).toEqual([0, 'late'])
  await age(2 * dayMs)
  expect([await purged(), await arrives(3), await arrives(4)]).toEqual([1, 'new', 'new'])
}

it.each(letterWorlds.filter(([name]) => name !== 'memory'))('on %s', (_name, inWorld) =>
  inWorld(async ({ db }) => {
    const text = (ms: number) => `update reprise_lane set due_at_ms = due_at_ms - ${ms}`
    await forgetsInTime(db, (ms) =>
      db.transact((tx) => (tx as unknown as { query(sql: string): Promise<unknown> }).query(text(ms)), transactOptions),
    )
  }),
)

it('in memory', async () => {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  await forgetsInTime(db as never, (ms) => clock.advance(ms))
})
