import { expect, it } from 'vitest'
import { effect, listening, routeWorld, send, settledInTime } from '../../../../test/http/route-world.js'
import { mintKey } from '../../../identity/index.js'
import { eventLoopTurn } from '../../../kernel/index.js'
import { constantDelay, readOnly, retryPolicy, transient } from '../../../retry/index.js'
import { reply } from '../answer/answer.js'
import type { AtomicRouteOptions } from './options.js'

/** A route whose handler waits until the test lets it go. */
function gated(more: Partial<AtomicRouteOptions<never, undefined>> = {}) {
  const world = routeWorld()
  let release = (): void => {}
  let runs = 0
  const charges = world.route(more as never, async ({ tx }) => {
    runs += 1
    await new Promise<void>((resolve) => {
      release = resolve
    })
    return reply(201, await effect(tx))
  })
  const until = async (held: () => boolean) => {
    for (let turn = 0; turn < 200 && !held(); turn++) await eventLoopTurn()
    expect(held()).toBe(true)
  }
  return { ...world, charges, until, runs: () => runs, release: () => release() }
}

it('refuses duplicates while the first is under way, with 409 and when to come back; another content with 422', async () => {
  const { charges, clock, effects, until, runs, release } = gated()
  const key = mintKey()
  const first = send(charges, { key })
  await until(() => runs() === 1)
  const repeats = await Promise.all(Array.from({ length: 49 }, () => send(charges, { key })))
  for (const repeat of repeats) {
    expect(repeat).toMatchObject({ status: 409, problem: 'in-flight', headers: { 'retry-after': '1' } })
    expect(JSON.parse(repeat.text)).toMatchObject({ status: 409, retryable: true, heldSinceMs: clock.wallMs() })
  }
  expect(await send(charges, { key, body: '{}' })).toMatchObject({ status: 422, problem: 'key-reused' })
  release()
  const { text } = await first
  expect((await send(charges, { key })).text).toBe(text)
  expect([runs(), effects()]).toEqual([1, 1])
})

it('lets duplicates wait where it is told to, for the answer of the first, or until their time is over', async () => {
  const { charges, clock, until, runs, release } = gated({ duplicates: 'wait', wait: '300ms', waiters: 3 })
  const key = mintKey()
  const first = send(charges, { key })
  await until(() => runs() === 1)
  const waiting = Array.from({ length: 3 }, () => send(charges, { key }))
  await until(() => clock.pendingTimers >= 4)
  // One more than may wait.
  expect(await send(charges, { key })).toMatchObject({ status: 409, problem: 'in-flight' })
  await clock.advance(300)
  for (const got of await Promise.all(waiting))
    expect(got).toMatchObject({ status: 409, headers: { 'retry-after': '1' } })
  const patient = send(charges, { key })
  release()
  const { text } = await first
  expect(await patient).toMatchObject({ status: 201, text, headers: { 'idempotent-replayed': 'true' } })
  expect(runs()).toBe(1)
})

it('runs different keys with the same content each for itself', async () => {
  const { route, effects } = routeWorld()
  const charges = route()
  const got = await Promise.all(Array.from({ length: 50 }, () => send(charges)))
  expect([new Set(got.map(({ text }) => text)).size, effects()]).toEqual([50, 50])
})

it('ends at the caller’s deadline less the way back, and never later than the route or the domain would', async () => {
  const longest = async (header: string | undefined, more: Partial<AtomicRouteOptions<never, undefined>> = {}) => {
    const { charges, clock, effects, until, runs, release } = gated({ bodyLimit: '1h', ...more })
    const beganMs = clock.monotonicMs()
    const headers: Record<string, string> = header === undefined ? {} : { 'reprise-deadline-ms': header }
    const got = send(charges, { headers })
    await until(() => runs() === 1 && clock.pendingTimers > 0)
    expect(await settledInTime(clock, got, 50)).toMatchObject({
      status: 503,
      problem: 'deadline-exceeded',
      headers: { 'retry-after': '1' },
    })
    release()
    expect(effects()).toBe(0)
    return clock.monotonicMs() - beganMs
  }
  expect(await longest('1000')).toBe(950)
  expect(await longest('1000', { wayBack: '200ms' })).toBe(800)
  expect(await longest('3600000')).toBe(10_000)
  expect(await longest('3600000', { deadline: '2s' })).toBe(2_000)
  expect(await longest(undefined, { deadline: '2s' })).toBe(2_000)
  expect(await longest('soon')).toBe(10_000)
})

it('does not begin for a caller that waits no more', async () => {
  const { charges, runs } = gated()
  for (const left of ['0', '50']) {
    const got = await send(charges, { headers: { 'reprise-deadline-ms': left } })
    expect(got).toMatchObject({ status: 503, problem: 'deadline-exceeded' })
  }
  expect(runs()).toBe(0)
})

it('believes that a caller repeats by itself only where it is trusted: then calls below are made once', async () => {
  const { route } = routeWorld()
  const calls: number[] = []
  const handler = async () => {
    let made = 0
    const policy = retryPolicy({
      classify: () => transient('flaky', 'maybe'),
      backoff: constantDelay(0),
      budget: false,
    })
    const failing = () => {
      made += 1
      return Promise.reject(new Error('flaky'))
    }
    await policy.run(readOnly(), failing).catch(() => undefined)
    calls.push(made)
    return reply(204)
  }
  const headers = { 'reprise-retry-owner': 'caller', 'reprise-attempt': '3' }
  const { events, end } = listening()
  await send(route({ name: 'nobody' }, handler), { headers })
  await send(route({ name: 'others', trusts: ({ user }) => user === 'bob' }, handler), { headers })
  await send(route({ name: 'her', trusts: ({ user }) => user === 'ada' }, handler), { headers })
  await send(route({ name: 'silent', trusts: () => true }, handler))
  end()
  expect(calls).toEqual([3, 3, 1, 3])
  expect(events.map(({ attempt }) => attempt)).toEqual([3, 3, 3, undefined])
})
