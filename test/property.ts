// Property tests with seeds that can be replayed: every run prints its seed, and REPRISE_SEED=<n> repeats it.

import fc from 'fast-check'
import { it } from 'vitest'

// Drawn once for the whole run, in vitest.config.ts.
const seed = Number(process.env['REPRISE_SEED'])

interface PropertyOptions {
  /** How many cases to draw. Default 10,000. */
  readonly cases?: number
  /** How long the whole property may take, in ms. Default five minutes, as for all tests. */
  readonly timeLimitMs?: number
}

/** Registers a test that holds `check` against many drawn inputs; the title shows cases and seed. */
export function property<Args extends [unknown, ...unknown[]]>(
  title: string,
  arbitraries: { [Index in keyof Args]: fc.Arbitrary<Args[Index]> },
  check: (...args: Args) => void | Promise<void>,
  options: PropertyOptions = {},
): void {
  const cases = options.cases ?? 10_000
  it(`${title} (${cases} cases, seed ${seed})`, { timeout: options.timeLimitMs ?? 300_000 }, async () => {
    const whole = fc.asyncProperty(...(arbitraries as unknown as [fc.Arbitrary<unknown>]), async (...args) => {
      await check(...(args as unknown as Args))
    })
    await fc.assert(whole, { numRuns: cases, seed })
  })
}
