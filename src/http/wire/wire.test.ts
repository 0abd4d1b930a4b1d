import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { Answer } from '../core/index.js'
import { fetchResponse, streamOf } from './fetch.js'
import { fieldsOf, setFields } from './fields.js'
import { nodeFacts, sendToNode } from './node.js'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function parts(ended: string[]): AsyncIterableIterator<Uint8Array> {
  let n = 0
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: async () => (n < 3 ? { done: false, value: bytes(String(n++)) } : { done: true, value: undefined }),
    return: async () => {
      ended.push(`after ${n}`)
      return { done: true, value: undefined }
    },
  }
}

describe('fields', () => {
  it('are taken one by one, whatever their names', () => {
    const fields = fieldsOf(['X-A', '1', '__proto__', 'odd', 'x-a', '2'])
    expect(fields['x-a']).toEqual(['1', '2'])
    expect(Object.keys(fields)).toEqual(['x-a', '__proto__'])
    expect(fields['constructor']).toBeUndefined()
  })

  const targetOf = (held: Map<string, string | string[]>) => ({
    getHeader: (name: string) => held.get(name),
    setHeader: (name: string, value: string | string[]) => void held.set(name, value),
    removeHeader: (name: string) => void held.delete(name),
  })

  it('replace those before, but for lists and cookies', () => {
    const held = new Map<string, string | string[]>([
      ['vary', 'Accept, origin'],
      ['set-cookie', 'a=1'],
      ['cache-control', 'public'],
      ['content-length', '99'],
    ])
    const headers = [
      ['vary', 'Origin, Cookie'],
      ['set-cookie', 'b=2'],
      ['cache-control', 'no-store'],
      ['link', '<a>'],
      ['link', '<b>'],
    ] as const
    const target = targetOf(held)
    setFields(target, { status: 200, headers, body: bytes('four') })
    expect(Object.fromEntries(held)).toEqual({
      vary: 'Accept, origin, Cookie',
      'set-cookie': ['a=1', 'b=2'],
      'cache-control': 'no-store',
      link: ['<a>', '<b>'],
      'content-length': '4',
    })
    setFields(target, { status: 204, headers: [], body: new Uint8Array(0) })
    expect(held.has('content-length')).toBe(false)
  })

  it('say a length where there is one to say', () => {
    const lengthOf = (status: number, body: Answer['body']) => {
      const held = new Map<string, string | string[]>([['content-length', '99']])
      setFields(targetOf(held), { status, headers: [], body })
      return held.get('content-length')
    }
    const body = bytes('four')
    expect([200, 204, 205, 304].map((status) => lengthOf(status, body))).toEqual(['4', undefined, '0', undefined])
    expect([lengthOf(200, 'für'), lengthOf(200, null), lengthOf(204, null)]).toEqual(['4', '0', undefined])
    expect(lengthOf(200, parts([]))).toBeUndefined()
  })
})

describe('a Response', () => {
  it('carries what the answer carries, at the pace of its reader', async () => {
    const ended: string[] = []
    const response = await fetchResponse({ status: 200, headers: [['x-a', '1']], body: parts(ended) }, 'POST')
    expect([await response.text(), response.headers.get('x-a'), ended]).toEqual(['012', '1', []])
  })

  it.each([
    ['HEAD', 200],
    ['POST', 204],
  ])('to %s with %i carries nothing, and ends what would have made its body', async (method, status) => {
    const ended: string[] = []
    const response = await fetchResponse({ status, headers: [], body: parts(ended) }, method)
    expect([response.body, ended]).toEqual([null, ['after 0']])
  })

  it('that is cancelled ends what makes its body', async () => {
    const ended: string[] = []
    const reader = streamOf(parts(ended)).getReader()
    await reader.read()
    await reader.cancel()
    expect(ended).toEqual(['after 1'])
    const failing = { ...parts([]), return: () => Promise.reject(new Error('any')) }
    await streamOf({ [Symbol.asyncIterator]: () => failing }).cancel()
  })
})

describe('facts of a request of Node', () => {
  const request = Object.assign(Readable.from([bytes('{}')]), {
    method: 'POST',
    headers: {},
    rawHeaders: ['Idempotency-Key', 'a', 'idempotency-key', 'b'],
  }) as unknown as IncomingMessage

  it('are taken from what arrived', async () => {
    const params = { id: '7', rest: ['a', 'b'], none: undefined }
    const facts = nodeFacts(request, { target: '/api/x?y', params })
    expect([facts.method, facts.target, facts.params]).toEqual(['POST', '/api/x?y', { id: '7', rest: 'a/b' }])
    expect(facts.fields['idempotency-key']).toEqual(['a', 'b'])
    expect(Buffer.from(await facts.readBody(10)).toString()).toBe('{}')
    await expect(nodeFacts(request, { target: '/', advice: 'Do this.' }).readBody(10)).rejects.toThrow(/ Do this\.$/)
    await expect(nodeFacts(request, { target: '/' }).readBody(10)).rejects.toThrow('rawBody')
    expect(Buffer.from(await nodeFacts(request, { target: '/', kept: 'text' }).readBody(10)).toString()).toBe('text')
    await expect(nodeFacts(request, { target: '/', kept: 'text' }).readBody(3)).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
    })
  })

  it('say nothing of a compression that a parser has undone, and keep what they say of bytes as they arrived', () => {
    const rawHeaders = ['Content-Encoding', 'gzip', 'Content-Length', '4']
    const encodingOf = (kept?: string, rawBody?: Uint8Array) =>
      nodeFacts(Object.assign(Readable.from([]), { rawHeaders, rawBody }) as never, { target: '/', kept }).fields[
        'content-encoding'
      ]
    expect([encodingOf(), encodingOf('four'), encodingOf(undefined, bytes('four'))]).toEqual(Array(3).fill(['gzip']))
    expect([encodingOf('inflated'), encodingOf(undefined, bytes('inflated'))]).toEqual([undefined, undefined])
  })
})

describe('a response of Node', () => {
  it('that is gone is sent nothing, and what would have made its body is ended', async () => {
    const ended: string[] = []
    const server = createServer(async (_request, response) => {
      response.destroy()
      await sendToNode(response, { status: 200, headers: [], body: parts(ended) })
      ended.push('sent')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    await expect(fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).rejects.toThrow()
    await expect.poll(() => ended).toEqual(['after 0', 'sent'])
    await new Promise((resolve) => server.close(resolve))
  })
})
