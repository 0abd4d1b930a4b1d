import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { isRemembered, keyWindow } from './window.js'

describe('keyWindow', () => {
  it('accepts a window that covers its horizon, equality included', () => {
    expect(keyWindow({ window: '24h', retryHorizon: '1d' })).toEqual({
      windowMs: 86_400_000,
      retryHorizonMs: 86_400_000,
    })
  })

  it('refuses a shorter window when it is defined, and says both', () => {
    expect(() => keyWindow({ window: '15m', retryHorizon: '72h' })).toThrow(
      expect.objectContaining({
        code: 'WINDOW_SHORTER_THAN_HORIZON',
        details: { windowMs: 900_000, retryHorizonMs: 259_200_000 },
        message: expect.stringMatching(/15m.*3d/),
      }),
    )
  })

  it.each([
    { window: 0, retryHorizon: 0 },
    { window: Number.NaN, retryHorizon: 0 },
    { window: '24h', retryHorizon: -1 },
    { window: '24h' },
    { retryHorizon: '24h' },
  ])('refuses the bad times %#', (options) => {
    expect(() => keyWindow(options as never)).toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
  })

  property(
    'is refused exactly when the horizon is longer',
    [fc.integer({ min: 1, max: 1e9 }), fc.nat(1e9)],
    (window, retryHorizon) => {
      const define = () => keyWindow({ window, retryHorizon })
      if (window >= retryHorizon) expect(define()).toEqual({ windowMs: window, retryHorizonMs: retryHorizon })
      else expect(define).toThrow(expect.objectContaining({ code: 'WINDOW_SHORTER_THAN_HORIZON' }))
    },
  )
})

describe('isRemembered', () => {
  const window = keyWindow({ window: '1s', retryHorizon: '1s' })

  it.each([
    [Number.NaN, 0],
    [0, Number.NaN],
    [undefined, 0],
  ])('forgets nothing by mistake: refuses the times %s and %s', (completedAtMs, nowMs) => {
    expect(() => isRemembered(window, completedAtMs as number, nowMs)).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
    )
  })

  it('counts from completion, up to and including the last millisecond', () => {
    expect(isRemembered(window, 5_000, 6_000)).toBe(true)
    expect(isRemembered(window, 5_000, 6_001)).toBe(false)
  })
})
