import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { type Random, seededRandom } from '../kernel/index.js'
import { constantDelay, fullJitter, noJitter } from './backoff.js'
import { decideRepeat, type PolicyRules, type RepeatDecision, type RepeatFacts } from './decide-repeat.js'
import { type Budget, tokenBudget } from './target/budget.js'
import { discard, permanent, transient, type Verdict } from './verdict.js'

const random: Random = seededRandom('decide')

const rules: PolicyRules = { attempts: 3, backoff: constantDelay(100), maxRetryAfterMs: 60_000, minimumRemainderMs: 0 }
const facts: RepeatFacts = {
  failures: 1,
  verdict: transient('reset', 'maybe'),
  guarded: true,
  anyMaybe: true,
  previousDelayMs: 0,
  remainingMs: Number.POSITIVE_INFINITY,
  nowMs: 0,
}

function decided(changes: Partial<RepeatFacts>, other: Partial<PolicyRules> = {}): RepeatDecision {
  return decideRepeat({ ...rules, ...other }, { ...facts, ...changes }, random)
}

/** A budget that counts how often it was asked. */
function counting(answer: boolean): Budget & { asked: number } {
  return {
    ...tokenBudget(),
    asked: 0,
    tryRepeat() {
      this.asked += 1
      return answer
    },
  }
}

