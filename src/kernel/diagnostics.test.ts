import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { diagnosticsChannel, warn, warnOnce } from './diagnostics.js'

afterEach(() => void vi.unstubAllGlobals())

describe('diagnosticsChannel', () => {
  it('is the channel of Node with that name', () => {
    const heard: unknown[] = []
    const listen = (message: unknown) => void heard.push(message)
    const channel = diagnosticsChannel('reprise.test.channel')
    expect(channel?.hasSubscribers).toBe(false)
    diagnostics.subscribe('reprise.test.channel', listen)
    expect(channel?.hasSubscribers).toBe(true)
    channel?.publish({ said: 1 })
    diagnostics.unsubscribe('reprise.test.channel', listen)
    expect(heard).toEqual([{ said: 1 }])
  })

  it('is absent where the runtime has none', () => {
    vi.stubGlobal('process', {})
    expect(diagnosticsChannel('reprise.test.channel')).toBeUndefined()
  })
})

it('warn tells of a thing each time', () => {
  const emitWarning = vi.fn()
  vi.stubGlobal('process', { emitWarning })
  warn('EACH', 'Mind it.')
  warn('EACH', 'Mind it.')
  expect(emitWarning).toHaveBeenCalledTimes(2)
})

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
