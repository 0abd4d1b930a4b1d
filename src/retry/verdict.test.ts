import { describe, expect, it } from 'vitest'
import { discard, failedBecause, isReturnedVerdict, permanent, transient } from './verdict.js'

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
