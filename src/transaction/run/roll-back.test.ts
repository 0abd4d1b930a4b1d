import { expect, it } from 'vitest'
import type { Session } from '../../atomicity/index.js'
import { sleep } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { rollBack } from './roll-back.js'

function slowSession(delayMs: number, outcome: 'well' | 'badly' = 'well') {
  const clock = manualClock()
  const fates: string[] = []
  const session = {
    rollback: async () => {
      await sleep(delayMs, { clock })
      if (outcome === 'badly') throw new Error('cannot')
    },
    release: (fate: string) => fates.push(fate),
  } as unknown as Session<unknown>
  return { clock, fates, session }
}

it('keeps the caller until the deadline and a little more, and cleans up behind it', async () => {
  const { clock, fates, session } = slowSession(800)
  const errors = rollBack(session, { clock, deadline: { expiresAtMs: clock.monotonicMs() + 100 } })
  await clock.advance(100)
  expect(await errors).toMatchObject([{ code: 'DEADLINE_EXCEEDED' }])
  expect(fates).toEqual([])
  await clock.advance(700)
  expect(fates).toEqual(['keep'])
  expect(clock.pendingTimers).toBe(0)
})

it('throws a connection away that cannot be cleaned, or not in time', async () => {
  const late = slowSession(5_000)
  const errors = rollBack(late.session, { clock: late.clock, deadline: { expiresAtMs: late.clock.monotonicMs() } })
  await late.clock.advance(25)
  expect(await errors).toHaveLength(1)
  await late.clock.advance(975)
  expect(late.fates).toEqual(['discard'])
  const bad = slowSession(10, 'badly')
  const failed = rollBack(bad.session, { clock: bad.clock, deadline: { expiresAtMs: Number.MAX_SAFE_INTEGER } })
  await bad.clock.advance(10)
  expect(await failed).toMatchObject([{ message: 'cannot' }])
  expect(bad.fates).toEqual(['discard'])
})
