// The routes and drills of the sample service, as a real process, on both stores.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../servers/fresh-database.js'
import { effects, freshFile, isReplay, order, pay, type Service, startService, stop } from './service-process.js'

const stores: Readonly<Record<string, () => Promise<string>>> = {
  sqlite: async () => freshFile(),
  postgres: async () => (await freshDatabase()).url,
}

type Problem = { type: string; title: string; status: number; retryable: boolean }
const titles: Readonly<Record<number, string>> = { 400: 'The request is not valid', 404: 'There is nothing here' }
const problemOf = async (response: Response): Promise<Problem> => (await response.json()) as Problem

describe.each(Object.keys(stores))('the service on %s', (store) => {
  let service: Service
  let url = ''

  beforeAll(async () => {
    service = await startService({ DATABASE_URL: (await stores[store]?.()) ?? '' })
    url = service.url
  })
  afterAll(async () => {
    expect(await stop(service)).toMatchObject({ code: 0, signal: null })
  })

  /** Sends twice under one key, the drill in both, and says what came and how many payments it made. */
  const twice = async (drill: string, body: unknown = order) => {
    const [key, before] = [randomUUID(), await effects(url)]
    const first = await pay(url, { key, drill, body }).catch(() => undefined)
    const second = await pay(url, { key, drill, body })
    return { first, second, made: (await effects(url)) - before }
  }
  const bytes = async (response: Response | undefined) =>
    Buffer.from((await response?.arrayBuffer()) ?? new ArrayBuffer(0))
  const readable = (principal = 'me') => ({ headers: { authorization: `Bearer ${principal}` } })

  it('says that it is well', async () => {
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok', drill: true })
  })

  it('makes a payment, shows it where it says, and only to whom it belongs', async () => {
    const account = randomUUID()
    const response = await pay(url, { body: { ...order, account, note: 'für später' } })
    expect(response.status).toBe(201)
    const made = (await response.json()) as { id: string; createdAt: string }
    expect(made).toEqual({ ...order, account, id: expect.any(String), createdAt: expect.stringMatching(/^\d{4}-.*Z$/) })
    const location = response.headers.get('location') ?? ''
    expect(location).toBe(`/payments/${made.id}`)
    expect(await (await fetch(url + location, readable())).json()).toEqual({ ...made, note: 'für später' })
    const list = await (await fetch(`${url}/payments?account=${account}`, readable())).json()
    expect(list).toEqual({ items: [{ ...made, note: 'für später' }] })
    expect((await fetch(url + location, readable('another'))).status).toBe(404)
    expect(await (await fetch(`${url}/payments?account=${account}`, readable('another'))).json()).toEqual({ items: [] })
  })

  it('hands out the same answer again, and makes one payment', async () => {
    const { first, second, made } = await twice('')
    expect(first?.status).toBe(201)
    expect(isReplay(first as Response)).toBe(false)
    expect([second.status, isReplay(second), made]).toEqual([201, true, 1])
    expect(await bytes(second)).toEqual(await bytes(first))
    expect(second.headers.get('location')).toBe(first?.headers.get('location'))
  })

  it('tries for a caller that does not wait long, and not for one that is as good as gone', async () => {
    const asked = (waitsMs: number) =>
      fetch(`${url}/payments`, {
        method: 'POST',
        headers: {
          authorization: 'Bearer me',
          'content-type': 'application/json',
          'idempotency-key': `"${randomUUID()}"`,
          'reprise-deadline-ms': String(waitsMs),
        },
        body: JSON.stringify(order),
      })
    await pay(url) // so that the first connection is there
    for (const waitsMs of [55, 50]) expect((await asked(waitsMs)).status).not.toBe(201)
    // On a busy machine many of them may really be too late, and in the end one is not.
    for (const waitsMs of [300, 200]) await expect.poll(async () => (await asked(waitsMs)).status).toBe(201)
  })

  it('keeps callers apart who use the same key', async () => {
    const key = randomUUID()
    const before = await effects(url)
    const answers = [await pay(url, { key, principal: 'one' }), await pay(url, { key, principal: 'two' })]
    expect(answers.map(isReplay)).toEqual([false, false])
    expect((await effects(url)) - before).toBe(2)
  })

  it('refuses an amount over the limit for good', async () => {
    const { first, second, made } = await twice('', { ...order, amountMinor: 1_000_001 })
    expect([first?.status, second.status, isReplay(second), made]).toEqual([402, 402, true, 0])
    expect((await twice('', { ...order, amountMinor: 1_000_000 })).made).toBe(1)
  })

  it.each([
    ['no JSON', '{'],
    ['no object', 'null'],
    ['no account', { ...order, account: '' }],
    ['an account that is half a character', { ...order, account: '\ud800' }],
    ['a share of the minor unit', { ...order, amountMinor: 0.5 }],
    ['an amount as text', { ...order, amountMinor: '12' }],
    ['nothing', { ...order, amountMinor: 0 }],
    ['no currency', { ...order, currency: 'eur' }],
    ['a note that is none', { ...order, note: 7 }],
    ['a note that ends within a character', { ...order, note: 'later \ud83d' }],
  ])('refuses %s with 400, and keeps no memory of it', async (_what, body) => {
    const [key, before] = [randomUUID(), await effects(url)]
    const refused = await pay(url, { key, body })
    expect([refused.status, (await problemOf(refused)).title]).toEqual([400, 'The request is not valid'])
    expect([(await pay(url, { key })).status, (await effects(url)) - before]).toEqual([201, 1])
  })

  it.each([
    ['no key', { key: undefined }, 400, 'key-missing'],
    ['two keys in one', { key: 'a", "b' }, 400, 'key-invalid'],
    ['nobody', { principal: undefined }, 401, 'unauthenticated'],
    ['no shape', { body: {} }, 400, 'request-invalid'],
    ['too much', { body: { ...order, amountMinor: 2_000_000 } }, 402, 'amount-over-limit'],
    ['too many bytes', { body: 'x'.repeat(1_048_577) }, 413, 'body-too-large'],
  ] as const)('answers %s with a problem whose type is a page', async (_what, sent, status, name) => {
    const response = await pay(url, sent)
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/problem+json'])
    // How to say who calls (RFC 9110, 15.5.2).
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
    const problem = await problemOf(response)
    expect(problem).toMatchObject({ type: `${url}/problems/${name}`, status, retryable: false })
    const page = await fetch(problem.type)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(await page.text()).toContain(`<h1>${problem.title}</h1>`)
  })

  it('has a page for every problem, and none for others', async () => {
    const links = (await (await fetch(`${url}/problems/`)).text()).match(/\/problems\/[\w-]+/g) ?? []
    expect(links.length).toBeGreaterThan(15)
    for (const link of links) expect((await fetch(url + link)).status).toBe(200)
    expect((await fetch(`${url}/problems/constructor`)).status).toBe(404)
  })

  it('refuses other content under the same key, and a duplicate while the first is at work', async () => {
    const key = randomUUID()
    const watching = await fetch(`${url}/drill/events`, readable())
    const text = watching.body?.pipeThrough(new TextDecoderStream()).getReader()
    const first = pay(url, { key, drill: 'slow=3000' })
    // Told by the service itself: the key is claimed, and the handler is at work.
    for (let seen = ''; !seen.includes('claimed'); ) seen += (await text?.read())?.value ?? 'claimed'
    await text?.cancel()
    const duplicate = await pay(url, { key })
    expect([duplicate.status, duplicate.headers.get('retry-after')]).toEqual([409, '1'])
    expect((await pay(url, { key, body: { ...order, amountMinor: 1 } })).status).toBe(422)
    expect((await first).status).toBe(201)
    expect(isReplay(await pay(url, { key }))).toBe(true)
  })

  describe('drills', () => {
    it('slow: takes its time, and a replay does not', async () => {
      const key = randomUUID()
      const timed = async () => {
        const startedMs = performance.now()
        const response = await pay(url, { key, drill: 'slow=1000' })
        return { tookMs: performance.now() - startedMs, replayed: isReplay(response) }
      }
      const first = await timed()
      expect([first.tookMs >= 999, first.replayed]).toEqual([true, false])
      // One of them that takes less shows that none of them waits.
      const again = async () => {
        const { replayed, tookMs } = await timed()
        expect(replayed).toBe(true)
        return tookMs
      }
      await expect.poll(again).toBeLessThan(900)
    })

    it.each([
      ['fail=503', 503],
      ['throw', 500],
    ])('%s: nothing stays behind, and the key is free', async (drill, status) => {
      const [key, before] = [randomUUID(), await effects(url)]
      const failed = await pay(url, { key, drill })
      expect([failed.status, (await problemOf(failed)).retryable]).toEqual([status, true])
      expect(await effects(url)).toBe(before)
      const repeat = await pay(url, { key })
      expect([repeat.status, isReplay(repeat), (await effects(url)) - before]).toEqual([201, false, 1])
    })

    it('drop: it has happened when the connection is cut, and the repeat is told', async () => {
      const [key, before] = [randomUUID(), await effects(url)]
      await expect(pay(url, { key, drill: 'drop' })).rejects.toThrow('fetch failed')
      expect((await effects(url)) - before).toBe(1)
      const repeat = await pay(url, { key, drill: 'drop' })
      expect([repeat.status, isReplay(repeat), (await effects(url)) - before]).toEqual([201, true, 1])
    })

    it.each([
      ['status=204', 204, 0],
      ['status=303', 303, 0],
      ['binary', 201, 256],
      ['large=5000', 201, 5000],
    ])('%s: the odd answer comes again as it was', async (drill, status, size) => {
      const { first, second, made } = await twice(drill)
      expect([first?.status, second.status, isReplay(second), made]).toEqual([status, status, true, 1])
      expect(first?.headers.get('location')).toMatch(/^\/payments\/./)
      expect(second.headers.get('location')).toBe(first?.headers.get('location'))
      const content = await bytes(first)
      expect(content).toHaveLength(size)
      expect(await bytes(second)).toEqual(content)
    })

    it('cookie: given once, never repeated', async () => {
      const { first, second, made } = await twice('cookie')
      expect(first?.headers.get('set-cookie')).toMatch(/^drill=/)
      expect([second.headers.get('set-cookie'), isReplay(second), made]).toEqual([null, true, 1])
    })

    it('large: the first caller gets all of it, the next one a problem that says where it is', async () => {
      const { first, second, made } = await twice('large=600000')
      expect([first?.status, (await bytes(first)).length, made]).toEqual([201, 600_000, 1])
      expect([second.status, (await problemOf(second)).type]).toEqual([410, `${url}/problems/answer-not-kept`])
      expect(second.headers.get('location')).toBe(first?.headers.get('location'))
    })

    it('are no part of what is bound to the key, and unknown words ask for nothing', async () => {
      const key = randomUUID()
      const answers = [
        await pay(url, { key, drill: 'fly, slow=never, status=999,,' }),
        await pay(url, { key, drill: 'throw' }),
        await pay(url, { key, drill: 'exit=before-commit' }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
      expect(answers.map(isReplay)).toEqual([false, true, true])
    })
  })

  describe('the route without Reprise', () => {
    const path = '/drill/without-reprise/payments'

    it('makes a payment with each call, whatever its key, and the ledger says by which route', async () => {
      const [key, account] = [randomUUID(), randomUUID()]
      const body = { ...order, account }
      for (const drill of ['', 'drop', '']) await pay(url, { path, key, drill, body }).catch(() => undefined)
      const list = (await (await fetch(`${url}/payments?account=${account}`, readable())).json()) as {
        items: { note: string }[]
      }
      expect(list.items.map(({ note }) => note)).toEqual(Array(3).fill('made without Reprise'))
    })

    it('makes none where its transaction is rolled back', async () => {
      const before = await effects(url)
      expect((await pay(url, { path, drill: 'throw' })).status).toBe(500)
      expect((await pay(url, { path, drill: 'fail=503' })).status).toBe(503)
      expect(await effects(url)).toBe(before)
    })

    it('refuses what is no order, nobody, and other methods', async () => {
      const before = await effects(url)
      const bodies = ['{', '{}', { ...order, amountMinor: 0 }, `"${'x'.repeat(70_000)}"`]
      for (const body of bodies) expect((await pay(url, { path, body })).status).toBe(400)
      expect((await pay(url, { path, body: { ...order, amountMinor: 1_000_001 } })).status).toBe(402)
      expect((await pay(url, { path, principal: undefined })).status).toBe(401)
      const refused = await fetch(url + path, readable())
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST'])
      expect(await effects(url)).toBe(before)
    })
  })

  describe('receipts', () => {
    type Looked = {
      items: { payment: string; wire: number; dropped: number; receipts: number }[]
      letters: { payment: string; code: string; reason: string; state: string; parks: boolean }[]
    }
    const look = async (account: string): Promise<Looked> =>
      (await (await fetch(`${url}/receipts?account=${account}`, readable())).json()) as Looked
    const paid = async (account: string, drill = ''): Promise<string> => {
      const response = await pay(url, { drill, body: { ...order, account } })
      return ((await response.json()) as { id: string }).id
    }
    const redrive = (payment: string, principal = 'me') =>
      fetch(`${url}/receipts/${payment}/redrive`, { method: 'POST', ...readable(principal) })
    const patient = { timeout: 120_000 }
    /** Waits until the newest payment of an account is as wanted. */
    const comesTo = async (account: string, wanted: object) =>
      expect.poll(async () => (await look(account)).items[0], patient).toMatchObject(wanted)

    it('are written once for each payment, of a repeated call too, and none for one that was rolled back', async () => {
      const account = randomUUID()
      const [key, body] = [randomUUID(), { ...order, account }]
      for (const drill of ['throw', 'drop', '']) await pay(url, { key, drill, body }).catch(() => undefined)
      await comesTo(account, { receipts: 1 })
      const payment = await paid(account)
      await comesTo(account, { payment, receipts: 1 })
      const { items } = await look(account)
      expect(items.map(({ receipts }) => receipts)).toEqual([1, 1])
    })

    it('kill-relay: it had published, the next relay publishes again, and the second is dropped', async () => {
      const account = randomUUID()
      const payment = await paid(account, 'kill-relay')
      await expect.poll(async () => (await look(account)).items[0]?.dropped, patient).toBeGreaterThan(0)
      const [item] = (await look(account)).items
      expect(item).toMatchObject({ payment, receipts: 1 })
      expect(item?.wire).toBeGreaterThan(item?.dropped ?? Number.NaN)
      // The relay that was killed is followed by one that works.
      const next = await paid(account)
      await comesTo(account, { payment: next, receipts: 1 })
    })

    it('twice: the second is dropped', async () => {
      const account = randomUUID()
      await paid(account, 'twice')
      await expect.poll(async () => (await look(account)).items[0]?.dropped, patient).toBeGreaterThan(0)
      expect((await look(account)).items).toMatchObject([{ receipts: 1 }])
    })

    it('poison: a dead letter parks its account and no other, until its owner redrives it', async () => {
      const [account, other] = [randomUUID(), randomUUID()]
      const poison = await paid(account, 'poison')
      await expect.poll(async () => (await look(account)).letters, patient).toHaveLength(1)
      const letter = { payment: poison, code: 'TypeError', state: 'open', parks: true }
      expect((await look(account)).letters).toMatchObject([letter])
      expect((await look(account)).letters[0]?.reason).toContain('Currency code is required')
      const behind = await paid(account)
      await paid(other)
      await comesTo(other, { receipts: 1 })
      await comesTo(account, { payment: behind, wire: expect.any(Number), receipts: 0 })
      expect((await redrive(poison, 'another')).status).toBe(404)
      expect((await redrive(behind)).status).toBe(404)
      expect(await (await redrive(poison)).json()).toEqual({ redriven: poison })
      expect((await redrive(poison)).status).toBe(404)
      await comesTo(account, { payment: behind, receipts: 1 })
      expect(await look(account)).toMatchObject({ items: [{}, { payment: poison, receipts: 1 }], letters: [] })
    })

    it('are shown to whom they belong, of one account', async () => {
      const account = randomUUID()
      await paid(account)
      const others = await fetch(`${url}/receipts?account=${account}`, readable('another'))
      expect(await others.json()).toEqual({ items: [], letters: [] })
      expect((await fetch(`${url}/receipts`, readable())).status).toBe(400)
      expect((await fetch(`${url}/receipts?account=${account}`)).status).toBe(401)
      expect((await fetch(`${url}/receipts/x/redrive`, readable())).status).toBe(405)
    })
  })

  it('answers what is not there, and methods that are not allowed, with problems', async () => {
    for (const path of ['/nothing', '/payments/', '/payments/nobody', '/drill/other', '/page/../main.js']) {
      const response = await fetch(url + path, readable())
      expect([path, response.status, (await problemOf(response)).type]).toEqual([
        path,
        404,
        `${url}/problems/not-found`,
      ])
    }
    const refused = await fetch(`${url}/payments`, { method: 'DELETE', ...readable() })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
    expect((await fetch(`${url}/payments`)).status).toBe(401)
  })

  it.each([
    ['//', 404],
    ['//[', 404],
    ['//payments/payments', 404],
    ['*', 404],
    ['http://[', 400],
    ['/payments?account=%00', 400],
    ['/payments?account=', 400],
    ['/payments?account=%F0%9F%98%80', 200],
    ['/payments/%00', 404],
  ])('answers GET %s with %i', async (path, status) => {
    // Not fetch, which would mend the address.
    const { hostname: host, port } = new URL(url)
    const asked = request({ host, port, path, ...readable() }).end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    const { title } = (await json(response)) as Problem
    expect([response.statusCode, title]).toEqual([status, titles[status]])
  })

  it('tells a caller what becomes of his own calls, as it happens', async () => {
    const watching = new AbortController()
    const stream = await fetch(`${url}/drill/events`, { ...readable('watcher'), signal: watching.signal })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    const key = randomUUID()
    await pay(url, { key, principal: 'somebody else' })
    await pay(url, { key, principal: 'watcher' })
    await pay(url, { key, principal: 'watcher' })
    let text = ''
    while ((text.match(/http\.answered/g) ?? []).length < 2) {
      const part = await reader?.read()
      if (part?.value === undefined) throw new Error(`The stream ended after ${text}`)
      text += part.value
    }
    watching.abort()
    const told = [...text.matchAll(/"what":"reprise\.(?<what>[\w.]+)"/g)].map(({ groups }) => groups?.['what'])
    const executed = ['operation.claimed', 'operation.executed', 'http.answered']
    expect(told).toEqual([...executed, 'operation.replayed', 'http.answered'])
    expect(text).not.toContain(key)
  })
})
