import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { manualClock } from '../testing/index.js'
import { nextStamp, type Stamp, uuidv4, uuidv7, uuidv7Source, uuidv7TimeMs } from './ids.js'
import { type Random, seededRandom } from './random.js'

const maxTimeMs = 2 ** 48 - 1
const outOfRange = expect.objectContaining({ code: 'ARGUMENT_INVALID' })

function constantRandom(byte: number): Random {
  return { next: () => byte / 256, fill: (bytes) => bytes.fill(byte) }
}

// The fields of RFC 9562 section 5.7, taken apart by arithmetic on the whole 128 bits.
function fields(id: string) {
  const bits = BigInt(`0x${id.replaceAll('-', '')}`)
  const randA = Number((bits >> 64n) & 0xfffn)
  const randB = bits & ((1n << 62n) - 1n)
  return {
    timeMs: Number(bits >> 80n),
    version: Number((bits >> 76n) & 0xfn),
    variant: Number((bits >> 62n) & 3n),
    counter: randA * 2 ** 20 + Number(randB >> 42n),
    rest: randB & ((1n << 42n) - 1n),
  }
}

describe('uuidv7Source', () => {
  it('writes time, version, counter, variant and chance where they belong', () => {
    const clock = manualClock({ wallMs: 0x0123_4567_89ab })
    const ones = uuidv7Source({ clock, random: constantRandom(0xff) })
    // The counter begins at 31 ones: its highest bit is clear.
    expect(ones()).toBe('01234567-89ab-77ff-bfff-ffffffffffff')
    // One more sets the highest bit and clears the rest; what is random stays random.
    expect(ones()).toBe('01234567-89ab-7800-8000-03ffffffffff')
    const zeros = uuidv7Source({ clock, random: constantRandom(0) })
    expect(zeros()).toBe('01234567-89ab-7000-8000-000000000000')
    expect(zeros()).toBe('01234567-89ab-7000-8000-040000000000')
  })

  it('reads the example of RFC 9562 appendix A.6', () => {
    expect(uuidv7TimeMs('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')).toBe(1_645_557_742_000)
  })

  it('begins each millisecond anew, at a random count with room above it', async () => {
    const clock = manualClock()
    const source = uuidv7Source({ clock, random: seededRandom('counter') })
    const counters: number[] = []
    for (let index = 0; index < 200; index += 1) {
      counters.push(fields(source()).counter)
      await clock.advance(1)
    }
    expect(Math.max(...counters)).toBeLessThan(2 ** 31)
    expect(Math.max(...counters)).toBeGreaterThan(2 ** 30)
    expect(new Set(counters).size).toBe(200)
  })

  it('takes new chance for every id, also within a millisecond', () => {
    const source = uuidv7Source({ clock: manualClock(), random: seededRandom(1) })
    const rests = Array.from({ length: 1000 }, () => fields(source()).rest)
    expect(new Set(rests).size).toBe(1000)
  })

  it('rides out a clock that steps back by up to ten seconds, and follows it beyond', () => {
    const clock = manualClock({ wallMs: 1_000_000 })
    const source = uuidv7Source({ clock, random: seededRandom(1) })
    const first = source()
    clock.setWallMs(1_000_000 - 10_000)
    const ridden = source()
    expect(uuidv7TimeMs(ridden)).toBe(1_000_000)
    expect(ridden > first).toBe(true)
    clock.setWallMs(1_000_000 - 10_001)
    expect(uuidv7TimeMs(source())).toBe(1_000_000 - 10_001)
  })

  it('cuts fractions of a millisecond off', () => {
    expect(uuidv7TimeMs(uuidv7Source({ clock: manualClock({ wallMs: 5.9 }) })())).toBe(5)
  })

  it('spans all of 48 bits and refuses what lies outside', () => {
    const clock = manualClock({ wallMs: maxTimeMs })
    const source = uuidv7Source({ clock })
    expect(source()).toMatch(/^ffffffff-ffff-7/)
    clock.setWallMs(maxTimeMs + 1)
    expect(source).toThrow(outOfRange)
    clock.setWallMs(-1)
    expect(source).toThrow(outOfRange)
    clock.setWallMs(0)
    expect(source()).toMatch(/^00000000-0000-7/)
    const broken = { ...clock, wallMs: () => Number.NaN }
    expect(uuidv7Source({ clock: broken })).toThrow(outOfRange)
  })

  property(
    'gives ever greater texts, in bursts and over small steps of the clock either way',
    [
      fc.integer({ min: 20_000, max: maxTimeMs - 20_000 }),
      fc.array(fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 6 })), { maxLength: 20 }),
      fc.nat(),
    ],
    (wallMs, steps, seed) => {
      const clock = manualClock({ wallMs })
      const source = uuidv7Source({ clock, random: seededRandom(seed) })
      let previous = source()
      for (const [stepMs, burst] of steps) {
        clock.setWallMs(clock.wallMs() + stepMs)
        for (let index = 0; index < burst; index += 1) {
          const id = source()
          expect(id > previous).toBe(true)
          previous = id
        }
      }
    },
  )

  property(
    'has the layout of version 7 and tells its time',
    [fc.integer({ min: 0, max: maxTimeMs }), fc.nat()],
    (wallMs, seed) => {
      const id = uuidv7Source({ clock: manualClock({ wallMs }), random: seededRandom(seed) })()
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(fields(id)).toMatchObject({ timeMs: wallMs, version: 7, variant: 2 })
      expect(uuidv7TimeMs(id)).toBe(wallMs)
      expect(uuidv7TimeMs(id.toUpperCase())).toBe(wallMs)
    },
  )
})

