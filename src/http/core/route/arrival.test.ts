// What is counted from the arrival of a request on: its deadline, and equal content that arrived a moment ago.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { factsOf, read, routeWorld, send, settledInTime } from '../../../../test/http/route-world.js'
import { mintKey } from '../../../identity/index.js'
import { sleep } from '../../../kernel/index.js'
import { type HttpRekeyedEvent, httpRekeyed } from '../../../telemetry/index.js'

describe('the deadline', () => {
  const upload = async (uploadMs: number, deadlineMs: string | undefined, options = {}) => {
    const { clock, route, effects } = routeWorld()
    const headers: Record<string, string> = deadlineMs === undefined ? {} : { 'reprise-deadline-ms': deadlineMs }
    const facts = factsOf({ key: mintKey(), headers })
    const slow = { ...facts, readBody: async () => sleep(uploadMs, { clock }).then(() => Buffer.from('x')) }
    const charges = route(options)
    const fromMs = clock.monotonicMs()
    const answer = await settledInTime(clock, charges.handle(slow, { user: 'ada' }))
    return { ...(await read(answer)), tookMs: clock.monotonicMs() - fromMs, effects: effects() }
  }

  it.each([
    ['the caller', '500', {}],
    ['the route', undefined, { deadline: '450ms' }],
  ])(
    'of %s begins with the arrival: an upload that takes longer is a 503 in time, and nothing is done',
    async (_who, header, options) => {
      const { status, problem, tookMs, effects } = await upload(2_000, header, options)
      expect([status, problem, effects]).toEqual([503, 'deadline-exceeded', 0])
      expect(tookMs).toBeLessThan(600)
    },
  )

  it('leaves what the upload has not used', async () => {
    expect(await upload(200, '500')).toMatchObject({ status: 201, effects: 1 })
    // The domain's own is for what comes after the upload.
    expect(await upload(20_000, undefined)).toMatchObject({ status: 201, effects: 1 })
  })
})

describe('equal content under other keys', () => {
  const heard: HttpRekeyedEvent[] = []
  const hear = (event: unknown): void => void heard.push(event as HttpRekeyedEvent)
  beforeEach(() => {
    heard.length = 0
    subscribe(httpRekeyed.name, hear)
  })
  afterEach(() => void unsubscribe(httpRekeyed.name, hear))

  it('is told, with how long ago, and never refused', async () => {
    const { clock, route, effects } = routeWorld()
    const charges = route({ fields: { omit: ['/sentAt'] } })
    expect((await send(charges, { body: '{"amount":1,"sentAt":1}' })).status).toBe(201)
    await clock.advance(1_500)
    const headers = { 'reprise-attempt': '2' }
    expect((await send(charges, { body: '{ "sentAt": 2, "amount": 1.0 }', headers })).status).toBe(201)
    expect(effects()).toBe(2)
    expect(heard).toEqual([{ route: 'charges', method: 'POST', agoMs: 1_500, attempt: 2 }])
  })

  it('is not told of the same key, another caller, other content, or after a while', async () => {
    const { clock, route } = routeWorld()
    const charges = route()
    const key = mintKey()
    for (const _ of ['first', 'again']) await send(charges, { key })
    await send(charges, { user: 'ben' })
    await send(charges, { body: '{"amount":2}' })
    await clock.advance(10_001)
    await send(charges)
    expect(heard).toEqual([])
  })

  it('remembers a thousand contents, and forgets the oldest', async () => {
    const { route } = routeWorld()
    const charges = route()
    for (let amount = 0; amount <= 1_000; amount++) await send(charges, { body: `{"amount":${amount}}` })
    await send(charges, { body: '{"amount":0}' })
    expect(heard).toEqual([])
    await send(charges, { body: '{"amount":1000}' })
    expect(heard.length).toBe(1)
  })
})
