// The codes that take more than a server that hangs up: an HTTP/2 session that ends under its streams, a stream cut in
// the middle, a write to a peer that is gone, and, in a network of its own, names and hosts that cannot be reached.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import http2 from 'node:http2'
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { networkClassifier } from '../../src/retry/index.js'
import { namespaceOptions, provenCodes } from './network-codes.js'
import { listen, refusedPort, serversOfTest } from './sockets.js'

type Facts = { code?: unknown; syscall?: unknown; cause?: Facts }

const met = new Set<unknown>()
const open: (() => void)[] = []
const server = serversOfTest()

afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** How the promise failed. */
async function failure(promise: Promise<unknown>): Promise<Facts> {
  const succeeded = Symbol()
  const result = await promise.then(
    () => succeeded,
    (error: unknown) => error,
  )
  if (result === succeeded) throw new Error('it did not fail')
  return result as Facts
}

/** Notes that the code was met, and judges the error. */
function judge(error: Facts) {
  met.add(error.cause?.code ?? error.code)
  return networkClassifier(error)
}

/** A client session with a server that does this with each stream. */
async function session(act: (stream: http2.ServerHttp2Stream) => void): Promise<http2.ClientHttp2Session> {
  const sessions: http2.ServerHttp2Session[] = []
  const serving = http2.createServer()
  serving.on('session', (each) => void sessions.push(each.on('error', () => {})))
  serving.on('stream', (stream) => act(stream.on('error', () => {})))
  const client = http2.connect(`http://127.0.0.1:${await listen(serving as never)}`)
  client.on('error', () => {})
  open.push(() => {
    client.destroy()
    for (const each of sessions) each.destroy()
    serving.close()
  })
  return client
}

const post = { ':method': 'POST' }

describe('HTTP/2', () => {
  it('a request on a session whose server said GOAWAY is not sent: ERR_HTTP2_GOAWAY_SESSION', async () => {
    let streams = 0
    const client = await session((stream) => {
      streams++
      stream.session?.goaway()
    })
    client
      .request(post)
      .on('error', () => {})
      .end('x')
    await once(client, 'goaway')
    // Older Nodes throw it at once, newer ones give a stream that fails.
    const error = await failure((async () => finished(client.request(post).end('x').resume()))())
    expect(judge(error)).toEqual({
      help: 'transient',
      happened: 'no',
      why: 'ERR_HTTP2_GOAWAY_SESSION',
      proof: 'unsent',
    })
    expect(streams).toBe(1)
  })

  it('a server that ends the session with an error, having read the request: ERR_HTTP2_SESSION_ERROR', async () => {
    const { NGHTTP2_INTERNAL_ERROR } = http2.constants
    const verdict = { help: 'transient', happened: 'maybe', why: 'ERR_HTTP2_SESSION_ERROR' }
    let read = ''
    const client = await session((stream) => {
      stream.on('data', (chunk) => {
        read += chunk
        stream.session?.goaway(NGHTTP2_INTERNAL_ERROR)
      })
    })
    const ofSession = once(client, 'error') as Promise<Facts[]>
    expect(judge(await failure(finished(client.request(post).end('x').resume())))).toEqual(verdict)
    expect(networkClassifier((await ofSession)[0])).toEqual(verdict)
    expect(read).toBe('x')
  })

  it('a session destroyed while a stream waits for it: ERR_HTTP2_STREAM_CANCEL', async () => {
    const verdict = { help: 'transient', happened: 'maybe', why: 'ERR_HTTP2_STREAM_CANCEL' }
    const client = await session(() => {})
    const failed = failure(finished(client.request(post).end('x').resume()))
    client.destroy()
    expect(judge(await failed)).toEqual(verdict)

    // What was destroyed for a reason of the caller's own proves nothing, nor does an error that only looks like the
    // other's.
    for (const cause of [new Error('closed by us'), { syscall: 'read' }, { errors: [{ syscall: 'connect' }, {}] }, 7]) {
      expect(networkClassifier({ code: 'ERR_HTTP2_STREAM_CANCEL', cause })).toEqual(verdict)
    }
  })

  it.each(['127.0.0.1', 'localhost'])('a request on an HTTP/2 session that %s refused was not sent', async (host) => {
    const refused = http2.connect(`http://${host}:${await refusedPort()}`).on('error', () => {})
    const error = await failure(finished(refused.request(post).end('x').resume()))
    expect(error).toMatchObject({ code: 'ERR_HTTP2_STREAM_CANCEL', cause: { code: 'ECONNREFUSED' } })
    expect(networkClassifier(error)).toEqual({
      help: 'transient',
      happened: 'no',
      why: 'ERR_HTTP2_STREAM_CANCEL',
      proof: 'unsent',
    })
  })

  it('a session that the server destroys in the middle of an upload: ERR_STREAM_PREMATURE_CLOSE', async () => {
    let read = ''
    const client = await session((stream) => {
      stream.on('data', (chunk) => {
        read += chunk
        stream.session?.destroy()
      })
    })
    const stream = client.request(post)
    stream.write('half')
    expect(judge(await failure(finished(stream.resume())))).toEqual({
      help: 'transient',
      happened: 'maybe',
      why: 'ERR_STREAM_PREMATURE_CLOSE',
    })
    expect(read).toBe('half')
  })
})

