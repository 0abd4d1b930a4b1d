import { afterEach, describe, expect, it, vi } from 'vitest'
import { warnOnce } from './warnings.js'

afterEach(() => void vi.unstubAllGlobals())

describe('warnOnce', () => {
  it('tells of a thing once, with its code', () => {
    const emitWarning = vi.fn()
    vi.stubGlobal('process', { emitWarning })
    warnOnce('FIRST', 'Mind the first.')
    warnOnce('FIRST', 'Mind the first again.')
    warnOnce('SECOND', 'Mind the second.')
    expect(emitWarning.mock.calls).toEqual([
      ['Mind the first.', { type: 'RepriseWarning', code: 'FIRST' }],
      ['Mind the second.', { type: 'RepriseWarning', code: 'SECOND' }],
    ])
  })

  it.each([undefined, {}])('tells nothing where the runtime has no way to: %o', (process) => {
    vi.stubGlobal('process', process)
    expect(() => warnOnce(`THIRD-${typeof process}`, 'Nobody hears.')).not.toThrow()
  })
})
