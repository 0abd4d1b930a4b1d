import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { reply } from '../../../src/http/core/index.js'
import { until } from '../../servers/server-process.js'
import { adapterNames } from '../subject/subject.js'
import { exchange, open, requestText, valuesOf } from './raw.js'
import { openStage, type Stage, type StageRoute } from './stage.js'

const body = '{"amount":7}'
const json = 'Content-Type: application/json'
const target = '/api/things/7?b=2&a=1&a=%20'

describe.each(adapterNames)('on %s', (adapter) => {
  let stage: Stage | undefined
  afterEach(async () => {
    await stage?.close()
    stage = undefined
  })
  const start = async (route: StageRoute): Promise<Stage> => {
    stage = await openStage(adapter, route)
    return stage
  }
  const post = (url: string, fields: readonly string[], text = body) =>
    exchange(url, requestText('POST', target, [json, ...fields], text))
  const hasBefore = adapter !== 'fetch'

  it('the handler sees path, query, parameters, fields and bytes as they arrived', async () => {
    const { url } = await start({
      handler: ({ input, key }) =>
        reply(200, [input.target, input.params, input.fields('x-many'), input.text(), key, input.mediaType]),
    })
    const answer = await post(url, ['Idempotency-Key: "k-1"', 'X-Many: one, two'])
    expect(JSON.parse(answer.rest)).toEqual([
      target,
      adapter === 'node' ? {} : { id: '7' },
      ['one, two'],
      body,
      'k-1',
      'application/json',
    ])
  })

  it('two fields with keys are refused, whatever they hold', async () => {
    let ran = 0
    const { url } = await start({ handler: () => reply(200, ++ran) })
    for (const keys of [
      ['a', 'b'],
      ['a', 'a'],
      ['"a"', '"b"'],
    ]) {
      const answer = await post(
        url,
        keys.map((key) => `Idempotency-Key: ${key}`),
      )
      expect([answer.status, valuesOf(answer, 'content-type')]).toEqual([400, ['application/problem+json']])
    }
    expect(ran).toBe(0)
  })

  it('fields that were set before stay, lists grow, and cookies are fields of their own', async () => {
    const headers = { vary: 'Origin', 'set-cookie': ['one=1; Path=/', 'two=2'], 'x-own': 'yes', location: '/things/7' }
    const { url } = await start({ handler: () => reply(201, { id: 7 }, headers) })
    const first = await post(url, ['Idempotency-Key: k-1', 'Origin: https://shop.example'])
    expect(valuesOf(first, 'set-cookie')).toEqual([...(hasBefore ? ['before=1'] : []), 'one=1; Path=/', 'two=2'])
    expect(valuesOf(first, 'vary')).toEqual([hasBefore ? 'Accept, Origin' : 'Origin'])
    expect(valuesOf(first, 'x-request-id')).toEqual(hasBefore ? ['r-1'] : [])
    const again = await post(url, ['Idempotency-Key: k-1', 'Origin: https://shop.example'])
    expect(valuesOf(again, 'idempotent-replayed')).toEqual(['true'])
    expect(valuesOf(again, 'set-cookie')).toEqual(hasBefore ? ['before=1'] : [])
    const own = 'Idempotent-Replayed, Retry-After, Location, ETag'
    expect(valuesOf(again, 'access-control-expose-headers')).toEqual([hasBefore ? `X-Request-Id, ${own}` : own])
    expect([again.rest, valuesOf(again, 'content-length')]).toEqual(['{"id":7}', ['8']])
    expect(valuesOf(again, 'content-type')).toEqual(['application/json; charset=utf-8'])
  })

  it.each([204, 304])('%i has neither a body nor a length', async (status) => {
    const { url } = await start({ handler: () => reply(status, null, { etag: '"1"' }) })
    for (const replayed of [[], ['true']]) {
      const answer = await post(url, ['Idempotency-Key: k-1'])
      expect([answer.status, answer.rest, valuesOf(answer, 'etag')]).toEqual([status, '', ['"1"']])
      expect([valuesOf(answer, 'content-length'), valuesOf(answer, 'transfer-encoding')]).toEqual([[], []])
      expect(valuesOf(answer, 'idempotent-replayed')).toEqual(replayed)
    }
  })

  it('nothing is sent as nothing: length 0, and no type', async () => {
    const { url } = await start({ handler: () => reply(201, null, { location: '/things/7' }) })
    const answer = await post(url, ['Idempotency-Key: k-1'])
    expect([answer.status, answer.rest, valuesOf(answer, 'content-length')]).toEqual([201, '', ['0']])
    expect([valuesOf(answer, 'content-type'), valuesOf(answer, 'transfer-encoding')]).toEqual([[], []])
  })

  it('HEAD says how long the answer would be', async () => {
    const { url } = await start({ handler: () => reply(200, 'twelve bytes') })
    const answer = await exchange(url, requestText('HEAD', target, ['Idempotency-Key: k-1']))
    expect([answer.status, answer.rest, valuesOf(answer, 'content-length')]).toEqual([200, '', ['12']])
  })

  it('a body that is too large is answered with 413, known length or not, and the handler does not run', async () => {
    let ran = 0
    const { url } = await start({ handler: () => reply(200, ++ran), options: { mostBodyBytes: 100_000 } })
    const large = Buffer.alloc(3_000_000, 0x20)
    for (const length of ['known', 'unknown']) {
      const chunks = new ReadableStream({
        start(controller) {
          for (let n = 0; n < 30; n += 1) controller.enqueue(large.subarray(0, 100_000))
          controller.close()
        },
      })
      const answer = await fetch(url + target, {
        method: 'POST',
        headers: { 'idempotency-key': randomUUID(), 'content-type': 'application/json' },
        ...(length === 'known' ? { body: large } : { body: chunks, duplex: 'half' }),
      } as RequestInit)
      expect([length, answer.status]).toEqual([length, 413])
      expect(await answer.json()).toMatchObject({ type: 'urn:reprise:problem:body-too-large', status: 413 })
    }
    expect(ran).toBe(0)
  })

  it('a client that goes away cancels nothing: the outcome is recorded', async () => {
    let ran = 0
    let goOn = (): void => undefined
    const { url, server } = await start({
      handler: async () => {
        ran += 1
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
        return reply(201, { id: 7 })
      },
    })
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    process.on('uncaughtException', onError).on('unhandledRejection', onError)
    const connections = () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))
    const socket = await open(url)
    socket.write(requestText('POST', target, [json, 'Idempotency-Key: k-1'], body))
    await until(() => ran === 1, 'the handler runs')
    socket.destroy()
    await until(async () => (await connections()) === 0, 'the server has seen the client go')
    goOn()
    await until(async () => {
      const again = await post(url, ['Idempotency-Key: k-1'])
      return again.status === 201 && valuesOf(again, 'idempotent-replayed')[0] === 'true'
    }, 'the outcome is replayed')
    process.off('uncaughtException', onError).off('unhandledRejection', onError)
    expect([ran, errors]).toEqual([1, []])
  })

  it('an answer that is too long to be kept is sent at the pace of the client, whole', async () => {
    const [size, count] = [65_536, 400]
    let made = 0
    async function* parts(): AsyncGenerator<Uint8Array> {
      for (; made < count; made += 1) yield Buffer.alloc(size, 0x61 + (made % 26))
    }
    const { url } = await start({ handler: () => reply(200, parts(), { 'content-type': 'text/plain' }) })
    const socket = await open(url)
    socket.pause()
    socket.write(requestText('POST', target, [json, 'Idempotency-Key: k-1'], body))
    // It makes some, fills what lies between us, and stops: whoever runs ahead has made all of them.
    let before = -1
    await until(async () => {
      const still = made === before && made > 4
      before = made
      await wait(100)
      return still
    }, 'it waits for the client')
    expect(made).toBeLessThan(count)
    let received = 0
    const letters = new Set<number>()
    socket.on('data', (part: Buffer) => {
      received += part.length
      letters.add(part[part.length >> 1] as number)
    })
    await new Promise((resolve) => socket.once('close', resolve).resume())
    expect([made, received > size * count, letters.size > 20]).toEqual([count, true, true])
    expect((await post(url, ['Idempotency-Key: k-1'])).status).toBe(410)
  })

  it('an answer that fails halfway is cut, so that nobody takes it for the whole', async () => {
    let ended = false
    async function* parts(): AsyncGenerator<Uint8Array> {
      try {
        for (let n = 0; n < 8; n += 1) yield Buffer.alloc(65_536, 0x61)
        throw new Error('halfway')
      } finally {
        ended = true
      }
    }
    const { url } = await start({ handler: () => reply(200, parts()) })
    const complaints = vi.spyOn(console, 'error').mockReturnValue() // of the server for Hono and fetch
    const answer = await fetch(url + target, { method: 'POST', headers: { 'idempotency-key': 'k-1' }, body })
    expect(answer.status).toBe(200)
    await expect(answer.arrayBuffer()).rejects.toThrow()
    complaints.mockRestore()
    expect(ended).toBe(true)
  })

  it('what makes a long answer is ended when the client goes away', async () => {
    let ended = false
    async function* parts(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield Buffer.alloc(65_536, 0x61)
      } finally {
        ended = true
      }
    }
    const { url } = await start({ handler: () => reply(200, parts()) })
    const socket = await open(url)
    socket.write(requestText('POST', target, [json, 'Idempotency-Key: k-1'], body))
    await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()
    await until(() => ended, 'the answer is ended')
  })
})
