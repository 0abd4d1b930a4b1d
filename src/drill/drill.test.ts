import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { currentIntent, mintKey, withIntent } from '../identity/index.js'
import { eventLoopTurn, seededRandom } from '../kernel/index.js'
import { manualClock } from '../testing/index.js'
import { drill } from './drill.js'
import type { DrillOptions, DrillViolationEvent, Repeat } from './index.js'

afterEach(() => void vi.unstubAllEnvs())

/** A drill that draws everything, on a clock that is moved by hand. */
function world(more: Partial<DrillOptions> = {}) {
  const clock = manualClock()
  const violations: DrillViolationEvent[] = []
  const drilled = drill({ oneIn: 1, onViolation: (violation) => violations.push(violation), ...more })
  const call = { kind: 'operation', domain: 'shop', name: 'pay', input: 7 } as const
  const repeat = (again: Repeat['again'], rest: Partial<Repeat> = {}) =>
    drilled.repeat({ call, owner: call, clock, rememberedMs: 60_000, first: 'paid', again, ...rest })
  const later = async () => {
    await clock.advance('1s')
    return drilled.settled()
  }
  return { clock, drilled, violations, call, repeat, later }
}
const paid = async () => ({ told: 'paid' })

describe('who is drawn', () => {
  it('is one in so many, by a chance that can be seeded', () => {
    const drawn = (seed: number) => {
      const drilled = drill({ oneIn: 10, random: seededRandom(seed) })
      return Array.from({ length: 2_000 }, () => drilled.draws())
    }
    const first = drawn(1)
    expect(drawn(1)).toEqual(first)
    expect(drawn(2)).not.toEqual(first)
    const share = first.filter(Boolean).length
    expect(share).toBeGreaterThan(120)
    expect(share).toBeLessThan(280)
  })

  it('is everybody at 1, and nobody at 0 or inside of a repeat', async () => {
    expect(Array.from({ length: 100 }, () => drill({ oneIn: 1 }).draws())).not.toContain(false)
    expect(drill({ oneIn: 0, random: { next: () => 0 } }).draws()).toBe(false)
    const { drilled, repeat, later } = world()
    let inside: boolean | undefined
    repeat(async () => {
      await eventLoopTurn()
      inside = drilled.draws()
      return paid()
    })
    await later()
    expect([inside, drilled.draws()]).toEqual([false, true])
  })
})

describe('production', () => {
  it.each([
    [{ NODE_ENV: 'production' }, undefined, true],
    [{ NODE_ENV: 'production' }, '', true],
    [{ NODE_ENV: 'production' }, 'staging', false],
    [{ NODE_ENV: 'production', REPRISE_ENVIRONMENT: 'staging' }, undefined, false],
    [{ NODE_ENV: 'development', REPRISE_ENVIRONMENT: ' Production-EU' }, undefined, true],
    [{ NODE_ENV: 'test', REPRISE_ENVIRONMENT: 'production' }, 'staging', true],
    [{ NODE_ENV: 'test', REPRISE_ENVIRONMENT: 'staging' }, 'prod', true],
    [{ NODE_ENV: 'test' }, 'LIVE', true],
    [{ NODE_ENV: 'test' }, 'preproduction', false],
    [{}, undefined, false],
  ] as const)('by the variables %j and the option %j: refused is %s', (variables, environment, refused) => {
    for (const name of ['NODE_ENV', 'REPRISE_ENVIRONMENT'] as const)
      vi.stubEnv(name, (variables as Record<string, string>)[name])
    const start = () => drill({ oneIn: 1000, environment })
    if (refused) expect(start).toThrow(expect.objectContaining({ code: 'DRILL_IN_PRODUCTION' }))
    else expect(start().oneIn).toBe(1000)
    // One that is off is the same line of code in every environment.
    expect(drill({ oneIn: 0, environment }).draws()).toBe(false)
  })
})

it.each([
  ['oneIn', { oneIn: 0.5 }],
  ['oneIn', { oneIn: -1 }],
  ['oneIn', {}],
  ['atOnce', { oneIn: 1, atOnce: 0 }],
  ['after', { oneIn: 1, after: 'soon' }],
  ['effects', { oneIn: 1, effects: 1 }],
  ['onViolation', { oneIn: 1, onViolation: 'log' }],
])('refuses the option %s of %j', (option, options) => {
  expect(() => drill(options as never)).toThrow(
    expect.objectContaining({ details: expect.objectContaining({ option }) }),
  )
})