describe('TCP', () => {
  it('a peer that ends the connection in the middle of an upload: ERR_STREAM_PREMATURE_CLOSE', async () => {
    const { port } = await server({ accept: (socket) => void socket.once('data', () => socket.end()) })
    const upload = new PassThrough()
    upload.write('half')
    const error = await failure(pipeline(upload, connect(port, '127.0.0.1').resume()))
    expect(judge(error)).toEqual({ help: 'transient', happened: 'maybe', why: 'ERR_STREAM_PREMATURE_CLOSE' })
  })

  it('a write after the peer has answered an earlier one with a reset: EPIPE', async () => {
    const { port } = await server({ accept: (socket) => void socket.destroy() })
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let written = 0
    const error = await failure(
      new Promise((_resolve, reject) => {
        // The peer has closed both ways; the first write succeeds, and brings the reset.
        const write = () =>
          socket.write('x', (failed) => {
            if (failed) return
            written++
            write()
          })
        socket.on('error', reject).on('end', write).resume()
      }),
    )
    expect(written).toBeGreaterThan(0)
    expect(error).toMatchObject({ syscall: 'write' })
    expect(judge(error)).toEqual({ help: 'transient', happened: 'maybe', why: 'EPIPE' })
  })
})

// What a child says of an error: all that the classifier looks at.
const tell = `
import { once } from 'node:events'
import { execFileSync, spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'
const ip = (words) => execFileSync('ip', words.split(' '))
const facts = (error) => error && {
  name: error.name, message: error.message, code: error.code, syscall: error.syscall, cause: facts(error.cause),
}
const tell = (error) => process.stdout.write(JSON.stringify(facts(error)), () => process.exit())
`

/** The error that a program of Node tells from inside a network of its own. */
async function told(program: string, before = 'true'): Promise<Facts> {
  const shell = ['sh', '-c', `${before} && exec "$0" "$@"`]
  const node = [process.execPath, '--input-type=module', '-e', tell + program]
  const { stdout } = await promisify(execFile)('unshare', [...(namespaceOptions ?? []), ...shell, ...node], {
    timeout: 240_000,
  })
  return JSON.parse(stdout) as Facts
}

const routerFile = fileURLToPath(new URL('host-unknown.pl', import.meta.url))
const fetching = (url: string) => `await fetch('${url}', { method: 'POST', body: 'x' }).catch(tell)`