describe('nextStamp', () => {
  it('borrows the next millisecond when the counter runs over, and gives it back to the clock later', () => {
    const full: Stamp = { timeMs: 1000, counter: 2 ** 32 - 1 }
    const borrowed = nextStamp(full, 1000, 5)
    expect(borrowed).toEqual({ timeMs: 1001, counter: 5 })
    expect(nextStamp(borrowed, 1000, 9)).toEqual({ timeMs: 1001, counter: 6 })
    expect(nextStamp(borrowed, 1001, 9)).toEqual({ timeMs: 1001, counter: 6 })
    expect(nextStamp(borrowed, 1002, 9)).toEqual({ timeMs: 1002, counter: 9 })
    expect(nextStamp({ timeMs: 1000, counter: 2 ** 32 - 2 }, 1000, 5)).toEqual({ timeMs: 1000, counter: 2 ** 32 - 1 })
  })

  it('has no millisecond to borrow at the end of time', () => {
    expect(() => nextStamp({ timeMs: maxTimeMs, counter: 2 ** 32 - 1 }, maxTimeMs, 0)).toThrow(outOfRange)
  })

  property(
    'always grows, except after a step back of more than ten seconds',
    [
      fc.integer({ min: 0, max: 2 ** 40 }),
      fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constant(2 ** 32 - 1)),
      fc.integer({ min: -20_000, max: 20_000 }),
      fc.nat(2 ** 31 - 1),
    ],
    (timeMs, counter, stepMs, seed) => {
      const wallMs = Math.max(0, timeMs + stepMs)
      const next = nextStamp({ timeMs, counter }, wallMs, seed)
      if (timeMs - wallMs > 10_000) expect(next).toEqual({ timeMs: wallMs, counter: seed })
      else expect(next.timeMs > timeMs || (next.timeMs === timeMs && next.counter > counter)).toBe(true)
      expect(next.timeMs - Math.max(wallMs, timeMs)).toBeLessThanOrEqual(1)
    },
  )
})

describe('uuidv7', () => {
  it('tells the present time and grows over a burst', () => {
    const before = Date.now()
    const ids = Array.from({ length: 10_000 }, () => uuidv7())
    const after = Date.now()
    expect([...ids].sort()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
    expect(uuidv7TimeMs(ids[0] as string)).toBeGreaterThanOrEqual(before)
    expect(uuidv7TimeMs(ids.at(-1) as string)).toBeLessThanOrEqual(after)
  })
})

describe('uuidv7TimeMs', () => {
  const good = '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'
  it.each([
    '',
    uuidv4(),
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    good.replace('7cc3', '6cc3'),
    good.replace('7cc3', '8cc3'),
    good.replace('98c4', '78c4'),
    good.replace('98c4', 'c8c4'),
    good.replaceAll('-', ''),
    good.replace('f', 'g'),
    `{${good}}`,
    `urn:uuid:${good}`,
    ` ${good}`,
    `${good}\n`,
    `${good}0`,
    good.slice(1),
    undefined as unknown as string,
    [good] as unknown as string,
  ])('knows no time of %j', (text) => {
    expect(uuidv7TimeMs(text)).toBeUndefined()
  })

  it('reads all four digits of the variant', () => {
    for (const digit of '89abAB') expect(uuidv7TimeMs(good.replace('98c4', `${digit}8c4`))).toBe(1_645_557_742_000)
  })
})

describe('uuidv4', () => {
  it('writes version and variant over random bits', () => {
    expect(uuidv4(constantRandom(0))).toBe('00000000-0000-4000-8000-000000000000')
    expect(uuidv4(constantRandom(0xff))).toBe('ffffffff-ffff-4fff-bfff-ffffffffffff')
  })

  it('does not repeat itself, and repeats with its seed', () => {
    expect(new Set(Array.from({ length: 10_000 }, () => uuidv4())).size).toBe(10_000)
    expect(uuidv4(seededRandom(1))).toBe(uuidv4(seededRandom(1)))
  })
})
