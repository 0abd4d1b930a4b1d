import http, { ClientRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import { originOfCall, originOfClientRequest, originOfFetch, originOfUndici } from './origin.js'

describe('the origin of a fetch', () => {
  it.each([
    ['https://example.com/path?query#hash', 'https://example.com'],
    ['HTTP://user:secret@EXAMPLE.com:80/', 'http://example.com'],
    [new URL('https://example.com:8443/x'), 'https://example.com:8443'],
    [new Request('http://[::1]:3000/x'), 'http://[::1]:3000'],
    ['data:text/plain,hello', 'elsewhere'],
    ['blob:https://example.com/1', 'elsewhere'],
    ['/relative', undefined],
    [undefined, undefined],
    [Symbol('no text'), undefined],
    [Object.create(null), undefined],
  ])('%# is %s', (input, origin) => {
    expect(originOfFetch(input)).toBe(origin)
  })
})

describe('the origin of a call of request or get', () => {
  it.each<[readonly unknown[], 'http:' | 'https:', string | undefined]>([
    [['https://example.com/path'], 'https:', 'https://example.com'],
    [[new URL('http://example.com:8080')], 'http:', 'http://example.com:8080'],
    [['http://example.com', { port: 81 }, () => {}], 'http:', 'http://example.com:81'],
    [['http://example.com', () => {}], 'http:', 'http://example.com'],
    [['http://example.com', null], 'http:', 'http://example.com'],
    [[{ host: 'example.com', port: '8443' }], 'https:', 'https://example.com:8443'],
    [[{ hostname: 'first.example', host: 'second.example' }], 'http:', 'http://first.example'],
    [[{ host: '::1', port: 1 }], 'http:', 'http://[::1]:1'],
    [[{ port: 3000 }], 'http:', 'http://localhost:3000'],
    [[{ socketPath: '/run/agent.sock', host: 'ignored' }], 'http:', 'unix:/run/agent.sock'],
    [[{ protocol: 'http:', host: 'a.example' }], 'https:', 'http://a.example'],
    [['not an address'], 'http:', undefined],
    [[], 'http:', undefined],
  ])('%# is known', (args, protocol, origin) => {
    expect(originOfCall(args, protocol)).toBe(origin)
  })
})

describe('the origin of a request that a channel tells of', () => {
  const requestOf = (options: http.RequestOptions): ClientRequest => {
    const request = new ClientRequest({ ...options, agent: new http.Agent() })
    request.on('error', () => {}).destroy()
    return request
  }

  it.each<[http.RequestOptions, string | undefined]>([
    [{ host: '127.0.0.1', port: 9 }, 'http://127.0.0.1:9'],
    [{ host: '127.0.0.1' }, 'http://127.0.0.1'],
    [{ host: '::1', port: 9 }, 'http://[::1]:9'],
    [{ socketPath: '/nowhere/agent.sock' }, 'unix:/nowhere/agent.sock'],
    // The port cannot be told from a header that names another host.
    [{ host: '127.0.0.1', port: 9, headers: { host: 'example.com' } }, undefined],
    [{ host: '127.0.0.1', port: 9, setHost: false }, undefined],
  ])('of http: %j is %s', (options, origin) => {
    expect(originOfClientRequest(requestOf(options))).toBe(origin)
  })

  it.each([
    [{ origin: 'https://example.com:443' }, 'https://example.com'],
    [{ origin: new URL('http://example.com:3000/') }, 'http://example.com:3000'],
    [{}, undefined],
    [undefined, undefined],
  ])('of undici: %# is %s', (request, origin) => {
    expect(originOfUndici(request)).toBe(origin)
  })

  it('is not known of something else', () => {
    expect(originOfClientRequest(undefined)).toBeUndefined()
    expect(originOfClientRequest({})).toBeUndefined()
  })
})
