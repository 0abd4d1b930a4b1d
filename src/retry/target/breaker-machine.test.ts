import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { systemRandom } from '../../kernel/index.js'
import { noJitter } from '../backoff.js'
import { type BreakerData, breakerFrom } from './breaker.js'
import { firstState, type Machine, step } from './breaker-machine.js'

describe('step', () => {
  const openFor = noJitter({ baseMs: 100, capMs: 400 })
  const machine: Machine = { windowMs: Infinity, length: 4, failureRatio: 1, minimumCalls: 2, openFor, probes: 1 }

  it('is pure: the state handed in stays as it was', () => {
    const before = Object.freeze({ ...firstState, evidence: Object.freeze([1, 1]) as readonly number[] })
    const after = step(machine, before, 'failed', 10, systemRandom, 1)
    expect(after).toEqual({ ...firstState, mode: 'open', generation: 2, trips: 1, openForMs: 100, untilMs: 110 })
    expect(step(machine, before, 'failed', 10, systemRandom, 1)).toEqual(after)
  })

  it('makes no new state for a success of a healthy target', () => {
    const healthy = { ...firstState, evidence: [1, 0, 1, 0] }
    expect(step(machine, healthy, 'succeeded', 10, systemRandom, 1)).toBe(healthy)
    expect(step(machine, healthy, 'enter', 10, systemRandom)).toBe(healthy)
  })
})

// The model keeps everything that ever happened in lists, and looks it all up again each time.
class Model {
  readonly data: BreakerData
  mode: 'closed' | 'open' | 'half-open' | 'isolated' = 'closed'
  period: object = {}
  history: { ms: number; failed: boolean }[] = []
  untilMs = 0
  out = 0
  good = 0

  constructor(data: BreakerData) {
    this.data = data
  }

  change(mode: Model['mode'], untilMs = 0): void {
    Object.assign(this, { mode, untilMs, period: {}, history: [], out: 0, good: 0 })
  }

  enter(nowMs: number): object | undefined {
    if (this.mode === 'closed') return this.period
    if (this.mode === 'isolated') return undefined
    const full = this.mode === 'open' || this.out + this.good >= this.data.probes
    if (full && nowMs < this.untilMs) return undefined
    if (full) this.change('half-open')
    this.out += 1
    this.untilMs = nowMs + this.data.openFor.baseMs
    return this.period
  }

  report(period: object, result: 'succeeded' | 'failed' | 'ignored', nowMs: number): void {
    if (period !== this.period) return
    if (this.mode === 'half-open') {
      this.out -= 1
      if (result === 'failed') this.change('open', nowMs + this.data.openFor.baseMs)
      if (result !== 'succeeded') return
      this.good += 1
      if (this.good === this.data.probes) this.change('closed')
      return
    }
    if (this.mode !== 'closed' || result === 'ignored') return
    this.history.push({ ms: nowMs, failed: result === 'failed' })
    if (result === 'failed' && this.trips(nowMs)) this.change('open', nowMs + this.data.openFor.baseMs)
  }

  trips(nowMs: number): boolean {
    const { data } = this
    if (data.kind === 'consecutive') {
      const latest = this.history.slice(-data.failures)
      return latest.length === data.failures && latest.every(({ failed }) => failed)
    }
    const step = (ms: number): number => (data.kind === 'window' ? Math.floor((ms * 10) / data.windowMs) : 0)
    const judged =
      data.kind === 'count'
        ? this.history.slice(-data.size)
        : this.history.filter(({ ms }) => step(ms) > step(nowMs) - 10)
    const failed = judged.filter((one) => one.failed).length
    return judged.length >= data.minimumCalls && failed / judged.length >= data.failureRatio
  }
}

