import { describe, expect, it } from 'vitest'
import { retryPolicy } from '../retry/index.js'
import { simulateStorm } from './storm.js'
import { type StormSecond, stormFindings } from './storm-findings.js'
import { type StormOptions, stormSettings } from './storm-settings.js'

const settings = (options: Omit<StormOptions, 'policy'> = {}) =>
  stormSettings({
    policy: retryPolicy().toJSON(),
    load: 100,
    capacity: 200,
    triggerAtSeconds: 5,
    triggerSeconds: 5,
    ...options,
  })

/** Seconds of which each is well, but for what is said about it. */
function seconds(count: number, say: (second: number) => Partial<StormSecond>): StormSecond[] {
  return Array.from({ length: count }, (_, second) => ({
    second,
    offered: 100,
    attempts: 100,
    goodput: 100,
    queue: 0,
    tokens: undefined,
    ...say(second),
  }))
}

const downUntil =
  (end: number, queue: (second: number) => number = () => 1000) =>
  (second: number) =>
    second >= 5 && second < end ? { goodput: 0, queue: queue(second) } : {}

describe('recovery', () => {
  it('counts from the end of the trigger to the first five good seconds', () => {
    expect(stormFindings(settings(), seconds(60, downUntil(17))).recoveredAfterSeconds).toBe(7)
    expect(
      stormFindings(
        settings(),
        seconds(60, () => ({})),
      ).recoveredAfterSeconds,
    ).toBe(0)
  })

  it('does not count four', () => {
    const series = seconds(30, (second) => ({ goodput: second >= 10 && (second - 10) % 5 === 0 ? 94 : 95 }))
    expect(stormFindings(settings(), series)).toMatchObject({ recoveredAfterSeconds: undefined, outcome: 'down' })
  })
})

describe('no trouble', () => {
  const late = settings({ triggerAtSeconds: 100, seconds: 30 })

  it('is what a run shows that ends before its trigger, or before the trigger did any harm', () => {
    const quiet = seconds(30, () => ({}))
    expect(stormFindings(late, quiet)).toMatchObject({ outcome: 'untroubled', recoveredAfterSeconds: undefined })
    expect(stormFindings(settings({ triggerSeconds: 100 }), quiet)).toMatchObject({ outcome: 'untroubled' })
    for (const played of [0, 1, 4]) expect(stormFindings(settings(), quiet.slice(0, played)).outcome).toBe('untroubled')
  })

  it('is not unsettled by what is answered a second later', () => {
    const series = seconds(30, (second) => ({ goodput: second === 7 ? 80 : 100 }))
    expect(stormFindings(late, series).outcome).toBe('untroubled')
  })

  it('is not said once goodput has fallen, also in the last seconds', () => {
    for (const [from, to] of [
      [0, 5],
      [12, 17],
      [28, 30],
    ] as const) {
      const series = seconds(30, (second) => (second >= from && second < to ? { goodput: 50 } : {}))
      expect(stormFindings(late, series).outcome).toBe('down')
    }
  })

  it('is found whatever the load, as long as the service can carry it', () => {
    const scene = { policy: retryPolicy().toJSON(), capacity: 1_000, triggerAtSeconds: 100, seconds: 30 }
    for (const load of [1, 5, 20, 100, 500]) {
      for (let seed = 0; seed < 40; seed += 1) {
        expect(simulateStorm({ ...scene, load, seed }).findings.outcome, `${load} ${seed}`).toBe('untroubled')
      }
    }
    expect(simulateStorm({ ...scene, load: 1_500 }).findings.outcome).not.toBe('untroubled')
    expect(simulateStorm({ ...scene, load: 500, serviceMs: 10_000 }).findings.outcome).not.toBe('untroubled')
  })

  it('gives way to a recovery', () => {
    expect(
      stormFindings(
        settings(),
        seconds(30, () => ({})),
      ).outcome,
    ).toBe('recovered')
  })
})

describe('storm', () => {
  const peaking = (attempts: number) => seconds(60, (second) => (second >= 30 && second < 40 ? { attempts } : {}))

  it('is named past four times over ten seconds, not at it', () => {
    expect(stormFindings(settings(), peaking(400))).toMatchObject({ storm: false, peakAmplification: 4 })
    expect(stormFindings(settings(), peaking(401))).toMatchObject({ storm: true, outcome: 'storm' })
  })

  it('is not named for one bad second', () => {
    const series = seconds(60, (second) => (second === 30 ? { attempts: 2000 } : {}))
    expect(stormFindings(settings(), series)).toMatchObject({ storm: false, outcome: 'recovered' })
  })
})

describe('METASTABLE', () => {
  it('latches after twenty seconds down whose queue does not shrink, and stays', () => {
    expect(stormFindings(settings(), seconds(29, downUntil(99))).metastableAtSecond).toBeUndefined()
    expect(stormFindings(settings(), seconds(30, downUntil(99)))).toMatchObject({
      metastableAtSecond: 29,
      outcome: 'metastable',
    })
    expect(stormFindings(settings(), seconds(90, downUntil(50)))).toMatchObject({
      metastableAtSecond: 29,
      recoveredAfterSeconds: 40,
      outcome: 'metastable',
    })
  })

  it.each([
    ['the queue drains', settings(), downUntil(99, (second) => 5000 - second)],
    ['the queue is short', settings(), downUntil(99, () => 200)],
    ['half of it succeeds', settings(), (second: number) => (second >= 5 ? { goodput: 50, queue: 1000 } : {})],
    ['the load is above the capacity', settings({ load: 200 }), downUntil(99)],
    ['there was no trigger', settings({ triggerSeconds: 0 }), downUntil(99)],
    ['one good second interrupts it', settings(), (second: number) => (second % 15 === 0 ? {} : downUntil(99)(second))],
  ])('is not said when %s', (_when, scene, say) => {
    expect(stormFindings(scene, seconds(60, say)).metastableAtSecond).toBeUndefined()
  })
})

describe('ratios', () => {
  it('are taken over their own seconds', () => {
    const series = seconds(40, (second) => ({ attempts: 100 + second, goodput: second < 5 ? 0 : 75 }))
    expect(stormFindings(settings(), series)).toMatchObject({
      triggerAmplification: 1.12,
      finalAmplification: 1.345,
      finalGoodput: 0.75,
      lost: 0.25,
    })
  })

  it('are well where nothing was offered', () => {
    expect(stormFindings(settings(), [])).toMatchObject({ finalGoodput: 1, finalAmplification: 1, lost: 0 })
  })
})
