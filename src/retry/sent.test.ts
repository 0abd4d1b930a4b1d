// The rule, told of requests by hand. What real requests lead to is in test/idempotency/sent.test.ts.

import diagnostics from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { SentWatch } from './sent.js'
import { transient } from './verdict.js'

const unsent = transient('ECONNREFUSED', 'no', { proof: 'unsent' })
const refusal = transient('http-429', 'no', { proof: 'refused' })
const uncalled = transient('BREAKER_OPEN', 'no', { proof: 'uncalled' })
const declared = transient('declined', 'no')
const tell = (channel: string, message: unknown): void => diagnostics.channel(channel).publish(message)

const make = (request: object): void => tell('undici:request:create', { request })
const send = (request: object): void => tell('undici:client:sendHeaders', { request })
const fail = (request: object, code: string): void => tell('undici:request:error', { request, error: { code } })

async function verdicts(body: () => void): Promise<string> {
  const watch = new SentWatch()
  await watch.call(async () => body(), undefined)
  return [unsent, uncalled, refusal, declared].map((verdict) => watch.judge(verdict, {}).happened).join(' ')
}

describe('what stands after an attempt', () => {
  const one = {}
  it.each<[string, () => void, string]>([
    ['that made no request', () => {}, 'maybe no no no'],
    ['whose request is still out', () => make({}), 'maybe maybe maybe no'],
    [
      'whose request did not leave',
      () => {
        make(one)
        fail(one, 'ECONNREFUSED')
      },
      'no no no no',
    ],
    [
      'whose request left',
      () => {
        const request = {}
        make(request)
        send(request)
        send(request)
      },
      'maybe maybe no no',
    ],
    [
      'whose request failed in an unclear way, and was never told to leave',
      () => {
        const request = {}
        make(request)
        fail(request, 'ECONNRESET')
      },
      'maybe maybe no no',
    ],
    [
      'with two requests that left',
      () => {
        for (const request of [{}, {}]) {
          make(request)
          send(request)
        }
      },
      'maybe maybe maybe no',
    ],
    [
      'that heard nonsense',
      () => {
        tell('undici:request:create', undefined)
        tell('undici:request:create', { request: 'no object' })
      },
      'maybe no no no',
    ],
  ])('%s', async (_what, body, expected) => {
    expect(await verdicts(body)).toBe(expected)
  })

  it.each([
    ['connect', {}],
    ['secureConnect', { encrypted: true }],
  ])('by node:http, before and after %s', async (event, members) => {
    const socket = Object.assign(new EventEmitter(), { connecting: true, destroyed: false, ...members })
    const watch = new SentWatch()
    await watch.call(async () => tell('http.client.request.start', { request: { socket } }), undefined)
    expect(watch.judge(unsent, {}).happened).toBe('maybe') // still on its way
    socket.destroyed = true
    expect(watch.judge(unsent, {}).happened).toBe('no')
    socket.emit(event)
    expect(watch.judge(unsent, {}).happened).toBe('maybe')
  })

  it('counts what left in an attempt inside for the one around it, and nothing of others', async () => {
    const [outer, beside] = [new SentWatch(), new SentWatch()]
    await outer.call(async () => {
      const within = new SentWatch()
      await within.call(async () => {
        const request = {}
        make(request)
        send(request)
      }, undefined)
      expect(within.judge(unsent, {}).happened).toBe('maybe')
    }, undefined)
    await beside.call(async () => undefined, undefined)
    expect(outer.judge(uncalled, {}).happened).toBe('maybe')
    expect(beside.judge(uncalled, {}).happened).toBe('no')
  })

  it('stops telling requests apart at a limit, and counts the rest as sent', async () => {
    const watch = new SentWatch()
    const requests = Array.from({ length: 1_001 }, () => ({}))
    await watch.call(async () => requests.forEach(make), undefined)
    for (const request of requests) fail(request, 'ECONNREFUSED')
    expect(watch.judge(unsent, {}).happened).toBe('maybe')
  })
})
