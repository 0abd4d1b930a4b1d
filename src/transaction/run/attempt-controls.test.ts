import { describe, expect, it } from 'vitest'
import { AttemptControls } from './attempt.js'

describe('the controls of an attempt', () => {
  const made = () => new AttemptControls(1, { expiresAtMs: 10 }, {})
  const reason = new Error('too late')

  it('abort a signal that was asked for before, and one that is asked for later', () => {
    const early = made()
    const { signal } = early
    expect(signal.aborted).toBe(false)
    early.abort(reason)
    expect(signal.reason).toBe(reason)

    const late = made()
    late.abort(reason)
    expect(late.signal.aborted).toBe(true)
    expect(late.signal.reason).toBe(reason)
  })

  it('hand out one signal', () => {
    const controls = made()
    expect(controls.signal).toBe(controls.signal)
  })

  it('keep the work for after the commit in its order', () => {
    const controls = made()
    const [first, second] = [() => 1, () => 2]
    controls.afterCommit(first)
    controls.afterCommit(second)
    expect(controls.hooks).toEqual([first, second])
  })
})
