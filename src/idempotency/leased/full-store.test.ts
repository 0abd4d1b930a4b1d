import { expect, it } from 'vitest'
import { chargeOptions, only, type StoreFault, world } from '../../../test/idempotency/leased-world.js'
import { type ErrorCode, RepriseError } from '../../kernel/index.js'
import { leased } from './leased.js'

const full = new RepriseError('POOL_EXHAUSTED', 'No connection became free.')
const cut = (cause: Error) => new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed.', { cause })
const locked = new RepriseError('LOCK_TIMEOUT', 'A statement waited too long.', { cause: new Error('SQLITE_BUSY') })

/** One call on a store whose statements meet these faults in turn, and the last of them from then on. */
async function charged(faults: readonly StoreFault[], options: { deadline?: string; wait?: string } = {}) {
  const one = world()
  const tries: [name: string, atMs: number][] = []
  let runs = 0
  const store = one.store((method) => {
    tries.push([method, one.clock.monotonicMs()])
    return faults[Math.min(tries.length, faults.length) - 1] ?? 'fine'
  })
  const run = () => {
    runs += 1
    return { charge: 7 }
  }
  const charge = leased('charge', chargeOptions({ store, run, ...options } as Parameters<typeof chargeOptions>[0]))
  const startMs = one.clock.monotonicMs()
  let over = false
  const ending = charge(one.order())
    .then(
      () => ({ code: 'fulfilled' }),
      ({ code, message, details, cause }: RepriseError) => ({ code: code ?? message, details, cause }),
    )
    .then((end) => {
      over = true
      return { ...end, tookMs: one.clock.monotonicMs() - startMs }
    })
  for (let going = true; going && !over; ) going = await one.clock.runToNext()
  const ended: { code: string; tookMs: number; details?: object; cause?: unknown } = await ending
  return { ...ended, tries: tries.map(([name]) => name), runs: () => runs, record: only(one) }
}

it.each(['POOL_EXHAUSTED', 'QUEUE_FULL'] as const)('gives a claim up at once with %s', async (code: ErrorCode) => {
  const ended = await charged([new RepriseError(code, 'Too many.', { details: { places: 1 } })])
  expect(ended).toMatchObject({ code, tookMs: 0, tries: ['insert'], record: undefined })
  expect(ended.runs()).toBe(0)
})

it('says that somebody may be at it where the store was locked for as long as one waits', async () => {
  const ended = await charged([locked])
  expect(ended).toMatchObject({ code: 'OPERATION_IN_FLIGHT', tookMs: 0, tries: ['insert'], cause: locked.cause })
  expect(ended.details).toEqual({ waitedMs: 0, certain: true, retryable: true })
})

it('goes on where only the try was cut, and says at its deadline what it was waiting for', async () => {
  expect(await charged([cut(full), cut(locked), 'fine'])).toMatchObject({ code: 'fulfilled' })
  const ended = await charged([cut(full)], { deadline: '2s' })
  expect(ended).toMatchObject({ code: 'POOL_EXHAUSTED' })
  expect(ended.tries.length).toBeGreaterThan(2)
  expect(await charged([cut(locked)], { deadline: '2s' })).toMatchObject({ code: 'OPERATION_IN_FLIGHT' })
})

it.each([
  ['insert', ['answer-lost', full, locked, full, 'fine'] as const],
  ['the swap that follows it', ['answer-lost', 'fine', full, locked, 'fine'] as const],
])('finds out what became of a claim whose answer was lost, however full the store is: %s', async (_what, faults) => {
  const ended = await charged(faults)
  expect(ended.code).toBe('fulfilled')
  expect(ended.runs()).toBe(1)
  expect(ended.record).toMatchObject({ state: 'succeeded', claims: 1 })
})

it('persists until its deadline while the store cannot be reached', async () => {
  const ended = await charged(['not-sent'], { deadline: '20s' })
  expect(ended.code).toBe('connection refused')
  expect(ended.tookMs).toBeGreaterThan(15_000)
})

it('lets what follows a claim persist: a full store costs no outcome', async () => {
  const ended = await charged(['fine', full, full, locked, 'fine'])
  expect(ended).toMatchObject({ code: 'fulfilled', record: { state: 'succeeded' } })
  expect(ended.tries).toEqual(['insert', 'swap', 'swap', 'swap', 'swap'])
})
