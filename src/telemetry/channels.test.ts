import diagnostics from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { eventChannel } from './channels.js'
import { retryAttempt, retryBreaker, retryHedge, retryLayers, retryRefused } from './index.js'

describe('eventChannel', () => {
  afterEach(() => void vi.unstubAllGlobals())

  it('hands messages to whoever listens by its name', () => {
    const heard: unknown[] = []
    const listen = (message: unknown) => void heard.push(message)
    const channel = eventChannel<{ count: number }>('reprise.test.events')
    expect(channel.hasSubscribers).toBe(false)
    diagnostics.subscribe('reprise.test.events', listen)
    expect(channel.hasSubscribers).toBe(true)
    channel.publish({ count: 1 })
    diagnostics.unsubscribe('reprise.test.events', listen)
    expect(heard).toEqual([{ count: 1 }])
  })

  it('is inert where the runtime has no channels', () => {
    vi.stubGlobal('process', {})
    const channel = eventChannel('reprise.test.browser')
    expect(channel).toMatchObject({ name: 'reprise.test.browser', hasSubscribers: false })
    expect(() => channel.publish({})).not.toThrow()
  })

  it('names the channels of retry', () => {
    expect([retryAttempt, retryRefused, retryHedge, retryBreaker, retryLayers].map(({ name }) => name)).toEqual([
      'reprise.retry.attempt',
      'reprise.retry.refused',
      'reprise.retry.hedge',
      'reprise.retry.breaker',
      'reprise.retry.layers',
    ])
  })
})
