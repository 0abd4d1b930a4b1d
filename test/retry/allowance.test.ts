// Four layers of three attempts each around one request, on real sockets: what arrives is what one of them would make.
// The modules are loaded anew for each test, so that the first call of a process is among those that are counted.

import diagnostics from 'node:diagnostics_channel'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type * as Grpc from '../../src/grpc/index.js'
import type * as Client from '../../src/http/client/index.js'
import { eventLoopTurn } from '../../src/kernel/index.js'
import type * as Retry from '../../src/retry/index.js'
import type { RetryLayersEvent } from '../../src/telemetry/index.js'
import { answers, serversOfTest } from './sockets.js'

const server = serversOfTest()

/** An origin that refuses connections: a port that was free a moment ago. */
async function refusingOrigin(): Promise<string> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return `http://127.0.0.1:${port}`
}

type Work = () => Promise<Response>
type Layer = (work: Work) => Work

describe('four layers of three attempts', () => {
  let retry: typeof Retry
  let grpc: typeof Grpc
  let client: typeof Client
  let fetched = 0
  const events: RetryLayersEvent[] = []
  const hear = (event: unknown) => void events.push(event as RetryLayersEvent)
  // Whoever listens has every layer be seen from the start, also in the first call of a process.
  const listen = () => {
    diagnostics.unsubscribe('reprise.retry.layers', hear)
    diagnostics.subscribe('reprise.retry.layers', hear)
  }

  beforeEach(async () => {
    vi.resetModules()
    retry = await import('../../src/retry/index.js')
    grpc = await import('../../src/grpc/index.js')
    client = await import('../../src/http/client/index.js')
    fetched = 0
    events.length = 0
  })
  afterEach(() => void diagnostics.unsubscribe('reprise.retry.layers', hear))

  const counted: typeof fetch = (...args) => {
    fetched += 1
    return fetch(...args)
  }

  async function plainly(url: string): Promise<Response> {
    const response = await counted(url)
    if (response.ok) return response
    await response.body?.cancel()
    throw Object.assign(new Error('not ok'), { status: response.status })
  }

  function sending(url: string): Work {
    const http = client.httpClient({ fetch: counted, policy: { backoff: retry.constantDelay(1) } })
    return async () => {
      const response = await http.fetch(url)
      if (!response.ok) throw Object.assign(new Error('not ok'), { status: response.status })
      return response
    }
  }

  const policy = (): Layer => {
    const made = retry.retryPolicy({ attempts: 3, backoff: retry.constantDelay(1) })
    return (work) => () => made.run(retry.readOnly(), work)
  }
  const fromServiceConfig = (): Layer => {
    const retryPolicy = {
      maxAttempts: 3,
      initialBackoff: '0.001s',
      maxBackoff: '0.001s',
      backoffMultiplier: 1,
      retryableStatusCodes: ['UNAVAILABLE'],
    }
    const config = {
      retryThrottling: { maxTokens: 10, tokenRatio: 0.1 },
      methodConfig: [{ name: [{}], retryPolicy }],
    }
    const made = grpc.policyFromServiceConfig(config, 'shop.Orders/Find')
    return (work) => () => made.run(retry.readOnly(), work)
  }

  /** Work that is not begun at once, as after any other await. */
  const behindAnAwait: Layer = (work) => async () => {
    await eventLoopTurn()
    return work()
  }

  const sinks = {
    'answers 503': async () => (await server(answers(503))).origin,
    'refuses connections': refusingOrigin,
  }

  describe.each(Object.entries(sinks))('around a sink that %s', (_name, sink) => {
    it('make three calls: policies, a gRPC policy and the HTTP client', async () => {
      listen()
      const outer = [policy(), fromServiceConfig(), policy()]
      let work = sending(await sink())
      for (const layer of outer) work = layer(behindAnAwait(work))
      await work().catch(() => undefined)
      expect(fetched).toBe(3)
      expect(Math.max(...events.map(({ declared }) => declared))).toBe(81)
    })

    it.each([true, false])(
      'make three calls in the first call of a process, where each is made by the one around it (heard: %s)',
      async (isHeard) => {
        if (isHeard) listen()
        const url = await sink()
        const lazily =
          (work: Work): Work =>
          async () => {
            await eventLoopTurn()
            return policy()(work)()
          }
        let work: Work = () => plainly(url)
        for (let layers = 1; layers <= 4; layers += 1) work = lazily(work)
        await work().catch(() => undefined)
        expect(fetched).toBe(3)
        // Where nobody listens, each hears of the one inside by the error that came of it.
        if (isHeard) expect(Math.max(...events.map(({ declared }) => declared))).toBe(81)
      },
    )

    it('make three calls in the first call of a process, where one policy is four layers', async () => {
      const url = await sink()
      const layer = policy()
      let work: Work = () => plainly(url)
      for (let layers = 1; layers <= 4; layers += 1) work = layer(behindAnAwait(work))
      await work().catch(() => undefined)
      expect(fetched).toBe(3)
    })
  })
})
