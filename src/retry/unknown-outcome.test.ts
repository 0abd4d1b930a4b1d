import { describe, expect, it } from 'vitest'
import { isRepriseError } from '../kernel/index.js'
import { UnknownOutcomeError } from './unknown-outcome.js'
import { permanent, transient } from './verdict.js'

describe('UnknownOutcomeError', () => {
  const cause = new Error('reset')
  const record = (verdict = transient('ECONNRESET', 'maybe')) => ({ number: 1, verdict, error: cause, failedAtMs: 0 })

  it('is an error of Reprise with a type and a code of its own, its cause, and the attempts', () => {
    const attempts = [record()]
    const error = new UnknownOutcomeError(cause, attempts, ['later'])
    expect(isRepriseError(error, 'UNKNOWN_OUTCOME')).toBe(true)
    expect(error).toMatchObject({ name: 'UnknownOutcomeError', cause, attempts, suppressed: ['later'] })
    expect(Object.isFrozen(error.attempts)).toBe(true)
  })

  it('says how to classify what nobody classified, and only that', () => {
    expect(new UnknownOutcomeError(cause, [record(permanent('unclassified'))]).message).toMatch(/classify/)
    expect(new UnknownOutcomeError(cause, [record()]).message).not.toMatch(/classify/)
  })
})