describe('against a model', () => {
  const shared = {
    probes: fc.integer({ min: 1, max: 3 }),
    openFor: fc.constantFrom(50, 300).map((ms) => ({ kind: 'constant' as const, baseMs: ms, capMs: ms })),
  }
  const failureRatio = fc.constantFrom(0.2, 0.5, 1)
  const minimumCalls = fc.integer({ min: 1, max: 3 })
  const kinds: readonly (readonly [string, fc.Arbitrary<BreakerData>])[] = [
    [
      'consecutive',
      fc.record({ kind: fc.constant('consecutive' as const), failures: fc.integer({ min: 1, max: 4 }), ...shared }),
    ],
    [
      'count',
      fc.record({
        kind: fc.constant('count' as const),
        size: fc.integer({ min: 3, max: 6 }),
        failureRatio,
        minimumCalls,
        ...shared,
      }),
    ],
    [
      'window',
      fc.record({
        kind: fc.constant('window' as const),
        windowMs: fc.constantFrom(10, 100, 1000),
        failureRatio,
        minimumCalls,
        ...shared,
      }),
    ],
  ]
  const commands = fc.array(
    fc.record({
      afterMs: fc.oneof(
        { arbitrary: fc.integer({ min: 0, max: 60 }), weight: 9 },
        { arbitrary: fc.integer({ min: 0, max: 5_000 }), weight: 1 },
      ),
      act: fc.oneof(
        { arbitrary: fc.constant('enter' as const), weight: 8 },
        { arbitrary: fc.constantFrom('failed' as const, 'failed' as const, 'succeeded' as const), weight: 8 },
        { arbitrary: fc.constant('ignored' as const), weight: 1 },
        { arbitrary: fc.constantFrom('open' as const, 'close' as const, 'isolate' as const), weight: 1 },
      ),
      which: fc.nat({ max: 5 }),
    }),
    { minLength: 5, maxLength: 60 },
  )

  for (const [kind, arbitrary] of kinds) {
    const seen = new Set<string>()
    property(
      `${kind}: every sequence of calls, late reports, lost probes and hands ends in the same state`,
      [arbitrary, commands],
      (data, sequence) => {
        const breaker = breakerFrom(data)
        const model = new Model(data)
        const out: { pass: number; period: object }[] = []
        let nowMs = 0
        for (const { afterMs, act, which } of sequence) {
          nowMs += afterMs
          if (act === 'enter') {
            const period = model.enter(nowMs)
            const pass = breaker.tryEnter(nowMs)
            expect(pass > 0).toBe(period !== undefined)
            if (period !== undefined) out.push({ pass, period })
          } else if (act === 'open' || act === 'close' || act === 'isolate') {
            breaker[act](nowMs)
            model.change(act === 'close' ? 'closed' : act === 'open' ? 'open' : 'isolated', nowMs + data.openFor.baseMs)
          } else if (out.length > 0) {
            const [report] = out.splice(which % out.length, 1)
            if (report === undefined) continue
            breaker[act](report.pass, nowMs)
            model.report(report.period, act, nowMs)
          }
          const due = model.mode === 'open' && nowMs >= model.untilMs
          expect(breaker.state(nowMs)).toBe(due ? 'half-open' : model.mode)
          seen.add(model.mode)
        }
      },
    )

    it(`${kind}: the sequences reached every state`, () => {
      expect([...seen].sort()).toEqual(['closed', 'half-open', 'isolated', 'open'])
    })

    property(
      `${kind}: saving and restoring at any time changes no later answer`,
      [arbitrary, commands],
      (data, sequence) => {
        const kept = breakerFrom(data)
        const moved = breakerFrom(data)
        let nowMs = 0
        for (const { afterMs, act } of sequence) {
          nowMs += afterMs
          if (act === 'enter' || act === 'ignored') continue
          if (act === 'open' || act === 'close' || act === 'isolate') {
            kept[act](nowMs)
            moved[act](nowMs)
          } else {
            moved.restore(JSON.parse(JSON.stringify(moved.snapshot(nowMs))), nowMs)
            // One whole call at a time, so that no probe is out while the state is saved.
            const [a, b] = [kept.tryEnter(nowMs), moved.tryEnter(nowMs)]
            expect(b > 0).toBe(a > 0)
            kept[act](a, nowMs)
            moved[act](b, nowMs)
          }
          // Probes that succeeded before the saving are not kept: with several, the other one closes a little later.
          if (data.probes === 1) expect(moved.state(nowMs)).toBe(kept.state(nowMs))
          else if (moved.state(nowMs) !== kept.state(nowMs)) return
        }
      },
    )
  }
})
