import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { afterMicrotasks, openScopes } from '../../kernel/index.js'
import { transactionScope } from '../open-transaction.js'
import { watchEffects } from './channels.js'

// Messages as the runtimes publish them; that real requests lead to them is tested with a server.
const events: unknown[] = []
const listen = (event: unknown): void => void events.push(event)
beforeEach(() => {
  events.length = 0
  diagnostics.subscribe('reprise.transaction.effect', listen)
})
afterEach(() => void diagnostics.unsubscribe('reprise.transaction.effect', listen))

const transaction = {
  domain: 'orders',
  effects: { mode: 'report', allowOrigins: new Set<string>() },
  poison: () => {},
} as const
// As the runner does it.
const inside = async (body: () => unknown): Promise<unknown> => {
  watchEffects()
  const scope = openScopes([transactionScope(transaction)])
  try {
    return await scope.call(() => Promise.resolve(body()))
  } finally {
    await new Promise<void>(afterMicrotasks)
    scope.end()
  }
}
const tell = (channel: string, request: unknown): void => diagnostics.channel(channel).publish({ request })
const clientRequest = () => ({ protocol: 'http:', host: 'a.example', getHeader: () => 'a.example:81' })
const reported = { domain: 'orders', decision: 'reported' }

describe('the channels', () => {
  it('tell of a request by undici', async () => {
    await inside(() => tell('undici:request:create', { origin: 'https://a.example' }))
    expect(events).toEqual([{ ...reported, by: 'fetch', origin: 'https://a.example' }])
  })

  it.each([
    ['made and started, as Node 22.12 and later tell it', ['created', 'start']],
    ['started, as Node 20 tells it', ['start']],
    ['made and not yet started', ['created']],
  ])('tell once of a request by http that is %s', async (_what, moments) => {
    const request = clientRequest()
    await inside(() => {
      for (const moment of moments) tell(`http.client.request.${moment}`, request)
    })
    expect(events).toEqual([{ ...reported, by: 'http', origin: 'http://a.example:81' }])
  })

  it('tell of a request that was made before the transaction and is started inside', async () => {
    const request = clientRequest()
    tell('http.client.request.created', request)
    await inside(() => tell('http.client.request.start', request))
    expect(events).toHaveLength(1)
  })

  it('are heard until the microtasks after the body are through, also when it fails', async () => {
    const error = new Error('body')
    const work = inside(async () => {
      process.nextTick(() => tell('http.client.request.start', clientRequest()))
      throw error
    })
    await expect(work).rejects.toBe(error)
    expect(events).toHaveLength(1)
    process.nextTick(() => tell('http.client.request.start', clientRequest()))
    await new Promise((resolve) => setImmediate(resolve))
    expect(events).toHaveLength(1)
  })
})
