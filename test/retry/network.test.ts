// What Node and undici really say when a connection fails, met on sockets of the loopback, and what the network
// classifier makes of it. Each code that it knows has a row in a table: met on a socket here, among the rare ones, or
// constructed because it cannot be met.

import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { createServer } from 'node:net'
import { finished } from 'node:stream/promises'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { defaultClassifier, networkClassifier } from '../../src/retry/index.js'
import { selfSigned } from './certificate.js'
import { provenCodes } from './network-codes.js'
import {
  actsThenEnds,
  actsThenIsSilent,
  actsThenResets,
  answers,
  babbles,
  endsOnAccept,
  listen,
  type MisbehavingServer,
  misbehavingServer,
  refusedPort,
  resetsOnAccept,
  type Step,
  silent,
} from './sockets.js'

type Facts = { code?: unknown; syscall?: unknown; cause?: unknown; errors?: unknown[] }

const met = new Set<string>()
const open: { close(): unknown }[] = []

afterEach(async () => {
  for (const thing of open.splice(0)) await thing.close()
})

/** Notes which codes were met, and in which phase. */
function note(error: unknown): void {
  for (let facts = error as Facts | undefined, depth = 0; facts && depth < 5; facts = facts.cause as Facts, depth++) {
    if (typeof facts.code === 'string') met.add(`${facts.code}${facts.syscall === 'connect' ? ' connect' : ''}`)
    for (const member of facts.errors ?? []) note(member)
  }
}

async function server(script: Step | readonly Step[]): Promise<MisbehavingServer> {
  const made = await misbehavingServer(script)
  open.push(made)
  return made
}

// The Agent of the undici inside Node, which it does not export: connection options and time-outs need one.
type Agent = NonNullable<RequestInit['dispatcher']> & { destroy(): Promise<void> }
function agent(options: object): Agent {
  void fetch('data:,').catch(() => {})
  // Newer versions keep a wrapper under the first name.
  const named = [2, 1].map((version) => Reflect.get(globalThis, Symbol.for(`undici.globalDispatcher.${version}`)))
  const global = named.find((dispatcher) => dispatcher !== undefined) as { constructor: unknown }
  const made = new (global.constructor as new (options: object) => Agent)(options)
  open.push({ close: () => made.destroy() })
  return made
}

async function fetchError(url: string, init: RequestInit = {}): Promise<unknown> {
  try {
    const response = await fetch(url, { method: 'POST', body: 'x', ...init })
    await response.text()
  } catch (error) {
    note(error)
    return error
  }
  throw new Error('the call did not fail')
}

function nodeError(
  options: https.RequestOptions,
  over: typeof http | typeof https = http,
  body: string | Buffer = 'x',
) {
  return new Promise<unknown>((resolve, reject) => {
    const failed = (error: unknown) => {
      note(error)
      resolve(error)
    }
    const request = over.request({ host: '127.0.0.1', method: 'POST', ...options }, (response) => {
      response.on('error', failed).on('end', () => reject(new Error('the call did not fail')))
      response.resume()
    })
    request.on('error', failed).end(body)
  })
}

const isUnsent = expect.objectContaining({ happened: 'no' })
const isMaybe = expect.objectContaining({ help: 'transient', happened: 'maybe' })