describe('decideRepeat', () => {
  it('keeps a wait that is asked for exactly, and counts the backoff anew from there', () => {
    const exactly = (retryAfterMs: number) => transient('pushback', 'maybe', { retryAfterMs, exactly: true })
    expect(decided({ verdict: exactly(30) })).toEqual({ again: true, delayMs: 30 })
    expect(decided({ verdict: exactly(0) })).toEqual({ again: true, delayMs: 0 })
    expect(decided({ verdict: exactly(300) })).toEqual({ again: true, delayMs: 300 })
    expect(decided({ verdict: exactly(60_001) })).toMatchObject({ again: false, reason: 'retry-after' })
    const growing = { attempts: 9, backoff: noJitter({ baseMs: 100 }) }
    expect(decided({ failures: 4 }, growing)).toEqual({ again: true, delayMs: 800 })
    expect(decided({ failures: 4, failuresBefore: 3 }, growing)).toEqual({ again: true, delayMs: 100 })
  })

  it.each<[string, RepeatDecision, Partial<RepeatFacts>]>([
    ['a guarded maybe', { again: true, delayMs: 100 }, {}],
    [
      'an unguarded no',
      { again: true, delayMs: 100 },
      { guarded: false, anyMaybe: false, verdict: transient('refused', 'no') },
    ],
    ['an unguarded maybe', { again: false, reason: 'unguarded' }, { guarded: false }],
    [
      'an unguarded no after a maybe',
      { again: false, reason: 'unguarded' },
      { guarded: false, verdict: transient('refused', 'no') },
    ],
    [
      'an unguarded maybe, not yet summed up',
      { again: false, reason: 'unguarded' },
      { guarded: false, anyMaybe: false },
    ],
    ['permanent', { again: false, reason: 'permanent' }, { verdict: permanent('http-400') }],
    ['discard', { again: false, reason: 'discard' }, { verdict: discard('obsolete') }],
    [
      'pushback',
      { again: false, reason: 'do-not-repeat' },
      { verdict: transient('busy', 'no', { doNotRepeat: true }) },
    ],
    ['the last attempt', { again: false, reason: 'attempts' }, { failures: 3 }],
    ['the last attempt at the deadline', { again: false, reason: 'deadline' }, { failures: 3, remainingMs: 0 }],
    ['the last attempt before it', { again: false, reason: 'attempts' }, { failures: 3, remainingMs: 1 }],
    [
      'overload without a budget',
      { again: false, reason: 'budget-required' },
      { verdict: transient('http-503', 'no', { overload: true }) },
    ],
  ])('%s', (_title, expected, changes) => {
    expect(decided(changes)).toEqual(expected)
  })

  it.each<[string, RepeatDecision, Partial<RepeatFacts>]>([
    ['is waited for', { again: true, delayMs: 5_000 }, { verdict: transient('busy', 'no', { retryAfterMs: 5_000 }) }],
    ['0 leaves the backoff', { again: true, delayMs: 100 }, { verdict: transient('busy', 'no', { retryAfterMs: 0 }) }],
    [
      'shorter than the backoff: no earlier than either (hevy-mcp #1065)',
      { again: true, delayMs: 100 },
      { verdict: transient('busy', 'no', { retryAfterMs: 40 }) },
    ],
    [
      'just as long as allowed',
      { again: true, delayMs: 60_000 },
      { verdict: transient('busy', 'no', { retryAfterMs: 60_000 }) },
    ],
    [
      'longer than allowed (undici, ky: truncated)',
      { again: false, reason: 'retry-after', delayMs: 60_001 },
      { verdict: transient('busy', 'no', { retryAfterMs: 60_001 }) },
    ],
    [
      'of 20 digits',
      { again: false, reason: 'retry-after', delayMs: 1e23 },
      { verdict: transient('busy', 'no', { retryAfterMs: 1e23 }) },
    ],
    [
      'past the deadline',
      { again: false, reason: 'retry-after', delayMs: 5_000 },
      { remainingMs: 5_000, verdict: transient('busy', 'no', { retryAfterMs: 5_000 }) },
    ],
    [
      'that is no number',
      { again: false, reason: 'retry-after', delayMs: Number.NaN },
      { verdict: transient('busy', 'no', { retryAfterMs: Number.NaN }) },
    ],
  ])('Retry-After %s', (_title, expected, changes) => {
    expect(decided(changes)).toEqual(expected)
  })

  it('starts no attempt without enough of the deadline', () => {
    expect(decided({ remainingMs: 100 })).toEqual({ again: false, reason: 'deadline', delayMs: 100 })
    expect(decided({ remainingMs: 100.5 })).toEqual({ again: true, delayMs: 100 })
    expect(decided({ remainingMs: 149 }, { minimumRemainderMs: 50 })).toEqual({
      again: false,
      reason: 'deadline',
      delayMs: 100,
    })
    expect(decided({ remainingMs: 150 }, { minimumRemainderMs: 50 })).toEqual({ again: true, delayMs: 100 })
    expect(decided({ remainingMs: 0 }, { backoff: constantDelay(0) })).toMatchObject({ reason: 'deadline' })
  })

  it('asks the budget last, and once', () => {
    const refusing = counting(false)
    expect(decided({}, { budget: refusing })).toEqual({ again: false, reason: 'budget' })
    expect(refusing.asked).toBe(1)
    const unasked = counting(true)
    const ends: Partial<RepeatFacts>[] = [
      { verdict: permanent('x') },
      { verdict: discard('x') },
      { verdict: transient('x', 'no', { doNotRepeat: true }) },
      { verdict: transient('x', 'no', { retryAfterMs: 1e9 }) },
      { guarded: false },
      { failures: 3 },
      { remainingMs: 100 },
    ]
    for (const end of ends) expect(decided(end, { budget: unasked }).again).toBe(false)
    expect(unasked.asked).toBe(0)
  })

  it('repeats overload with a budget', () => {
    expect(decided({ verdict: transient('http-429', 'no', { overload: true }) }, { budget: tokenBudget() })).toEqual({
      again: true,
      delayMs: 100,
    })
  })

  const number = fc.oneof(fc.integer({ min: 0, max: 200 }), fc.double({ min: 0, max: 1e6, noNaN: true }))
  const remaining = fc.oneof(number, fc.constant(Number.POSITIVE_INFINITY))
  const verdicts: fc.Arbitrary<Verdict> = fc.record(
    {
      help: fc.constantFrom(
        'transient' as const,
        'transient' as const,
        'transient' as const,
        'permanent' as const,
        'discard' as const,
      ),
      happened: fc.constantFrom('no' as const, 'maybe' as const),
      why: fc.constant('x'),
      retryAfterMs: number,
      overload: fc.boolean(),
      doNotRepeat: fc.constantFrom(false, false, true),
    },
    { requiredKeys: ['help', 'happened', 'why'] },
  )
  const attempts = fc.integer({ min: 1, max: 5 })

  property(
    'an attempt that is made has a guard or no effect before it, attempts, time and the whole wait',
    [verdicts, attempts, attempts, fc.boolean(), fc.boolean(), remaining, number, number],
    (verdict, allowed, failures, guarded, withBudget, remainingMs, minimumRemainderMs, maxRetryAfterMs) => {
      const budget = counting(true)
      const policy: PolicyRules = {
        attempts: allowed,
        backoff: fullJitter(),
        maxRetryAfterMs,
        minimumRemainderMs,
        ...(withBudget && { budget }),
      }
      const anyMaybe = verdict.happened === 'maybe'
      const found = decideRepeat(policy, { ...facts, verdict, failures, guarded, anyMaybe, remainingMs }, random)
      const { retryAfterMs = 0 } = verdict
      if (found.again) {
        expect(verdict.help).toBe('transient')
        expect(verdict.doNotRepeat).not.toBe(true)
        expect(guarded || verdict.happened === 'no').toBe(true)
        expect(failures).toBeLessThan(allowed)
        expect(found.delayMs).toBeGreaterThanOrEqual(retryAfterMs)
        expect(found.delayMs).toBeLessThanOrEqual(Math.max(retryAfterMs, 2000))
        expect(retryAfterMs).toBeLessThanOrEqual(maxRetryAfterMs)
        expect(remainingMs - found.delayMs).toBeGreaterThan(0)
        expect(remainingMs - found.delayMs).toBeGreaterThanOrEqual(minimumRemainderMs)
        expect(withBudget || verdict.overload !== true).toBe(true)
        expect(budget.asked).toBe(withBudget ? 1 : 0)
        return
      }
      expect(budget.asked).toBe(0)
      // And what ends it is really so.
      const { reason, delayMs = 0 } = found
      const tooLate = (ms: number): boolean => remainingMs - ms <= 0 || remainingMs - ms < minimumRemainderMs
      const holds: Record<string, boolean> = {
        permanent: verdict.help === 'permanent',
        discard: verdict.help === 'discard',
        'do-not-repeat': verdict.doNotRepeat === true,
        unguarded: !guarded && verdict.happened === 'maybe',
        attempts: failures >= allowed,
        'retry-after': delayMs === retryAfterMs && (retryAfterMs > maxRetryAfterMs || tooLate(retryAfterMs)),
        deadline: tooLate(delayMs) && (delayMs > retryAfterMs || delayMs === 0),
        'budget-required': !withBudget && verdict.overload === true,
      }
      expect(holds[reason]).toBe(true)
    },
  )
})