if (namespaceOptions) {
  describe('in a network namespace', () => {
    it('a name while no resolver can be reached: EAI_AGAIN', async () => {
      const error = await told(fetching('http://somebody.example'))
      expect(error.cause).toMatchObject({ syscall: 'getaddrinfo' })
      expect(judge(error)).toEqual({ help: 'transient', happened: 'no', why: 'EAI_AGAIN', proof: 'unsent' })
    })

    it('connecting where no route leads: ENETUNREACH', async () => {
      const error = await told(fetching('http://192.0.2.1:8080'))
      expect(error.cause).toMatchObject({ syscall: 'connect' })
      expect(judge(error)).toEqual({ help: 'transient', happened: 'no', why: 'ENETUNREACH', proof: 'unsent' })
    })

    it('connecting where the route says unreachable: EHOSTUNREACH', async () => {
      const route = 'ip link set lo up && ip route add unreachable 192.0.2.0/24'
      const error = await told(fetching('http://192.0.2.1:8080'), route)
      expect(error.cause).toMatchObject({ syscall: 'connect' })
      expect(judge(error)).toEqual({ help: 'transient', happened: 'no', why: 'EHOSTUNREACH', proof: 'unsent' })
    })

    it('connecting where a router says that it knows no such host: EHOSTDOWN', async () => {
      const links = [
        'ip link set lo up',
        'ip link add near type veth peer name far',
        'ip address add 192.0.2.2/24 dev near',
        'ip link set near up',
        'ip link set far up',
        'ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev near',
      ]
      const error = await told(
        `
        const router = spawn('perl', [${JSON.stringify(routerFile)}, '8080'], { stdio: ['ignore', 'pipe', 'inherit'] })
        process.on('exit', () => router.kill())
        await once(router.stdout, 'data')
        ${fetching('http://192.0.2.1:8080')}
        `,
        links.join(' && '),
      )
      expect(error.cause).toMatchObject({ syscall: 'connect' })
      expect(judge(error)).toEqual({ help: 'transient', happened: 'no', why: 'EHOSTDOWN', proof: 'unsent' })
    })

    it('a peer that vanishes after the connection was made: ETIMEDOUT', async () => {
      // The kernel gives up after one repetition of the segment instead of fifteen.
      const impatient = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_retries2'
      const error = await told(
        `
        const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
        await once(server, 'listening')
        const socket = connect(server.address().port, '127.0.0.1')
        await once(socket, 'connect')
        ip('route replace unreachable 127.0.0.1 table local')
        socket.write('x')
        socket.on('error', tell)
        `,
        impatient,
      )
      expect(error.syscall).not.toBe('connect')
      expect(judge(error)).toEqual({ help: 'transient', happened: 'maybe', why: 'ETIMEDOUT' })
    })

    it('a connection that the system itself takes away, after the request was read: ECONNABORTED', async () => {
      const error = await told(
        `
        const server = createServer((socket) => socket.on('error', () => {}).once('data', () => {
          execFileSync('ss', ['-K', '-t', 'dport', '=', String(server.address().port)])
        })).listen(0, '127.0.0.1')
        await once(server, 'listening')
        await fetch('http://127.0.0.1:' + server.address().port, { method: 'POST', body: 'x' }).catch(tell)
        `,
        'ip link set lo up',
      )
      expect(error.cause).toMatchObject({ syscall: 'read' })
      expect(judge(error)).toEqual({ help: 'transient', happened: 'maybe', why: 'ECONNABORTED' })
    })
  })
} else {
  it('no network namespace is permitted here: what needs one is constructed', () => {
    for (const code of ['EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH', 'ETIMEDOUT', 'ECONNABORTED', 'EHOSTDOWN']) {
      expect(provenCodes.find((row) => row.code === code)).toMatchObject({ proof: 'constructed' })
    }
  })
}

it('every code laid to this file was met by a test above', () => {
  const laid = provenCodes.filter(({ metIn }) => metIn === 'network-rare').map(({ code }) => code)
  expect(laid.filter((code) => !met.has(code))).toEqual([])
})
