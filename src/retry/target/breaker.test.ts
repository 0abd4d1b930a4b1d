import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kernel/index.js'
import { equalJitter, fullJitter, noJitter } from '../backoff.js'
import {
  type Breaker,
  type BreakerSnapshot,
  breakerFrom,
  consecutiveBreaker,
  countBreaker,
  windowBreaker,
} from './breaker.js'

function call(breaker: Breaker, nowMs: number, result: 'succeeded' | 'failed'): void {
  const pass = breaker.tryEnter(nowMs)
  expect(pass).toBeGreaterThan(0)
  breaker[result](pass, nowMs)
}

function calls(breaker: Breaker, nowMs: number, results: string): void {
  for (const result of results) call(breaker, nowMs, result === 'f' ? 'failed' : 'succeeded')
}

describe('consecutiveBreaker', () => {
  it('opens after so many failures in a row, and a success begins anew', () => {
    const breaker = consecutiveBreaker({ failures: 3, openFor: 1000 })
    calls(breaker, 0, 'ffsff')
    expect(breaker.state(0)).toBe('closed')
    calls(breaker, 0, 'f')
    expect(breaker.state(0)).toBe('open')
    expect(breaker.tryEnter(999)).toBe(0)
  })

  it('closes after a good probe and forgets', () => {
    const breaker = consecutiveBreaker({ failures: 2, openFor: 1000 })
    calls(breaker, 0, 'ff')
    expect(breaker.state(1000)).toBe('half-open')
    calls(breaker, 1000, 's')
    expect(breaker.state(1000)).toBe('closed')
    calls(breaker, 1000, 'f')
    expect(breaker.state(1000)).toBe('closed')
  })

  it('opens again after a failed probe, for the same time', () => {
    const breaker = consecutiveBreaker({ failures: 2, openFor: 1000 })
    calls(breaker, 0, 'ff')
    calls(breaker, 1500, 'f')
    expect([breaker.tryEnter(2499), breaker.state(2499), breaker.state(2500)]).toEqual([0, 'open', 'half-open'])
  })

  it('ignores what says nothing about the target', () => {
    const breaker = consecutiveBreaker({ failures: 2 })
    calls(breaker, 0, 'f')
    breaker.ignored(breaker.tryEnter(0))
    expect(breaker.state(0)).toBe('closed')
    calls(breaker, 0, 'f')
    expect(breaker.state(0)).toBe('open')
  })
})

describe('countBreaker', () => {
  it('judges the latest calls only', () => {
    const breaker = countBreaker({ size: 4, failureRatio: 0.5, minimumCalls: 4 })
    calls(breaker, 0, 'fssssf')
    expect(breaker.state(0)).toBe('closed')
    calls(breaker, 0, 'f')
    expect(breaker.state(0)).toBe('open')
  })

  it('judges nothing before the minimum, and a success never opens it', () => {
    const breaker = countBreaker({ size: 10, failureRatio: 0.5, minimumCalls: 5 })
    calls(breaker, 0, 'ffffs')
    expect(breaker.state(0)).toBe('closed')
    calls(breaker, 0, 'f')
    expect(breaker.state(0)).toBe('open')
  })

  it('counts 7 of 100 as 0.07', () => {
    const breaker = countBreaker({ size: 100, failureRatio: 0.07, minimumCalls: 100 })
    calls(breaker, 0, `${'s'.repeat(93)}ffffff`)
    expect(breaker.state(0)).toBe('closed')
    calls(breaker, 0, 'f')
    expect(breaker.state(0)).toBe('open')
  })
})

describe('windowBreaker', () => {
  const options = { window: '5s', failureRatio: 0.5, minimumCalls: 5 } as const

  it('opens at the share of failures in the window', () => {
    const breaker = windowBreaker(options)
    calls(breaker, 0, 'sss')
    calls(breaker, 2000, 'ff')
    expect(breaker.state(2000)).toBe('closed')
    calls(breaker, 4000, 'f')
    expect(breaker.state(4000)).toBe('open')
  })

  it('forgets step by step what has left the window', () => {
    const breaker = windowBreaker(options)
    calls(breaker, 0, 'ff')
    calls(breaker, 3000, 'ff')
    calls(breaker, 5000, 'f')
    expect(breaker.state(5000)).toBe('closed')
  })

  it('cockatiel SamplingBreaker: after an hour of idle time no old failure counts', () => {
    for (const idleMs of [5_000, 10_000, 17_500, 3_600_000, 1e12]) {
      const breaker = windowBreaker({ window: '5s', failureRatio: 0.5, minimumCalls: 42 })
      calls(breaker, 0, 'f'.repeat(41))
      calls(breaker, idleMs, 'f')
      expect(breaker.state(idleMs)).toBe('closed')
      expect(breaker.snapshot(idleMs).evidence.reduce((sum, count) => sum + count, 0)).toBe(2)
    }
  })

  it('takes a time that goes back for the latest it has seen', () => {
    const breaker = windowBreaker(options)
    calls(breaker, 60_000, 'ffff')
    calls(breaker, 1_000, 'f')
    expect(breaker.state(1_000)).toBe('open')
  })
})