describe('before the first byte: no', () => {
  it('a refused connection', async () => {
    const port = await refusedPort()
    const verdict = { help: 'transient', happened: 'no', why: 'ECONNREFUSED', proof: 'unsent' }
    expect(networkClassifier(await fetchError(`http://127.0.0.1:${port}`))).toEqual(verdict)
    expect(networkClassifier(await nodeError({ port }))).toEqual(verdict)
  })

  it('a name that does not exist', async () => {
    const verdict = { help: 'transient', happened: 'no' }
    expect(networkClassifier(await fetchError('http://nobody.invalid'))).toMatchObject(verdict)
    expect(networkClassifier(await nodeError({ host: 'nobody.invalid' }))).toMatchObject(verdict)
  })

  it('several addresses, all refused (an AggregateError)', async () => {
    const port = await refusedPort()
    const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
    const lookup = (_name: string, _options: object, done: (error: null, found: typeof addresses) => void) =>
      done(null, addresses)
    const error = await nodeError({ host: 'two.test', port, lookup: lookup as never, ...{ autoSelectFamily: true } })
    expect(error).toBeInstanceOf(AggregateError)
    expect(networkClassifier(error)).toEqual({
      help: 'transient',
      happened: 'no',
      why: 'ECONNREFUSED',
      proof: 'unsent',
    })
    const dispatcher = agent({ connect: { lookup, autoSelectFamily: true } })
    const wrapped = await fetchError(`http://two.test:${port}`, { dispatcher })
    expect((wrapped as Error).cause).toBeInstanceOf(AggregateError)
    expect(networkClassifier(wrapped)).toEqual(isUnsent)
  })

  it('a connection that takes too long', async () => {
    const dispatcher = agent({ connect: { timeout: 50, lookup: () => {} } })
    const error = await fetchError('http://slow.test', { dispatcher })
    expect(networkClassifier(error)).toEqual({
      help: 'transient',
      happened: 'no',
      why: 'UND_ERR_CONNECT_TIMEOUT',
      proof: 'unsent',
    })
  })

  it('a socket file that is not there, a local address that is not ours, a broadcast address', async () => {
    const missing = await nodeError({ socketPath: '/nonexistent/reprise.sock' })
    expect(networkClassifier(missing)).toEqual({ help: 'transient', happened: 'no', why: 'connect', proof: 'unsent' })
    expect(networkClassifier(await nodeError({ port: 9, localAddress: '192.0.2.1' }))).toEqual(isUnsent)
    expect(networkClassifier(await nodeError({ host: '255.255.255.255', port: 9 }))).toEqual(isUnsent)
  })

  it('a certificate that is not trusted, not for this name, or expired: permanent, and no byte of the request arrives', async () => {
    const verdict = { help: 'permanent', happened: 'no', why: 'tls-certificate', proof: 'unsent' }
    const good = selfSigned({ name: 'other.test' })
    const expired = selfSigned({ name: 'localhost', validUntilMs: Date.now() - 60_000 })
    let bytes = 0
    const servers = [good, expired].map((pair) => https.createServer(pair))
    for (const each of servers) {
      each.on(
        'secureConnection',
        (socket) => void socket.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', () => {}),
      )
      each.on('tlsClientError', () => {})
      open.push(each)
    }
    const [port = 0, expiredPort = 0] = [await listen(servers[0] as never), await listen(servers[1] as never)]
    const body = 'x'.repeat(20_000)
    for (let round = 0; round < 5; round++) {
      expect(networkClassifier(await fetchError(`https://127.0.0.1:${port}`, { body }))).toEqual(verdict)
      expect(networkClassifier(await nodeError({ port }, https, body))).toEqual(verdict)
      const trusted = { ca: good.cert, servername: 'localhost' }
      expect(networkClassifier(await nodeError({ port, ...trusted }, https, body))).toEqual(verdict)
      const dispatcher = agent({ connect: trusted })
      expect(networkClassifier(await fetchError(`https://localhost:${port}`, { dispatcher, body }))).toEqual(verdict)
      const late = { ca: expired.cert, servername: 'localhost' }
      expect(networkClassifier(await nodeError({ port: expiredPort, ...late }, https, body))).toEqual(verdict)
    }
    expect(bytes).toBe(0)
    expect([...met]).toEqual(
      expect.arrayContaining(['DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED']),
    )
  })

  it('a TLS handshake that the server refuses', async () => {
    const old = https.createServer({ ...selfSigned(), maxVersion: 'TLSv1.2' }).on('tlsClientError', () => {})
    open.push(old)
    const port = await listen(old as never)
    const verdict = { help: 'permanent', happened: 'no', why: 'tls', proof: 'unsent' }
    expect(networkClassifier(await nodeError({ port, minVersion: 'TLSv1.3' }, https))).toEqual(verdict)
    const dispatcher = agent({ connect: { minVersion: 'TLSv1.3' } })
    expect(networkClassifier(await fetchError(`https://127.0.0.1:${port}`, { dispatcher }))).toEqual(verdict)
  })

  it('a server that leaves during the TLS handshake', async () => {
    const leaves = createServer((socket) => socket.once('data', () => socket.end()).on('error', () => {}))
    open.push(leaves)
    const port = await listen(leaves)
    const verdict = { help: 'transient', happened: 'no', why: 'ECONNRESET', proof: 'unsent' }
    expect(networkClassifier(await nodeError({ port }, https))).toEqual(verdict)
    expect(networkClassifier(await fetchError(`https://127.0.0.1:${port}`))).toEqual(verdict)
  })

  it('an HTTP/2 stream that the server refuses, and a session that takes no more', async () => {
    const { NGHTTP2_REFUSED_STREAM } = http2.constants
    const refuses = http2.createServer().on('stream', (stream) => {
      stream.on('error', () => {})
      stream.close(NGHTTP2_REFUSED_STREAM)
    })
    open.push(refuses)
    const session = http2.connect(`http://127.0.0.1:${await listen(refuses as never)}`)
    const stream = session.request({ ':method': 'POST' }).end('x')
    const error = await finished(stream.resume()).catch((reason: unknown) => reason)
    note(error)
    session.destroy()
    expect(networkClassifier(error)).toEqual({
      help: 'transient',
      happened: 'no',
      why: 'ERR_HTTP2_STREAM_ERROR',
      proof: 'unsent',
    })
    const other = { code: 'ERR_HTTP2_STREAM_ERROR', message: 'Stream closed with error code NGHTTP2_INTERNAL_ERROR' }
    expect(networkClassifier(other)).toEqual(isMaybe)
  })
})