describe('a repeat', () => {
  it('is made after the answer, and counted where it agrees', async () => {
    const { clock, drilled, repeat, later } = world({ after: '1s' })
    let repeats = 0
    repeat(async () => {
      repeats += 1
      return paid()
    })
    await clock.advance(999)
    expect(repeats).toBe(0)
    expect(await later()).toMatchObject({ agreed: 1, violations: 0 })
    expect([repeats, clock.pendingTimers]).toEqual([1, 0])
    expect(drilled.counts.agreed).toBe(1)
  })

  it('belongs to nothing that was in force around its first call', async () => {
    const { clock, repeat, later } = world()
    let found: unknown = 'not asked'
    await withIntent({ key: mintKey() }, async () => {
      repeat(async () => {
        found = currentIntent()
        return paid()
      })
      await clock.advance('1s')
    })
    await later()
    expect(found).toBeUndefined()
  })

  it('that comes as far as the body of its own is stopped, and no other body is', async () => {
    const { drilled, repeat, later, violations, call } = world()
    const seen: unknown[] = []
    repeat(async () => {
      await eventLoopTurn()
      seen.push(drilled.reached({}))
      const stopped = drilled.reached(call)
      seen.push(stopped)
      throw stopped
    })
    expect(drilled.reached(call)).toBeUndefined()
    expect(await later()).toMatchObject({ agreed: 0, violations: 1 })
    expect(seen).toEqual([undefined, expect.any(Error)])
    expect(violations).toMatchObject([{ code: 'DRILL_EXECUTED', kind: 'operation', domain: 'shop', name: 'pay' }])
  })

  it('beyond the bound is left out, not queued', async () => {
    const { drilled, repeat, later } = world({ atOnce: 2 })
    for (let number = 0; number < 5; number += 1) repeat(paid)
    expect(drilled.counts.skipped.busy).toBe(3)
    expect(await later()).toMatchObject({ agreed: 2, skipped: { busy: 3 } })
    repeat(paid)
    expect(await later()).toMatchObject({ agreed: 3, skipped: { busy: 3 } })
  })

  it('is left out where its outcome may be forgotten by then, or was while the process stood still', async () => {
    const { clock, drilled, repeat, later, call } = world()
    repeat(paid, { rememberedMs: 2_000 })
    expect(drilled.counts.skipped.window).toBe(1)
    repeat(
      async () => {
        await clock.advance('1m')
        throw drilled.reached(call)
      },
      { rememberedMs: 10_000 },
    )
    expect(await later()).toMatchObject({ agreed: 0, violations: 0, skipped: { window: 2 } })
  })

  it('that is not answered says nothing', async () => {
    const { repeat, later } = world()
    repeat(() => Promise.reject(new Error('the store is away')))
    expect(await later()).toMatchObject({ agreed: 0, violations: 0, skipped: { unanswered: 1 } })
  })
})

describe('effects', () => {
  it('are counted before and after, of this very call', async () => {
    let effects = 1
    const asked: unknown[] = []
    const { repeat, later, violations } = world({
      effects: async ({ input }) => {
        asked.push(input)
        return effects
      },
    })
    repeat(paid)
    await later()
    repeat(async () => {
      effects += 1
      return paid()
    })
    expect(await later()).toMatchObject({ agreed: 1, violations: 1 })
    expect(asked).toEqual([7, 7, 7, 7])
    expect(violations).toMatchObject([{ code: 'DRILL_EFFECTS', effects: { before: 1, after: 2 } }])
  })

  it('that cannot be counted say nothing, before and after', async () => {
    let asked = 0
    const { repeat, later } = world({
      effects: () => {
        asked += 1
        if (asked !== 2) throw new Error('away')
        return 1
      },
    })
    repeat(paid)
    await later()
    repeat(paid)
    expect(await later()).toMatchObject({ agreed: 0, violations: 0, skipped: { uncounted: 2 } })
  })
})

describe('a violation is told', () => {
  const different = async () => ({ told: 'other' })

  it('on its channel, beside what agreed and what was skipped, without the input', async () => {
    const heard: [string, unknown][] = []
    const listen = (message: unknown, name: string | symbol): unknown => heard.push([String(name), message])
    const names = ['agreed', 'violation', 'skipped'].map((name) => `reprise.drill.${name}`)
    for (const name of names) diagnostics.subscribe(name, listen)
    try {
      const { repeat, later } = world()
      repeat(paid)
      repeat(different)
      repeat(paid, { rememberedMs: 1 })
      await later()
    } finally {
      for (const name of names) diagnostics.unsubscribe(name, listen)
    }
    const about = { kind: 'operation', domain: 'shop', name: 'pay' }
    expect(heard).toEqual([
      ['reprise.drill.skipped', { ...about, because: 'window' }],
      ['reprise.drill.agreed', about],
      ['reprise.drill.violation', { ...about, code: 'DRILL_DIFFERENT', message: expect.any(String) }],
    ])
  })

  it('to onViolation with its call, and by a warning where that throws or is rejected', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    try {
      const inputs: unknown[] = []
      for (const fails of [
        () => {
          throw new RangeError('no')
        },
        () => Promise.reject(new RangeError('no')),
      ]) {
        const { repeat, later } = world({
          onViolation: (_violation, { input }) => {
            inputs.push(input)
            return fails()
          },
        })
        repeat(different)
        expect(await later()).toMatchObject({ violations: 1 })
      }
      expect(inputs).toEqual([7, 7])
      expect(warned.mock.calls).toHaveLength(2)
      expect(warned.mock.calls[0]).toEqual([expect.stringContaining('RangeError'), expect.anything()])
    } finally {
      warned.mockRestore()
    }
  })

  it('by a warning for each where nobody asked for them', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    try {
      const { clock, call } = world()
      const quiet = drill({ oneIn: 1 })
      for (let number = 0; number < 2; number += 1)
        quiet.repeat({ call, owner: call, clock, rememberedMs: 60_000, first: 'paid', again: different })
      await clock.advance('1s')
      await quiet.settled()
      const options = { type: 'RepriseWarning', code: 'DRILL_DIFFERENT' }
      expect(warned.mock.calls).toEqual(
        Array(2).fill([
          'A repeat on purpose of the operation pay in the domain shop was answered differently.',
          options,
        ]),
      )
    } finally {
      warned.mockRestore()
    }
  })
})
