import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { isRepriseError } from '../errors.js'
import { type Duration, type DurationRefusal, durationMs, formatDuration, maxDurationMs } from './duration.js'

const unitSizes = { ms: 1n, s: 1000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n } as const

// What a text should come to, by fractions of whole numbers, or why it should be refused.
function model(whole: string, fraction: string, unit: keyof typeof unitSizes): number | DurationRefusal {
  const scale = 10n ** BigInt(fraction.length)
  const numerator = (BigInt(whole) * scale + BigInt(fraction === '' ? '0' : fraction)) * unitSizes[unit]
  if (numerator > 315_576_000_000n * scale) return 'too-long'
  return numerator % scale === 0n ? Number(numerator / scale) : 'fraction'
}

function outcome(duration: unknown): number | string {
  try {
    return durationMs(duration as Duration)
  } catch (error) {
    if (!isRepriseError(error, 'DURATION_INVALID')) throw error
    return String(error.details['reason'])
  }
}

const digits = (maxLength: number) =>
  fc.array(fc.constantFrom(...'0123456789'), { minLength: 1, maxLength }).map((list) => list.join(''))
const units = fc.constantFrom('ms', 's', 'm', 'h', 'd')

describe('durationMs', () => {
  it.each<[Duration, number]>([
    [0, 0],
    [1500, 1500],
    ['0ms', 0],
    ['250ms', 250],
    ['2s', 2000],
    ['1.5s', 1500],
    ['1.005s', 1005], // as floats: 1004.9999999999999
    ['1.10m', 66_000],
    ['0.0000003125d', 27],
    ['0.0009765625d', 84_375],
    ['90m', 5_400_000],
    ['24h', 86_400_000],
    ['3652.5d', 315_576_000_000],
    ['007s', 7000],
    [maxDurationMs, 315_576_000_000],
    [0.5, 0.5], // from a clock, or from jitter
    [maxDurationMs - 0.5, 315_575_999_999.5],
  ])('reads %s as %d ms', (duration, expected) => {
    expect(durationMs(duration)).toBe(expected)
  })

  it('never gives a negative zero', () => {
    expect(Object.is(durationMs(-0), 0)).toBe(true)
  })

  it.each<[DurationRefusal, unknown[]]>([
    ['not-finite', [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ['negative', [-1, -0.5, -maxDurationMs * 2, '-1s', '-0.5h', '-3w']],
    ['fraction', ['0.5ms', '1.0005s', '0.0001s']],
    [
      'too-long',
      [maxDurationMs + 1, Number.MAX_VALUE, '3653d', '3652.50001d', '315576000000.5ms', '999999999999999999999999h'],
    ],
    ['unknown-unit', ['5', '5.5', '2S', '2w', '3µs', '1min', '1toString', '1constructor', '1sec']],
    [
      'not-a-duration',
      ['', 's', ' 2s', '2s ', '2 s', '+2s', '.5s', '5.s', '1e3s', '0x10s', '1,5s', '1_000s', '2s3ms', '٢s'],
    ],
    ['not-a-duration', ['Infinitys', 'NaNms', '1.2.3s', '2s\n', `${'0'.repeat(60)}s`]],
    ['not-a-duration', [null, undefined, true, 5n, {}, [], ['2s'], new Date(0), Symbol('2s'), () => 5]],
  ])('refuses as %s (list %#)', (reason, durations) => {
    for (const duration of durations) expect(outcome(duration)).toBe(reason)
  })

  it('does not repeat its input in the error', () => {
    for (const secret of ['12345678901234567890123s', '88w', 'hunter2', '-88s', '88.88ms']) {
      try {
        durationMs(secret as Duration)
        expect.unreachable()
      } catch (error) {
        expect(JSON.stringify(error)).not.toMatch(/88|hunter|1234/)
      }
    }
  })

  it('keeps limits, both inclusive, and names them', () => {
    const limits = { minMs: 100, maxMs: 2000 }
    expect(durationMs(100, limits)).toBe(100)
    expect(durationMs('2s', limits)).toBe(2000)
    expect(() => durationMs(99, limits)).toThrow('at least 100 ms')
    expect(() => durationMs('2001ms', limits)).toThrow('at most 2000 ms')
    expect(() => durationMs('11y' as Duration, limits)).toThrow('units')
    const details = (duration: Duration) => {
      try {
        return durationMs(duration, limits)
      } catch (error) {
        return isRepriseError(error, 'DURATION_INVALID') ? error.details : error
      }
    }
    expect(details(0)).toEqual({ reason: 'too-short', minMs: 100 })
    expect(details('1h')).toEqual({ reason: 'too-long', maxMs: 2000 })
  })

  it('names the option that it is asked for, and shows two right ones where the form is wrong', () => {
    const refused = (duration: unknown) => () => durationMs(duration as Duration, { minMs: 1, option: 'deadline' })
    for (const wrong of ['10 sec', 'soon', null, -1, Number.NaN, '1.5', '0.5ms']) {
      const details = expect.objectContaining({ option: 'deadline' })
      const message = expect.stringMatching(
        /^The option deadline is not valid\. A duration must .*\. Right are 1500 \(in ms\) and '1\.5s'\.$/,
      )
      expect(refused(wrong)).toThrow(expect.objectContaining({ code: 'DURATION_INVALID', message, details }))
    }
    const tooShort = 'The option deadline is not valid. A duration must be at least 1 ms here.'
    expect(refused(0)).toThrow(expect.objectContaining({ message: tooShort }))
  })

  it('names ten years as the limit where no other is given, also above it', () => {
    expect(() => durationMs('4000d')).toThrow('at most 315576000000 ms')
    expect(() => durationMs('4000d', { maxMs: Number.MAX_SAFE_INTEGER })).toThrow('at most 315576000000 ms')
  })

  it.each([{ minMs: Number.NaN }, { maxMs: Number.NaN }, { minMs: -1 }, { minMs: 5, maxMs: 4 }, { maxMs: -1 }])(
    'refuses limits that would limit nothing: %j',
    (limits) => {
      expect(() => durationMs(4, limits)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    },
  )

  property(
    'agrees with exact fractions of whole numbers',
    [digits(14), fc.option(digits(11), { nil: '' }), units],
    (whole, fraction, unit) => {
      const text = `${whole}${fraction === '' ? '' : `.${fraction}`}${unit}`
      expect(outcome(text)).toBe(model(whole, fraction, unit))
    },
  )

  property(
    'refuses any other text with a reason of its own',
    [fc.string({ unit: 'binary', maxLength: 50 })],
    (text) => {
      const result = outcome(text)
      if (typeof result === 'number') expect(text).toMatch(/^\d+(\.\d+)?(ms|s|m|h|d)$/)
      else expect(['negative', 'not-a-duration', 'unknown-unit', 'fraction', 'too-long']).toContain(result)
    },
  )
})

describe('formatDuration', () => {
  it('refuses a fraction, which no text can say', () => {
    expect(() => formatDuration(1.5)).toThrow(expect.objectContaining({ details: { reason: 'fraction' } }))
  })

  it.each([
    [0, '0ms'],
    [1, '1ms'],
    [999, '999ms'],
    [1000, '1s'],
    [1500, '1500ms'],
    [90_000, '90s'],
    [3_600_000, '1h'],
    [5_400_000, '90m'],
    [86_400_000, '1d'],
    [315_576_000_000, '87660h'],
  ])('writes %d as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it('refuses what is not a whole number of ms', () => {
    expect(() => formatDuration(0.5)).toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
    expect(() => formatDuration(Number.NaN)).toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
  })

  property(
    'is read back to the same number',
    [
      fc.oneof(
        fc.integer({ min: 0, max: maxDurationMs }),
        fc.tuple(fc.nat(3652), fc.constantFrom(1, 1000, 60_000, 3_600_000, 86_400_000)).map(([n, size]) => n * size),
      ),
    ],
    (ms) => {
      expect(durationMs(formatDuration(ms))).toBe(ms)
    },
  )
})
