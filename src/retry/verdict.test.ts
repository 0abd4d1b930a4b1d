import { describe, expect, it } from 'vitest'
import { constantDelay } from './backoff.js'
import { readOnly } from './guard.js'
import { historyOf } from './history.js'
import { retryPolicy } from './policy.js'
import {
  discard,
  failedBecause,
  isReturnedVerdict,
  permanent,
  soundVerdict,
  transient,
  unclassified,
  type Verdict,
} from './verdict.js'

describe('verdict', () => {
  it('answers both questions and says why', () => {
    expect(transient('http-503', 'maybe', { overload: true, retryAfterMs: 5 })).toEqual({
      help: 'transient',
      happened: 'maybe',
      why: 'http-503',
      overload: true,
      retryAfterMs: 5,
    })
    expect(transient('ECONNREFUSED', 'no')).toEqual({ help: 'transient', happened: 'no', why: 'ECONNREFUSED' })
    expect(permanent('unclassified')).toEqual({ help: 'permanent', happened: 'maybe', why: 'unclassified' })
    expect(permanent('http-400', 'no').happened).toBe('no')
    expect(discard('obsolete')).toEqual({ help: 'discard', happened: 'no', why: 'obsolete' })
  })

  it('may be returned as a value and is told from any other result', () => {
    const verdict = transient('busy', 'no')
    const result = failedBecause(verdict, 42)
    expect(isReturnedVerdict(result)).toBe(true)
    expect([result.verdict, result.value]).toEqual([verdict, 42])
    expect(failedBecause(verdict).value).toBeUndefined()
    for (const other of [undefined, null, 0, 'text', verdict, { verdict, value: 42 }, () => verdict]) {
      expect(isReturnedVerdict(other)).toBe(false)
    }
  })

  it.each([undefined, null, 'busy', {}, { help: 'soon', happened: 'no', why: 'x' }, { help: 'transient', why: 'x' }])(
    'refuses to return what is none: %j',
    (verdict) => {
      expect(() => failedBecause(verdict as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    },
  )

  it('is known across copies of the package', () => {
    const foreign = { [Symbol.for('reprise.verdict')]: true, verdict: permanent('x'), value: undefined }
    expect(isReturnedVerdict(foreign)).toBe(true)
  })
})

describe('a verdict that cannot be used', () => {
  const hostile = new Proxy({} as Verdict, {
    get: () => {
      throw new Error('of the proxy')
    },
    ownKeys: () => {
      throw new Error('of the proxy')
    },
  })
  const slow = { help: 'transient', happened: 'no', why: 'busy', retryAfterMs: 5_000n } as unknown as Verdict
  const wrong: [string, Verdict][] = [
    ['a BigInt', 5n as unknown as Verdict],
    ['a wait that is a BigInt', slow],
    ['a hostile proxy', hostile],
    ['null', null as unknown as Verdict],
    ['text', 'transient' as unknown as Verdict],
  ]

  it.each(wrong)('does not replace the error of the caller: %s', async (_name, verdict) => {
    const mine = new Error('mine')
    const policy = retryPolicy({ classify: () => verdict, backoff: constantDelay(0) })
    await expect(policy.run(readOnly(), () => Promise.reject(mine))).rejects.toBe(mine)
    expect(historyOf(mine)).toMatchObject({ stop: 'permanent', attempts: [{ verdict: unclassified }] })
    await expect(policy.once(() => Promise.reject(mine))).rejects.toMatchObject({
      code: 'UNKNOWN_OUTCOME',
      cause: mine,
    })
    const returned = { ...failedBecause(transient('busy', 'no'), 7), verdict }
    expect(await policy.run(readOnly(), () => returned as never)).toBe(7)
  })

  it('has a word where it had none', () => {
    expect(soundVerdict({ help: 'transient', happened: 'no', why: 1n } as never)).toEqual(transient('unnamed', 'no'))
  })
})
