// How long a key is remembered, and why that is long enough.

import { type Duration, durationMs, formatDuration, RepriseError } from '../kernel/index.js'

/** What a definition says about time. Both are declared: neither can be guessed from the other. */
export interface KeyWindowOptions {
  /** How long the outcome is remembered, counted from completion. A replay never extends it. */
  readonly window: Duration
  /**
   * The longest time after which a repeat may still arrive: all attempts of all layers, queue retention,
   * and the day on which somebody redrives a dead letter by hand.
   */
  readonly retryHorizon: Duration
}

/** A window that is known to cover its retry horizon. */
export interface KeyWindow {
  /** How long the outcome is remembered after completion, in ms. */
  readonly windowMs: number
  /** The longest time after which a repeat may still arrive, in ms. */
  readonly retryHorizonMs: number
}

/**
 * Checks a window when it is defined, not when the first late repeat arrives.
 * Refuses a window shorter than the retry horizon with WINDOW_SHORTER_THAN_HORIZON: a repeat could arrive
 * after the memory ended, and would be carried out a second time.
 *
 * @example
 * ```ts
 * import { keyWindow } from 'reprise/identity'
 *
 * // Remembered for a week, since somebody may redrive a dead letter after three days.
 * const { windowMs } = keyWindow({ window: '7d', retryHorizon: '3d' })
 * ```
 */
export function keyWindow(options: KeyWindowOptions): KeyWindow {
  const windowMs = durationMs(options.window, { minMs: 1, option: 'window' })
  const retryHorizonMs = durationMs(options.retryHorizon, { option: 'retryHorizon' })
  if (windowMs < retryHorizonMs) {
    throw new RepriseError(
      'WINDOW_SHORTER_THAN_HORIZON',
      `A window of ${formatDuration(windowMs)} ends before the retry horizon of ${formatDuration(retryHorizonMs)}: ` +
        'a repeat could arrive after the memory ended and take effect again.',
      { details: { windowMs, retryHorizonMs } },
    )
  }
  return Object.freeze({ windowMs, retryHorizonMs })
}

/**
 * Whether an outcome completed at `completedAtMs` is still remembered at `nowMs`. Both come from the same clock,
 * the store's where there is one. The last millisecond of the window still counts. Refuses times that are no numbers
 * with ARGUMENT_INVALID: a forgotten outcome takes effect again, so nothing is forgotten by mistake.
 */
export function isRemembered(window: KeyWindow, completedAtMs: number, nowMs: number): boolean {
  const passedMs = nowMs - completedAtMs
  if (!Number.isFinite(passedMs)) throw new RepriseError('ARGUMENT_INVALID', 'A time is missing or not a number.')
  return passedMs <= window.windowMs
}
