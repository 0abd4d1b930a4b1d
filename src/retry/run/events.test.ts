import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Flaky, failing, settle, setup } from '../../../test/retry/virtual-policy.js'
import { type EventChannel, retryAttempt, retryBreaker, retryHedge, retryRefused } from '../../telemetry/index.js'
import { constantDelay } from '../backoff.js'
import { readOnly } from '../guard.js'
import { type AttemptRecord, historyOf } from '../history.js'
import type { RetryPolicyOptions } from '../options.js'
import { retryPolicy } from '../policy.js'
import { consecutiveBreaker } from '../target/breaker.js'
import { tokenBudget } from '../target/budget.js'
import { hedging } from './hedge.js'

const leave: (() => void)[] = []
afterEach(() => {
  for (const stop of leave.splice(0)) stop()
  vi.restoreAllMocks()
})

function heard<Message>({ name }: EventChannel<Message>): Message[] {
  const messages: Message[] = []
  const listen = (message: unknown) => void messages.push(message as Message)
  diagnostics.subscribe(name, listen)
  leave.push(() => diagnostics.unsubscribe(name, listen))
  return messages
}

function hedgingPolicy(options: RetryPolicyOptions = {}) {
  const made = setup({ name: 'search', hedge: hedging({ after: 100 }), layer: 'own', ...options })
  const outs: { resolve: (value: string) => void; reject: (error: unknown) => void }[] = []
  const body = () => new Promise<string>((resolve, reject) => void outs.push({ resolve, reject }))
  return { ...made, outs, body }
}

describe('events of hedges', () => {
  it('tell of each one sent, and of the end of the attempts', async () => {
    const events = heard(retryHedge)
    const { policy, clock, outs, body } = hedgingPolicy()
    const result = policy.run(readOnly(), body)
    await clock.advance(50)
    expect(events).toEqual([])
    await clock.advance(50)
    expect(events).toEqual([{ policy: 'search', attempt: 2, out: 1 }])
    await clock.advance(100)
    expect(events.slice(1)).toEqual([
      { policy: 'search', attempt: 3, out: 2 },
      { policy: 'search', attempt: 4, out: 3, refused: 'attempts' },
    ])
    outs[0]?.resolve('first')
    expect(await result).toBe('first')
    await clock.advance('1s')
    expect(events).toHaveLength(3)
  })

  it('tell of one that a failure sent', async () => {
    const events = heard(retryHedge)
    const attempts = heard(retryAttempt)
    const { policy, clock, outs, body } = hedgingPolicy()
    const history: AttemptRecord[] = []
    const result = policy.run(readOnly(), body, { history })
    outs[0]?.reject(new Flaky())
    await clock.advance(1)
    expect(events).toEqual([{ policy: 'search', attempt: 2, out: 0 }])
    outs[1]?.resolve('second')
    expect(await result).toBe('second')
    // It went at once: there was no wait, and none is told of.
    expect(attempts).toMatchObject([{ attempt: 1, delayMs: 0 }])
    expect(history).toMatchObject([{ number: 1 }])
    expect(history[0]).not.toHaveProperty('delayMs')
  })

  it('tell of refusals by the budget', async () => {
    const events = heard(retryHedge)
    const budget = tokenBudget({ maxTokens: 2 })
    budget.failed(0, false)
    const { policy, clock, outs, body } = hedgingPolicy({ budget })
    const result = policy.run(readOnly(), body)
    await clock.advance(500)
    expect(events).toEqual([{ policy: 'search', attempt: 2, out: 1, refused: 'budget' }])
    outs[0]?.resolve('only')
    expect(await result).toBe('only')
  })

  it('tell of refusals by the breaker', async () => {
    const events = heard(retryHedge)
    const breaker = consecutiveBreaker()
    const { policy, clock, outs, body } = hedgingPolicy({ breaker })
    const result = policy.run(readOnly(), body)
    breaker.isolate()
    await clock.advance(500)
    expect(events).toEqual([{ policy: 'search', attempt: 2, out: 1, refused: 'breaker' }])
    outs[0]?.resolve('only')
    expect(await result).toBe('only')
  })

  it('tell of refusals by the deadline', async () => {
    const events = heard(retryHedge)
    const { policy, clock, outs, body } = hedgingPolicy({ deadline: 150, minimumRemainder: 60 })
    const result = policy.run(readOnly(), body)
    await clock.advance(120)
    expect(events).toEqual([{ policy: 'search', attempt: 2, out: 1, refused: 'deadline' }])
    outs[0]?.resolve('only')
    expect(await result).toBe('only')
  })
})

