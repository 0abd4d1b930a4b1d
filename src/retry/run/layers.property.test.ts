import fc from 'fast-check'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { property } from '../../../test/property.js'
import type { Clock } from '../../kernel/index.js'
import { constantDelay } from '../backoff.js'
import { readOnly } from '../guard.js'
import { type RetryPolicy, retryPolicy } from '../policy.js'
import { type Happened, transient } from '../verdict.js'
import { noteRepeat } from './layers.js'

// Time stands still and every wait is over in the next microtask.
const clock: Clock = {
  monotonicMs: () => 0,
  wallMs: () => 0,
  setTimer(_delayMs, fire) {
    let open = true
    queueMicrotask(() => open && fire())
    return () => {
      open = false
    }
  },
}

const level = fc.record({
  attempts: fc.integer({ min: 1, max: 4 }),
  layer: fc.constantFrom('inherit', 'own'),
  guarded: fc.boolean(),
  awaits: fc.boolean(),
})
type Level = typeof level extends fc.Arbitrary<infer Drawn> ? Drawn : never

// Whether first attempts are in async context: always, or as in a process in which nobody has repeated for ten seconds.
let isSeen = true
beforeAll(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterAll(() => void vi.useRealTimers())

/** The calls that reach the innermost function when it may have happened; the outermost level first. */
function expected(levels: readonly Level[]): number {
  let calls = 1
  let isInside = false
  for (const { attempts, layer } of levels) {
    if (!isInside || layer === 'own') calls *= attempts
    isInside ||= attempts > 1
  }
  return calls
}

/** The calls that were made. */
async function made(levels: readonly Level[], happened: Happened): Promise<number> {
  let calls = 0
  if (isSeen) noteRepeat()
  else vi.advanceTimersByTime(10_000)
  const classify = () => transient('flaky', happened)
  let work = (): Promise<unknown> => {
    calls += 1
    return Promise.reject(new Error('flaky'))
  }
  for (const { attempts, layer, guarded, awaits } of levels.toReversed()) {
    const policy: RetryPolicy = retryPolicy({
      attempts,
      layer: layer as 'inherit' | 'own',
      classify,
      clock,
      budget: false,
      backoff: constantDelay(0),
    })
    const inner = work
    const body = async () => {
      if (awaits) await null
      return inner()
    }
    work = () => (guarded ? policy.run(readOnly(), body) : policy.once(body))
  }
  await expect(work()).rejects.toThrow()
  return calls
}

property(
  'layers: the outermost one and those with `own` multiply, and nobody else does',
  [
    fc.array(
      level.map((drawn) => ({ ...drawn, guarded: true })),
      { minLength: 1, maxLength: 4 },
    ),
  ],
  async (levels) => {
    expect(await made(levels, 'maybe')).toBe(expected(levels))
  },
  { cases: 1_000 },
)

/** The calls where nothing happened: each intent makes as many as its largest layer, and `own` begins another one. */
function allowed(levels: readonly Level[]): number {
  let before = 1
  let largest = 1
  for (const { attempts, layer } of levels) {
    if (layer === 'own' && attempts > 1) {
      before *= largest
      largest = 1
    }
    largest = Math.max(largest, attempts)
  }
  return before * largest
}

property(
  'layers: what provably did not happen is repeated as often as the largest layer may, guarded or not',
  [fc.array(level, { minLength: 1, maxLength: 4 })],
  async (levels) => {
    expect(await made(levels, 'no')).toBe(allowed(levels))
  },
  { cases: 1_000 },
)

property(
  'layers: the same in a process in which nobody has repeated lately, whatever is found only along causes',
  [fc.array(level, { minLength: 1, maxLength: 4 })],
  async (levels) => {
    isSeen = false
    expect(await made(levels, 'no')).toBe(allowed(levels))
  },
  { cases: 1_000 },
)