describe('after the first byte may have left: maybe', () => {
  it('a reset after the request was read', async () => {
    const { origin, port, effects } = await server(actsThenResets)
    expect(networkClassifier(await fetchError(origin))).toEqual({
      help: 'transient',
      happened: 'maybe',
      why: 'ECONNRESET',
    })
    expect(networkClassifier(await nodeError({ port }))).toEqual(isMaybe)
    expect(effects).toHaveLength(2)
  })

  it('a connection that ends after the request was read: UND_ERR_SOCKET with no byte read is no proof', async () => {
    const { origin, port, effects } = await server(actsThenEnds)
    const error = await fetchError(origin)
    expect((error as { cause: unknown }).cause).toMatchObject({ code: 'UND_ERR_SOCKET', socket: { bytesRead: 0 } })
    expect(networkClassifier(error)).toEqual(isMaybe)
    expect(networkClassifier(await nodeError({ port }))).toEqual(isMaybe)
    expect(effects).toHaveLength(2)
  })

  it('a connection that ends unread: the same error, and nothing happened, but who could know', async () => {
    const { origin, port, requests } = await server(endsOnAccept)
    expect(networkClassifier(await fetchError(origin))).toMatchObject({ happened: 'maybe' })
    expect(networkClassifier(await nodeError({ port }))).toMatchObject({ happened: 'maybe' })
    expect(requests).toHaveLength(0)
  })

  it('a reset on accept is `no` only where the system reports that connecting failed', async () => {
    const { origin, port, requests } = await server(resetsOnAccept)
    for (const error of [await fetchError(origin), await nodeError({ port })]) {
      const { syscall } = ((error as Facts).cause ?? error) as Facts
      expect(networkClassifier(error)?.happened).toBe(syscall === 'connect' ? 'no' : 'maybe')
    }
    expect(requests).toHaveLength(0)
  })

  it('a reset of a connection that was kept and used before', async () => {
    const kept = answers(200, { keepAlive: true })
    let requests = 0
    const resetsSecond: Step = {
      request: (socket, request, act) => {
        if (requests++ === 0) return kept.request?.(socket, request, act)
        act()
        socket.resetAndDestroy()
      },
    }
    const { port, effects, connections } = await server(resetsSecond)
    const keeping = new http.Agent({ keepAlive: true, maxSockets: 1 })
    open.push({ close: () => keeping.destroy() })
    await new Promise<void>((resolve) => {
      http
        .request({ port, host: '127.0.0.1', agent: keeping }, (answer) => void answer.resume().on('end', resolve))
        .end()
    })
    expect(networkClassifier(await nodeError({ port, agent: keeping }))).toEqual(isMaybe)
    expect(effects).toHaveLength(2)
    expect(connections).toBeLessThanOrEqual(1)
  })

  it('a large body cut off by a peer that never reads', async () => {
    const cuts: Step = { accept: (socket) => void setTimeout(() => socket.pause().resetAndDestroy(), 40) }
    const { port } = await server(cuts)
    expect(networkClassifier(await nodeError({ port }, http, Buffer.alloc(30_000_000)))).toEqual(isMaybe)
  })

  it('headers that do not come in time', async () => {
    const { origin } = await server(actsThenIsSilent)
    const dispatcher = agent({ headersTimeout: 50 })
    const error = await fetchError(origin, { dispatcher })
    expect(networkClassifier(error)).toEqual({ help: 'transient', happened: 'maybe', why: 'UND_ERR_HEADERS_TIMEOUT' })
  })

  it('a body that does not come in time, is reset, or ends early', async () => {
    const body = 'y'.repeat(100)
    const silence = await server(answers(200, { body, breaksOff: { afterBytes: 10, by: 'silence' } }))
    const dispatcher = agent({ bodyTimeout: 50 })
    expect(networkClassifier(await fetchError(silence.origin, { dispatcher }))).toEqual({
      help: 'transient',
      happened: 'maybe',
      why: 'UND_ERR_BODY_TIMEOUT',
    })
    for (const by of ['reset', 'end'] as const) {
      const { origin, port } = await server(answers(200, { body, breaksOff: { afterBytes: 10, by } }))
      expect(networkClassifier(await fetchError(origin))).toEqual(isMaybe)
      expect(networkClassifier(await nodeError({ port }))).toEqual(isMaybe)
    }
  })

  it('a client that is destroyed while it waits', async () => {
    const { origin } = await server(actsThenIsSilent)
    const dispatcher = agent({})
    const failed = fetchError(origin, { dispatcher })
    await expect.poll(() => open.length && (open[0] as MisbehavingServer).effects.length).toBe(1)
    await dispatcher.destroy()
    expect(networkClassifier(await failed)).toMatchObject({ happened: 'maybe' })
  })

  it('an answer that is not HTTP, and TLS spoken to a server that does not speak it: permanent', async () => {
    const { origin, port } = await server(babbles)
    const verdict = { help: 'permanent', happened: 'maybe', why: 'http-malformed' }
    expect(networkClassifier(await fetchError(origin))).toEqual(verdict)
    expect(networkClassifier(await nodeError({ port }))).toEqual(verdict)
    const plain = createServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 400 No\r\n\r\n')).on('error', () => {}),
    )
    open.push(plain)
    const plainPort = await listen(plain)
    // The same error comes from a middlebox that breaks into an established connection.
    expect(networkClassifier(await fetchError(`https://127.0.0.1:${plainPort}`))).toMatchObject({
      help: 'permanent',
      happened: 'maybe',
    })
    expect(networkClassifier(await nodeError({ port: plainPort }, https))).toMatchObject({
      help: 'permanent',
      happened: 'maybe',
    })
  })
})

