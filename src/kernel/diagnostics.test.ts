import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { diagnosticsChannel } from './diagnostics.js'

describe('diagnosticsChannel', () => {
  afterEach(() => void vi.unstubAllGlobals())

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
