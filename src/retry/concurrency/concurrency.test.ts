import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it } from 'vitest'
import { Flaky, settle, setup } from '../../../test/retry/virtual-policy.js'
import { type EventChannel, retryHedge, retryLimit, retryRefused } from '../../telemetry/index.js'
import { manualClock } from '../../testing/index.js'
import { readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import type { Attempt, RetryPolicyOptions } from '../options.js'
import { policyFrom, retryPolicy } from '../policy.js'
import { hedging } from '../run/hedge.js'
import { consecutiveBreaker } from '../target/breaker.js'
import { perTarget } from '../target/targets.js'
import { ownErrorClassifier } from '../verdict.js'
import { concurrency, limitFrom } from './concurrency.js'

const leave: (() => void)[] = []
afterEach(() => {
  for (const stop of leave.splice(0)) stop()
})

function heard<Message>({ name }: EventChannel<Message>): Message[] {
  const messages: Message[] = []
  const listen = (message: unknown) => void messages.push(message as Message)
  diagnostics.subscribe(name, listen)
  leave.push(() => diagnostics.unsubscribe(name, listen))
  return messages
}

/** A policy under a limit, and bodies that end when they are told to. */
function limited(most: number, queue = 0, options: RetryPolicyOptions = {}) {
  const limit = concurrency({ most, queue })
  const made = setup({ name: 'search', limit, ...options })
  const outs: { attempt: Attempt; resolve: (value: string) => void; reject: (error: unknown) => void }[] = []
  const body = (attempt: Attempt) =>
    new Promise<string>((resolve, reject) => {
      void attempt.signal
      outs.push({ attempt, resolve, reject })
    })
  const state = () => ({ out: limit.out, waiting: limit.waiting, sent: outs.length })
  return { ...made, limit, outs, body, state }
}

const refusal = (by: string) => ({ code: 'CONCURRENCY_LIMITED', details: expect.objectContaining({ by }) })
const isIdle = { out: 0, waiting: 0 }

describe('a limit without a queue', () => {
  it('refuses what finds no slot at once, unsent, and lets the next one in when a slot is free', async () => {
    const { policy, clock, limit, outs, body, state } = limited(1)
    const first = policy.run(readOnly(), body)
    const refused = await policy.run(readOnly(), body).catch((error: unknown) => error)
    expect(refused).toMatchObject(refusal('queue'))
    expect(ownErrorClassifier(refused)).toMatchObject({ help: 'transient', happened: 'no', proof: 'uncalled' })
    expect(historyOf(refused)).toBeUndefined()
    expect(state()).toEqual({ out: 1, waiting: 0, sent: 1 })
    outs[0]?.resolve('first')
    expect(await first).toBe('first')
    expect(limit.out).toBe(0)
    const next = policy.once(body)
    outs[1]?.resolve('next')
    expect(await next).toBe('next')
    expect(limit).toMatchObject(isIdle)
    expect(clock.pendingTimers).toBe(0)
  })

  it('is shared by all policies that have it', async () => {
    const { policy, limit, clock, outs, body } = limited(1)
    const other = retryPolicy({ name: 'other', limit, clock })
    const first = policy.run(readOnly(), body)
    await expect(other.run(readOnly(), body)).rejects.toMatchObject(refusal('queue'))
    outs[0]?.resolve('first')
    await first
    expect(limit).toMatchObject(isIdle)
  })

  it('holds no slot during a backoff, and ends a call whose repeat finds none with the error it had', async () => {
    const { policy, clock, limit, outs, body } = limited(1)
    const first = policy.run(readOnly(), body).catch((error: unknown) => error)
    const lost = new Flaky()
    outs[0]?.reject(lost)
    await clock.advance(50)
    expect(limit.out).toBe(0)
    const second = policy.run(readOnly(), body)
    await clock.advance(50)
    expect(await first).toBe(lost)
    expect(historyOf(lost)).toMatchObject({ stop: 'limit', attempts: [{ number: 1 }] })
    outs[1]?.resolve('second')
    expect(await second).toBe('second')
    expect(limit).toMatchObject(isIdle)
  })

  it('one per target: a target that is busy keeps its limit', () => {
    const limitOf = perTarget(() => concurrency({ most: 1 }), { maxTargets: 1, isLikeNew: ({ out }) => out === 0 })
    const busy = limitOf('a')
    void retryPolicy({ limit: busy }).run(readOnly(), () => new Promise(() => {}))
    expect(busy.out).toBe(1)
    expect(limitOf('b')).not.toBe(busy)
    expect(limitOf('a')).toBe(busy)
  })
})

describe('the queue', () => {
  it('lets attempts in by turns, and refuses what finds it full', async () => {
    const events = heard(retryLimit)
    const refusals = heard(retryRefused)
    const { policy, clock, outs, body, state } = limited(1, 2)
    const calls = ['a', 'b', 'c'].map((name) => policy.run(readOnly(), body).then((value) => `${name}: ${value}`))
    await expect(policy.run(readOnly(), body)).rejects.toMatchObject(refusal('queue'))
    expect(state()).toEqual({ out: 1, waiting: 2, sent: 1 })
    for (const [place, value] of ['1', '2', '3'].entries()) {
      await clock.advance(10)
      outs[place]?.resolve(value)
      await calls[place]
    }
    expect(await Promise.all(calls)).toEqual(['a: 1', 'b: 2', 'c: 3'])
    expect(state()).toEqual({ ...isIdle, sent: 3 })
    expect(events).toEqual([
      { policy: 'search', ended: 'queue', waitedMs: 0, out: 1, waiting: 2 },
      { policy: 'search', ended: 'entered', waitedMs: 10, out: 1, waiting: 1 },
      { policy: 'search', ended: 'entered', waitedMs: 20, out: 1, waiting: 0 },
    ])
    expect(refusals).toEqual([{ policy: 'search', by: 'limit' }])
  })

  it('is left at the deadline, less what an attempt needs: unsent, and by its own code', async () => {
    const events = heard(retryLimit)
    const { policy, clock, limit, outs, body } = limited(1, 1, { minimumRemainder: 20 })
    const first = policy.run(readOnly(), body)
    const second = policy.run(readOnly(), body, { deadline: 100 }).catch((error: unknown) => error)
    await clock.advance(79)
    expect(limit.waiting).toBe(1)
    await clock.advance(1)
    expect(await second).toMatchObject(refusal('deadline'))
    expect(limit.waiting).toBe(0)
    expect(events).toMatchObject([{ ended: 'deadline', waitedMs: 80 }])
    outs[0]?.resolve('first')
    await first
    expect(outs).toHaveLength(1)
    expect(limit).toMatchObject(isIdle)
    expect(clock.pendingTimers).toBe(0)
  })

  it('is left when the caller leaves, with the reason', async () => {
    const events = heard(retryLimit)
    const refusals = heard(retryRefused)
    const { policy, limit, outs, body } = limited(1, 1)
    const first = policy.run(readOnly(), body)
    const controller = new AbortController()
    const second = policy.run(readOnly(), body, { signal: controller.signal }).catch((error: unknown) => error)
    const reason = new Error('mine')
    controller.abort(reason)
    expect(await second).toBe(reason)
    expect(limit).toMatchObject({ out: 1, waiting: 0 })
    outs[0]?.resolve('first')
    await first
    expect(limit).toMatchObject(isIdle)
    expect(outs).toHaveLength(1)
    expect(events).toMatchObject([{ ended: 'signal' }])
    expect(refusals).toEqual([{ policy: 'search', by: 'signal' }])
  })

  it.each([
    ['plain', {}],
    ['hedged', { hedge: hedging({ after: 100 }) }],
  ])('%s: gives the slot back where the caller leaves between its turn and its attempt', async (_name, way) => {
    const { policy, limit, outs, body } = limited(1, 1, way)
    const first = policy.run(readOnly(), body)
    const controller = new AbortController()
    const second = policy.run(readOnly(), body, { signal: controller.signal }).catch((error: unknown) => error)
    outs[0]?.resolve('first')
    // It has its turn some microtasks before its attempt begins.
    for (let turns = 0; limit.waiting > 0 && turns < 20; turns++) await null
    expect(limit).toMatchObject({ out: 1, waiting: 0 })
    controller.abort('left')
    await first
    expect(await second).toBe('left')
    expect(outs).toHaveLength(1)
    expect(limit).toMatchObject(isIdle)
  })

  it('gives the slot on where its turn comes too late for an attempt: the event loop was blocked', async () => {
    const behind = manualClock()
    let blockedMs = 0
    const clock = { ...behind, monotonicMs: () => behind.monotonicMs() + blockedMs }
    const { policy, limit, outs, body } = limited(1, 2, { clock })
    const first = policy.run(readOnly(), body)
    const late = policy.run(readOnly(), body, { deadline: 100 }).catch((error: unknown) => error)
    const third = policy.run(readOnly(), body)
    blockedMs = 200
    outs[0]?.resolve('first')
    await first
    expect(await late).toMatchObject(refusal('deadline'))
    await behind.advance(1)
    outs[1]?.resolve('third')
    expect(await third).toBe('third')
    expect(outs).toHaveLength(2)
    expect(limit).toMatchObject(isIdle)
  })

  it('time in the queue is no time of the attempt', async () => {
    const { policy, clock, limit, outs, body } = limited(1, 1, { attemptTimeout: 100, attempts: 1 })
    const first = policy.run(readOnly(), body).catch((error: { code: string }) => error.code)
    const second = policy.run(readOnly(), body)
    await clock.advance(100)
    expect(await first).toBe('ATTEMPT_TIMEOUT')
    await clock.advance(99)
    outs[1]?.resolve('second')
    expect(await second).toBe('second')
    expect(limit).toMatchObject(isIdle)
  })

  it('is for nobody while the breaker is open, and empties when it opens', async () => {
    const breaker = consecutiveBreaker({ failures: 1, openFor: '1s' })
    const { policy, limit, outs, body } = limited(2, 5, { breaker, attempts: 1 })
    const [first, second] = [policy.run(readOnly(), body), policy.run(readOnly(), body)]
    const waits = policy.run(readOnly(), body).catch((error: unknown) => error)
    outs[0]?.reject(new Flaky())
    await first.catch(() => undefined)
    expect(await waits).toMatchObject({ code: 'BREAKER_OPEN' })
    const third = limit.out
    await expect(policy.run(readOnly(), body)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect([third, limit.out, limit.waiting]).toEqual([1, 1, 0])
    const held = concurrency({ most: 1, queue: 5 })
    const full = setup({ limit: held, breaker }).policy
    void retryPolicy({ limit: held }).run(readOnly(), body)
    await expect(full.run(readOnly(), body)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect(held.waiting).toBe(0)
    outs[1]?.resolve('second')
    expect(await second).toBe('second')
    expect(limit).toMatchObject(isIdle)
  })
})

describe('a slot is given back once, whatever ends its attempt', () => {
  const ends: Record<string, (made: ReturnType<typeof limited>, call: AbortController) => unknown> = {
    success: ({ outs }) => outs[0]?.resolve('done'),
    'a throw that is final': ({ outs }) => outs[0]?.reject(new Error('final')),
    'a throw, repeated to the last': ({ outs }) => {
      for (const { reject } of outs) reject(new Flaky())
    },
    'the signal': (_, call) => call.abort('left'),
    'a time-out': ({ clock }) => clock.advance('10s'),
    'a result that cannot be looked at': ({ outs }) =>
      outs[0]?.resolve(
        new Proxy(
          {},
          {
            get(_target, name) {
              if (name === 'then') return undefined
              throw new Error('hostile')
            },
          },
        ) as never,
      ),
  }
  const ways = { plain: {}, hedged: { hedge: hedging({ after: 50 }) } } as const
  const cases = Object.keys(ways).flatMap((way) => Object.keys(ends).map((end) => [way, end] as const))

  it.each(cases)('%s: %s', async (way, end) => {
    const made = limited(2, 1, { attempts: 2, attemptTimeout: '5s', ...ways[way as keyof typeof ways] })
    const { policy, clock, limit, body } = made
    const controller = new AbortController()
    const call = policy.run(readOnly(), body, { signal: controller.signal }).catch(() => undefined)
    await clock.advance(60)
    expect(limit.out).toBe(way === 'hedged' ? 2 : 1)
    for (let turn = 0; turn < 3; turn++) {
      await ends[end]?.(made, controller)
      await clock.advance(200)
    }
    await settle(clock, call)
    expect(limit).toMatchObject(isIdle)
    // Late ends of bodies that nobody waits for give nothing back a second time.
    for (const { resolve } of made.outs) resolve('late')
    await clock.advance(10)
    expect(limit).toMatchObject(isIdle)
    expect([limit.out, clock.pendingTimers]).toEqual([0, 0])
  })

  it.each(Object.entries(ways))('%s: a breaker of the user that throws', async (_name, way) => {
    const breaker = {
      ...consecutiveBreaker(),
      tryEnter: () => {
        throw new Error('a mistake')
      },
    }
    const { policy, limit, body } = limited(1, 0, { breaker, ...way })
    await expect(policy.run(readOnly(), body)).rejects.toThrow('a mistake')
    expect(limit).toMatchObject(isIdle)
  })
})

describe('hedges under a limit', () => {
  const hedge = hedging({ after: 100 })

  it('take slots of their own, and losers give theirs back when a hedge wins', async () => {
    const { policy, clock, limit, outs, body } = limited(3, 0, { hedge })
    const call = policy.run(readOnly(), body)
    await clock.advance(250)
    expect(limit.out).toBe(3)
    outs[1]?.resolve('second')
    expect(await call).toBe('second')
    expect(limit).toMatchObject(isIdle)
    outs[0]?.resolve('first')
    outs[2]?.reject(new Flaky())
    await clock.advance(10)
    expect(limit).toMatchObject(isIdle)
  })

  it('never wait: where no slot is free the attempt that is out goes on alone', async () => {
    const events = heard(retryHedge)
    const { policy, clock, limit, outs, body } = limited(1, 5, { hedge })
    const call = policy.run(readOnly(), body)
    await clock.advance(500)
    expect(events).toEqual([{ policy: 'search', attempt: 2, out: 1, refused: 'limit' }])
    expect(limit).toMatchObject({ out: 1, waiting: 0 })
    outs[0]?.resolve('only')
    expect(await call).toBe('only')
    expect(limit).toMatchObject(isIdle)
  })

  it('a first attempt waits in its turn; a caller who leaves meanwhile leaves the queue', async () => {
    const { policy, clock, limit, outs, body } = limited(1, 2, { hedge })
    const first = policy.run(readOnly(), body)
    const controller = new AbortController()
    const left = policy.run(readOnly(), body, { signal: controller.signal }).catch((error: unknown) => error)
    const third = policy.run(readOnly(), body)
    expect(limit.waiting).toBe(2)
    controller.abort('left')
    expect(await left).toBe('left')
    expect(limit.waiting).toBe(1)
    outs[0]?.resolve('first')
    expect(await first).toBe('first')
    await clock.advance(1)
    outs[1]?.resolve('third')
    expect(await third).toBe('third')
    expect(limit).toMatchObject(isIdle)
    expect(clock.pendingTimers).toBe(0)
  })

  it('a first attempt that finds the queue full is refused', async () => {
    const { policy, limit, outs, body } = limited(1, 0, { hedge })
    const first = policy.run(readOnly(), body)
    await expect(policy.run(readOnly(), body)).rejects.toMatchObject(refusal('queue'))
    outs[0]?.resolve('first')
    await first
    expect(limit).toMatchObject(isIdle)
  })
})

describe('a limit as data', () => {
  it('is part of the policy, and is made from it', () => {
    const data = JSON.parse(JSON.stringify(retryPolicy({ limit: concurrency({ most: 3 }) })))
    expect(data.limit).toEqual({ kind: 'concurrency', most: 3, queue: 0 })
    expect(policyFrom(data).toJSON()).toEqual(data)
  })

  it('refuses another kind, members nobody knows, and what is no limit', () => {
    const invalid = expect.objectContaining({ code: 'POLICY_INVALID' })
    expect(() => limitFrom({ kind: 'rate', most: 1, queue: 0 } as never)).toThrow(invalid)
    expect(() => concurrency({ most: 1, queu: 5 } as never)).toThrow(invalid)
    expect(() => concurrency({} as never)).toThrow(invalid)
    expect(() => retryPolicy({ limit: { most: 3, queue: 0 } as never })).toThrow(invalid)
  })
})