describe('the caller’s own signal', () => {
  it('an abort is permanent, a time-out is transient; both may have happened', async () => {
    const { origin } = await server(silent)
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 20)
    const aborted = await fetchError(origin, { signal: controller.signal })
    expect(defaultClassifier(aborted)).toEqual({ help: 'permanent', happened: 'maybe', why: 'aborted' })
    const timedOut = await fetchError(origin, { signal: AbortSignal.timeout(20) })
    expect(defaultClassifier(timedOut)).toEqual({ help: 'transient', happened: 'maybe', why: 'timeout' })
  })
})

describe('the table of codes', () => {
  afterAll(() => {
    // Runs last: the codes marked as met in this file were met by the tests above.
    const missing = provenCodes.filter(
      ({ code, metIn }) => metIn === 'network' && !met.has(code) && !met.has(`${code} connect`),
    )
    expect(missing.map(({ code }) => code)).toEqual([])
  })

  it.each(provenCodes)('$code is $happened ($proof)', ({ code, happened, proof, metIn, why }) => {
    expect(networkClassifier({ code })).toEqual({
      help: 'transient',
      happened,
      why: code,
      ...(happened === 'no' && { proof: 'unsent' }),
    })
    expect(networkClassifier({ code, syscall: 'connect' })).toEqual({
      help: 'transient',
      happened: 'no',
      why: code,
      proof: 'unsent',
    })
    expect(proof === 'constructed').toBe(why !== undefined)
    expect(proof === 'socket').toBe(metIn !== undefined)
  })
})