describe('half-open', () => {
  const opened = (probes: number): Breaker => {
    const breaker = consecutiveBreaker({ failures: 1, openFor: 1000, probes })
    calls(breaker, 0, 'f')
    return breaker
  }

  it('lets in no more than the probes, and closes when all of them succeeded', () => {
    const breaker = opened(2)
    const [first, second, third] = [breaker.tryEnter(1000), breaker.tryEnter(1000), breaker.tryEnter(1000)]
    expect(third).toBe(0)
    breaker.succeeded(first, 1001)
    expect([breaker.state(1001), breaker.tryEnter(1001)]).toEqual(['half-open', 0])
    breaker.succeeded(second, 1002)
    expect(breaker.state(1002)).toBe('closed')
  })

  it('gives the place of an ignored probe to the next call', () => {
    const breaker = opened(1)
    breaker.ignored(breaker.tryEnter(1000))
    expect(breaker.state(1000)).toBe('half-open')
    calls(breaker, 1001, 's')
    expect(breaker.state(1001)).toBe('closed')
  })

  it('does not wait for ever for a probe that never reports back', () => {
    const breaker = opened(1)
    const lost = breaker.tryEnter(1000)
    expect(breaker.tryEnter(1999)).toBe(0)
    const next = breaker.tryEnter(2000)
    expect(next).toBeGreaterThan(0)
    // The lost one comes back after all: it is not the probe any more.
    breaker.failed(lost, 2001)
    expect(breaker.state(2001)).toBe('half-open')
    breaker.succeeded(next, 2002)
    expect(breaker.state(2002)).toBe('closed')
  })

  it('opossum #119: a late success of a call from before does not close an open breaker', () => {
    const breaker = consecutiveBreaker({ failures: 2, openFor: 1000 })
    const late = breaker.tryEnter(0)
    calls(breaker, 0, 'ff')
    breaker.succeeded(late, 10)
    expect(breaker.state(10)).toBe('open')
    // Nor does it count as the probe.
    const probe = breaker.tryEnter(1000)
    breaker.succeeded(late, 1001)
    expect(breaker.state(1001)).toBe('half-open')
    breaker.succeeded(probe, 1002)
    expect(breaker.state(1002)).toBe('closed')
  })

  it('opossum #119: a late failure of a call from before does not open a breaker that closed since', () => {
    const breaker = opened(1)
    breaker.close()
    const late = breaker.tryEnter(0)
    calls(breaker, 0, 'f')
    calls(breaker, 1000, 's')
    breaker.failed(late, 1001)
    expect(breaker.state(1001)).toBe('closed')
  })
})

describe('a growing openFor', () => {
  it('grows with each trip, and begins anew once closed', () => {
    const breaker = consecutiveBreaker({ failures: 1, openFor: noJitter({ baseMs: 100, capMs: 400 }) })
    const opensFor: number[] = []
    let nowMs = 0
    for (let trip = 0; trip < 4; trip += 1) {
      calls(breaker, nowMs, 'f')
      opensFor.push(breaker.snapshot(nowMs).remainingMs)
      nowMs += breaker.snapshot(nowMs).remainingMs
    }
    expect(opensFor).toEqual([100, 200, 400, 400])
    calls(breaker, nowMs, 'sf')
    expect(breaker.snapshot(nowMs).remainingMs).toBe(100)
  })

  it('draws from the chance it was given', () => {
    const openFor = (): number => {
      const breaker = countBreaker({ openFor: equalJitter(), random: seededRandom(7) })
      breaker.open(0)
      return breaker.snapshot(0).remainingMs
    }
    expect(openFor()).toBe(openFor())
    expect(openFor()).toBeGreaterThanOrEqual(25)
  })
})

describe('by hand', () => {
  it('opens, isolates and closes', () => {
    const breaker = windowBreaker({ openFor: 1000 })
    breaker.open(0)
    expect([breaker.state(999), breaker.state(1000)]).toEqual(['open', 'half-open'])
    breaker.isolate()
    expect([breaker.state(1e9), breaker.tryEnter(1e9)]).toEqual(['isolated', 0])
    breaker.close()
    expect(breaker.state(0)).toBe('closed')
    expect(breaker.tryEnter(0)).toBeGreaterThan(0)
  })
})

