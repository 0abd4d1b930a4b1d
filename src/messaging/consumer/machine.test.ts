import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kernel/index.js'
import { discard, fullJitter, noJitter, permanent, transient, type Verdict } from '../../retry/index.js'
import { notesIn, withNote } from './attempt-history.js'
import {
  afterHandling,
  type ConsumerRules,
  type Ending,
  type KnownFailures,
  missingBefore,
  type Next,
  nothingKnown,
  onArrival,
} from './machine.js'

const rules: ConsumerRules = { attempts: 3, backoff: noJitter({ baseMs: 100, capMs: 1_000 }) }

const endsIn = (ending: Ending, known: KnownFailures = nothingKnown): Next =>
  afterHandling(known, ending, rules, seededRandom(1), 1_000)

const failed = (verdict: Verdict, spared = false): Ending => ({
  is: 'failed',
  verdict,
  code: verdict.why,
  reason: 'Error: no',
  spared,
})

describe('what follows from a failure', () => {
  it.each<[string, Ending, Partial<Next>]>([
    ['a commit', { is: 'committed' }, { is: 'done' }],
    ['another owner', { is: 'fenced' }, { is: 'leave' }],
    ['a store that is away', { is: 'away' }, { is: 'again', pause: 'store' }],
    ['a stop', { is: 'stopped' }, { is: 'again', forMs: 0, pause: undefined }],
    ['a lock of others', { is: 'busy' }, { is: 'again', forMs: 100, pause: undefined }],
    ['a store that will not have it', { is: 'refused', code: '23514', reason: 'no' }, { is: 'park', code: '23514' }],
    ['an overload', failed(transient('503', 'no', { overload: true })), { is: 'again', forMs: 0, pause: 'overload' }],
    [
      'an overload that says how long',
      failed(transient('503', 'no', { overload: true, retryAfterMs: 7_000 })),
      { is: 'again', forMs: 7_000, pause: 'overload' },
    ],
    [
      'an overload that forbids a repeat',
      failed(transient('503', 'no', { overload: true, doNotRepeat: true })),
      { is: 'park', code: '503' },
    ],
    ['a permanent failure', failed(permanent('gone')), { is: 'park', code: 'gone' }],
    ['a discard', failed(discard('old')), { is: 'skip', why: 'old' }],
    ['a transient failure', failed(transient('busy', 'no')), { is: 'rest', forMs: 100, failures: 1, pause: undefined }],
    [
      'a wait that is asked for',
      failed(transient('busy', 'no', { retryAfterMs: 5_000 })),
      { is: 'rest', forMs: 5_000, failures: 1 },
    ],
    [
      'a wait that is asked for exactly',
      failed(transient('busy', 'no', { retryAfterMs: 10, exactly: true })),
      { is: 'rest', forMs: 10 },
    ],
    ['no budget', failed(transient('busy', 'no'), true), { is: 'rest', forMs: 1_000, failures: 1 }],
    [
      'a message that is not to be handled',
      { is: 'dead', code: 'MESSAGE_GAP', reason: 'gap' },
      { is: 'park', code: 'MESSAGE_GAP' },
    ],
  ])('%s', (_name, ending, next) => {
    expect(endsIn(ending)).toMatchObject(next)
  })

  it('parks with the last attempt, and keeps what each of them said', () => {
    let known = nothingKnown
    for (const delayMs of [100, 200]) {
      const next = endsIn(failed(transient('busy', 'no')), known)
      expect(next).toMatchObject({ is: 'rest', forMs: delayMs })
      known = next as Extract<Next, { is: 'rest' }>
    }
    const last = endsIn(failed(transient('busy', 'no')), known) as Extract<Next, { is: 'park' }>
    expect(last).toMatchObject({ is: 'park', code: 'busy' })
    expect(notesIn(last.history).map(({ what, code }) => [what, code])).toEqual([
      ['failed', 'busy'],
      ['failed', 'busy'],
      ['failed', 'busy'],
    ])
  })

  it('blames the store for a connection that was lost, and the message when it happens again', () => {
    const lost: Ending = { is: 'lost', code: 'ECONNRESET', reason: 'reset' }
    const first = endsIn(lost) as Extract<Next, { is: 'rest' }>
    expect(first).toMatchObject({ is: 'rest', failures: 0, pause: 'store' })
    const second = endsIn(lost, first)
    expect(second).toMatchObject({ is: 'rest', failures: 1, pause: undefined })
    const third = endsIn(lost, second as KnownFailures)
    expect(endsIn(lost, third as KnownFailures)).toMatchObject({ is: 'park', code: 'ECONNRESET' })
  })

  it('never counts what is no fault of the message', () => {
    const known = { failures: 2, history: '[]' }
    for (const ending of [{ is: 'away' }, { is: 'stopped' }, { is: 'busy' }] satisfies Ending[]) {
      expect(endsIn(ending, known).is).toBe('again')
    }
    expect(endsIn(failed(transient('503', 'no', { overload: true })), known).is).toBe('again')
  })

  it('spreads repeats', () => {
    const spread = { ...rules, backoff: fullJitter({ baseMs: 1_000, capMs: 1_000 }) }
    const random = seededRandom(3)
    const delays = Array.from({ length: 50 }, () => {
      const next = afterHandling(nothingKnown, failed(transient('busy', 'no')), spread, random, 0)
      return next.is === 'rest' ? next.forMs : -1
    })
    expect(new Set(delays).size).toBeGreaterThan(40)
    expect(Math.max(...delays)).toBeLessThanOrEqual(1_000)
  })
})