describe('events of breakers', () => {
  it('tell of every change of state, why, and of the first policy', async () => {
    const events = heard(retryBreaker)
    const breaker = consecutiveBreaker({ failures: 2, openFor: '1s' })
    const { policy, clock } = setup({ name: 'gateway', attempts: 1, breaker })
    retryPolicy({ name: 'other', breaker })
    const call = (failures: number) =>
      settle(clock, policy.run(readOnly(), failing(failures, () => new Flaky()).body)).catch(() => undefined)
    await call(1)
    expect(events).toEqual([])
    await call(1)
    await call(1) // refused
    await clock.advance('1s')
    await call(1)
    await clock.advance('1s')
    await call(0)
    const saved = breaker.snapshot(clock.monotonicMs())
    breaker.open(clock.monotonicMs())
    breaker.isolate()
    breaker.isolate()
    breaker.close()
    breaker.isolate()
    breaker.restore(saved, clock.monotonicMs())
    const changes = events.map(({ policy, from, to, why }) => `${policy}: ${from} > ${to}, ${why}`)
    expect(changes).toEqual([
      'gateway: closed > open, failures',
      'gateway: open > half-open, time',
      'gateway: half-open > open, probe-failed',
      'gateway: open > half-open, time',
      'gateway: half-open > closed, probes-succeeded',
      'gateway: closed > open, by-hand',
      'gateway: open > isolated, by-hand',
      'gateway: isolated > closed, by-hand',
      'gateway: closed > isolated, by-hand',
      'gateway: isolated > closed, restored',
    ])
  })

  it('name no policy where there is none', () => {
    const events = heard(retryBreaker)
    consecutiveBreaker().isolate()
    expect(events).toEqual([{ from: 'closed', to: 'isolated', why: 'by-hand' }])
  })
})

it('nothing is published while nobody listens', async () => {
  const channels = [retryAttempt, retryBreaker, retryHedge, retryRefused]
  const published = channels.map((channel) => vi.spyOn(channel, 'publish'))
  const breaker = consecutiveBreaker({ failures: 1 })
  const { policy, clock, outs, body } = hedgingPolicy({ breaker, attempts: 2 })
  const result = policy.run(readOnly(), body)
  await clock.advance(500)
  expect(outs).toHaveLength(2)
  for (const { reject } of outs) reject(new Flaky())
  await expect(result).rejects.toThrow()
  await expect(policy.run(readOnly(), body)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
  for (const publish of published) expect(publish).not.toHaveBeenCalled()
})

describe('events of refusals', () => {
  it('tell of a signal that was aborted before', async () => {
    const refusals = heard(retryRefused)
    const { policy } = setup({ name: 'early' })
    await expect(policy.run(readOnly(), () => 1, { signal: AbortSignal.abort('gone') })).rejects.toBe('gone')
    expect(refusals).toEqual([{ policy: 'early', by: 'signal' }])
  })

  it('tell of a repeat that a deadline took while it waited', async () => {
    const refusals = heard(retryRefused)
    const { policy, clock } = setup({ name: 'late', deadline: 300 })
    // The event loop is blocked, so that the wait ends past the deadline.
    const monotonicMs = clock.monotonicMs
    let blockedMs = 0
    Object.assign(clock, { monotonicMs: () => monotonicMs() + blockedMs })
    const { body, calls } = failing(9, () => new Flaky())
    const running = policy.run(readOnly(), body).catch((reason: unknown) => reason)
    await clock.advance(50)
    blockedMs = 400
    await clock.advance(60)
    expect(historyOf(await running)?.stop).toBe('deadline')
    expect(calls).toHaveLength(1)
    expect(refusals).toEqual([{ policy: 'late', by: 'deadline' }])
  })
})

describe('the wait in a record', () => {
  it('is there when it is over', async () => {
    const { policy, clock } = setup({ backoff: constantDelay(100) })
    const history: AttemptRecord[] = []
    await settle(clock, policy.run(readOnly(), failing(2, () => new Flaky()).body, { history }))
    expect(history).toMatchObject([
      { number: 1, delayMs: 100 },
      { number: 2, delayMs: 100 },
    ])
  })

  it('is absent when it was cut short, though the event told of the decision', async () => {
    const [attempts, refusals] = [heard(retryAttempt), heard(retryRefused)]
    const { policy, clock } = setup({ name: 'aborted', backoff: constantDelay(100) })
    const history: AttemptRecord[] = []
    const controller = new AbortController()
    const { body, calls } = failing(9, () => new Flaky())
    const running = policy.run(readOnly(), body, { history, signal: controller.signal })
    await clock.advance(150)
    expect(calls).toHaveLength(2)
    controller.abort(new Error('enough'))
    const error = await running.catch((reason: unknown) => reason)
    expect(history.map(({ number, delayMs }) => [number, delayMs])).toEqual([
      [1, 100],
      [2, undefined],
    ])
    expect(history[1]).not.toHaveProperty('delayMs')
    expect(historyOf(error)).toMatchObject({ stop: 'aborted', attempts: history })
    expect(attempts.map(({ delayMs }) => delayMs)).toEqual([100, 100])
    expect(refusals).toEqual([{ policy: 'aborted', by: 'signal' }])
  })

  it('does not get in the way of records and errors that are frozen', async () => {
    const { policy, clock } = setup()
    const history: AttemptRecord[] = []
    const error = Object.freeze(Object.defineProperty(new Flaky(), 'history', { value: 'mine', writable: false }))
    const body = () => {
      for (const record of history) Object.freeze(record)
      return Promise.reject(error)
    }
    const freezing = new Proxy(history, {
      set: (target, index, value) =>
        Reflect.set(target, index, typeof value === 'object' ? Object.freeze(value) : value),
    })
    const thrown = await settle(clock, policy.run(readOnly(), body, { history: freezing })).catch((e: unknown) => e)
    expect(thrown).toBe(error)
    expect(error).toHaveProperty('history', 'mine')
    expect(historyOf(error)).toMatchObject({ stop: 'attempts' })
    expect(history).toHaveLength(3)
    const unguarded = await policy.once(() => Promise.reject(error)).catch((e: unknown) => e)
    expect(unguarded).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: error })
  })
})