describe('state as a value', () => {
  it('is taken over by another breaker, times relative', () => {
    const breaker = consecutiveBreaker({ failures: 2, openFor: 1000 })
    calls(breaker, 5000, 'ff')
    const saved: BreakerSnapshot = JSON.parse(JSON.stringify(breaker.snapshot(5400)))
    expect(saved).toEqual({ state: 'open', remainingMs: 600, openForMs: 1000, trips: 1, evidence: [] })
    const other = consecutiveBreaker({ failures: 2, openFor: 1000 })
    other.restore(saved, 0)
    expect([other.tryEnter(599), other.state(600)]).toEqual([0, 'half-open'])
  })

  it('makes the reports of calls from before the restoring count for nothing', () => {
    const breaker = consecutiveBreaker({ failures: 1 })
    const pass = breaker.tryEnter(0)
    breaker.restore(breaker.snapshot(0), 0)
    breaker.failed(pass, 0)
    expect(breaker.state(0)).toBe('closed')
  })

  it('keeps the evidence of a window', () => {
    const breaker = windowBreaker({ window: 1000, minimumCalls: 3, failureRatio: 1 })
    calls(breaker, 0, 'f')
    calls(breaker, 500, 'f')
    const other = windowBreaker({ window: 1000, minimumCalls: 3, failureRatio: 1 })
    other.restore(breaker.snapshot(500), 9000)
    calls(other, 9400, 'f')
    expect(other.state(9400)).toBe('open')
    other.restore(breaker.snapshot(500), 9000)
    calls(other, 9600, 'f')
    expect(other.state(9600)).toBe('closed')
  })

  const good: BreakerSnapshot = { state: 'open', remainingMs: 1, openForMs: 2, trips: 1, evidence: [] }
  const wrong: readonly [string, object][] = [
    ['state', { state: 'half-open' }],
    ['state', { state: 'closed', openForMs: 1, trips: 1, evidence: [1] }],
    ['state', { state: undefined }],
    ['remainingMs', { remainingMs: 3 }],
    ['remainingMs', { remainingMs: -1 }],
    ['openForMs', { openForMs: Number.NaN }],
    ['trips', { trips: 0 }],
    ['trips', { trips: 1.5 }],
    ['evidence', { evidence: 'ff' }],
    ['evidence', { evidence: [1] }],
    ['evidence', { evidence: [1, 2] }],
    ['evidence', { evidence: [1, -1] }],
    ['evidence', { evidence: [1, 0, 1, 0, 1, 0] }],
    ['evidence', { evidence: ['1', 0] }],
  ]
  for (const [index, [field, change]] of wrong.entries()) {
    it(`is refused if ${field} is wrong (${index}), and nothing changes`, () => {
      const breaker = consecutiveBreaker({ failures: 2 })
      const pass = breaker.tryEnter(0)
      expect(() => breaker.restore({ ...good, ...change } as BreakerSnapshot, 0)).toThrow(
        expect.objectContaining({ code: 'POLICY_INVALID' }),
      )
      breaker.failed(pass, 0)
      calls(breaker, 0, 'f')
      expect(breaker.state(0)).toBe('open')
    })
  }

  it('a good one is accepted', () => {
    expect(() => consecutiveBreaker({ failures: 2 }).restore(good, 0)).not.toThrow()
    for (const nothing of [null, undefined, 'open', 5n]) {
      const refused = expect.objectContaining({ code: 'POLICY_INVALID', details: { path: 'breaker.snapshot' } })
      expect(() => consecutiveBreaker().restore(nothing as never, 0)).toThrow(refused)
    }
  })
})

describe('settings', () => {
  it('are data, and read back', () => {
    const openFor = { kind: 'constant', baseMs: 10_000, capMs: 10_000 } as const
    expect(consecutiveBreaker().data).toEqual({ kind: 'consecutive', failures: 5, openFor, probes: 1 })
    for (const { data } of [consecutiveBreaker(), countBreaker(), windowBreaker({ openFor: equalJitter() })]) {
      expect(breakerFrom(JSON.parse(JSON.stringify(data))).data).toEqual(data)
    }
  })

  it.each([
    ['breaker.failures', () => consecutiveBreaker({ failures: 0 })],
    ['breaker.failures', () => consecutiveBreaker({ failures: 1.5 })],
    ['breaker.probes', () => consecutiveBreaker({ probes: 0 })],
    ['breaker.openFor', () => consecutiveBreaker({ openFor: 0 })],
    ['breaker.openFor', () => consecutiveBreaker({ openFor: fullJitter() })],
    ['breaker.size', () => countBreaker({ size: 0 })],
    ['breaker.minimumCalls', () => countBreaker({ size: 5, minimumCalls: 6 })],
    ['breaker.failureRatio', () => countBreaker({ failureRatio: 0 })],
    ['breaker.failureRatio', () => windowBreaker({ failureRatio: 1.01 })],
    ['breaker.windowMs', () => windowBreaker({ window: 0 })],
    ['breaker.minimumCalls', () => windowBreaker({ minimumCalls: 0 })],
    ['breaker', () => breakerFrom(null as never)],
    ['breaker.openFor', () => breakerFrom({} as never)],
    ['breaker.kind', () => breakerFrom({ ...consecutiveBreaker().data, kind: 'other' } as never)],
    ['breaker.size', () => breakerFrom({ ...countBreaker().data, size: undefined } as never)],
  ])('are refused when built: %s (%#)', (path, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }))
  })
})