describe('what a message is that arrives', () => {
  it('is a duplicate by its processed row alone', () => {
    expect(onArrival({ is: 'duplicate' }, {})).toEqual({ is: 'ack', as: 'duplicates' })
    expect(onArrival({ is: 'late' }, {})).toMatchObject({ is: 'bury', as: 'late', code: 'MESSAGE_LATE' })
    expect(onArrival({ is: 'outdated', epoch: 9 }, {})).toMatchObject({ is: 'bury', code: 'MESSAGE_OUTDATED' })
    expect(onArrival({ is: 'mismatch' }, {})).toMatchObject({ is: 'bury', code: 'MESSAGE_MISMATCH' })
    expect(onArrival({ is: 'mismatch' }, { discarded: 'gone' })).toEqual({ is: 'ack', as: 'duplicates' })
    expect(onArrival({ is: 'stored' }, {})).toEqual({ is: 'ack', as: 'stored' })
    expect(onArrival({ is: 'gap', expected: 3 }, {})).toEqual({ is: 'ack', as: 'gaps' })
    expect(onArrival({ is: 'new' }, {})).toEqual({ is: 'handle' })
  })
})

describe('how a claimed message runs', () => {
  it('knows which number is missing before it', () => {
    const at = (epoch: number, number: number) => ({ epoch, number })
    expect(missingBefore(undefined, at(1, 7))).toBeUndefined()
    expect(missingBefore(at(1, 6), at(1, 7))).toBeUndefined()
    expect(missingBefore(at(1, 5), at(1, 7))).toBe(6)
    expect(missingBefore(at(1, 5), at(2, 1))).toBeUndefined()
    expect(missingBefore(at(1, 5), at(2, 2))).toBe(1)
  })
})

describe('the history of a message', () => {
  it('keeps the first note and the last ones, within its limit', () => {
    let history = ''
    for (let index = 0; index < 100; index += 1) {
      history = withNote(history, { atMs: index, what: 'failed', code: 'busy', reason: 'x'.repeat(5_000) })
    }
    const notes = notesIn(history)
    expect(notes).toHaveLength(20)
    expect([notes[0]?.atMs, notes[1]?.atMs, notes.at(-1)?.atMs]).toEqual([0, 81, 99])
    expect(history.length).toBeLessThan(16_384)
  })

  it.each(['', 'no JSON', '{}', '[1, null]'])('counts what is not ours as none: %s', (history) => {
    expect(notesIn(history)).toEqual([])
  })
})
