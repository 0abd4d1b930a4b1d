// Servers that misbehave on purpose, on real sockets of the loopback. A server follows a script, one step per
// connection, and counts what it received and what it acted upon: effects are counted where they happen.
//
// Everything is bounded: the port is free, connections and bytes have limits, close() leaves nothing behind.

import { createServer, type Server, type Socket } from 'node:net'
import { afterEach } from 'vitest'

/** A request as the server read it. */
export interface WireRequest {
  readonly method: string
  readonly path: string
  /** Names in lower case; a repeated one is joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What the server does with one connection. */
export interface Step {
  /** Called when the connection is accepted, before a byte is read. */
  readonly accept?: (socket: Socket) => void
  /**
   * Called when a request has arrived whole; `act` counts its effect. Called again if another follows on the
   * connection.
   */
  readonly request?: (socket: Socket, request: WireRequest, act: () => void) => void
}

/** A server on the loopback. */
export interface MisbehavingServer {
  readonly port: number
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  /** How many connections were accepted. */
  readonly connections: number
  /** How many bytes arrived in all. */
  readonly bytes: number
  /** The requests that arrived whole. */
  readonly requests: readonly WireRequest[]
  /** The requests that the server acted upon. */
  readonly effects: readonly WireRequest[]
  close(): Promise<void>
}

const maxConnections = 256
const maxRequestBytes = 40 << 20

/** A server that follows the script: the first connection gets the first step, and the last step is repeated. */
export async function misbehavingServer(
  script: Step | readonly Step[],
  options: { readonly port?: number } = {},
): Promise<MisbehavingServer> {
  const steps = Array.isArray(script) ? (script as readonly Step[]) : [script as Step]
  const sockets = new Set<Socket>()
  const seen = { connections: 0, bytes: 0, requests: [] as WireRequest[], effects: [] as WireRequest[] }
  const server = createServer((socket) => {
    const step = steps[Math.min(seen.connections++, steps.length - 1)]
    if (step === undefined || seen.connections > maxConnections) return void socket.destroy()
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    step.accept?.(socket)
    if (step.request !== undefined) readRequests(socket, step.request)
  })

  function readRequests(socket: Socket, handle: NonNullable<Step['request']>): void {
    let pending = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      seen.bytes += chunk.length
      pending = Buffer.concat([pending, chunk])
      if (pending.length > maxRequestBytes) return void socket.destroy()
      const parsed = parseRequest(pending)
      if (parsed === undefined) return
      pending = pending.subarray(parsed.length)
      seen.requests.push(parsed.request)
      handle(socket, parsed.request, () => seen.effects.push(parsed.request))
    })
  }

  const port = await listen(server, options.port ?? 0)
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    get connections() {
      return seen.connections
    },
    get bytes() {
      return seen.bytes
    },
    requests: seen.requests,
    effects: seen.effects,
    close: () => closeAll(server, sockets),
  }
}

/** Call it once in a test file: what it returns starts servers that are closed when the test ends. */
export function serversOfTest(): (script: Step | readonly Step[], port?: number) => Promise<MisbehavingServer> {
  const open: MisbehavingServer[] = []
  afterEach(async () => {
    for (const server of open.splice(0)) await server.close()
  })
  return async (script, port) => {
    const server = await misbehavingServer(script, port === undefined ? {} : { port })
    open.push(server)
    return server
  }
}

/** A port of the loopback on which nobody listens: a connection to it is refused. */
export async function refusedPort(): Promise<number> {
  const server = createServer()
  const port = await listen(server, 0)
  await closeAll(server, [])
  return port
}

/** Listens on a port of the loopback; 0 for a free one. */
export function listen(server: Pick<Server, 'listen' | 'address' | 'once'>, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
}

function closeAll(server: Server, sockets: Iterable<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    for (const socket of sockets) socket.destroy()
  })
}

/** Resets every connection before reading from it. */
export const resetsOnAccept: Step = { accept: (socket) => void socket.resetAndDestroy() }

/** Ends every connection before reading from it. */
export const endsOnAccept: Step = { accept: (socket) => void socket.end().resume() }

/** Reads the request, acts upon it, and resets the connection in place of an answer. */
export const actsThenResets: Step = {
  request: (socket, _request, act) => {
    act()
    socket.resetAndDestroy()
  },
}

/** Reads the request, acts upon it, and ends the connection in place of an answer. */
export const actsThenEnds: Step = {
  request: (socket, _request, act) => {
    act()
    socket.end()
  },
}

/** Reads the request, acts upon it, and never answers. */
export const actsThenIsSilent: Step = { request: (_socket, _request, act) => act() }

/** Takes the connection, and neither reads nor answers. */
export const silent: Step = { accept: (socket) => void socket.pause() }

/** Sends something that is not HTTP. */
export const babbles: Step = { request: (socket) => void socket.end('it is I, Leclerc\r\n\r\n') }

/** How a step answers. */
export interface AnswerOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** How long the answer takes, in ms. Default 0. */
  readonly lateMs?: number
  /** Whether the server acts upon the request. Default: for 2xx and 3xx. */
  readonly acts?: boolean
  /** Sends only that many bytes of the body, then does this to the connection. Default: the whole body. */
  readonly breaksOff?: { readonly afterBytes: number; readonly by: 'reset' | 'end' | 'silence' }
  /** Keeps the connection for the next request. Default false. */
  readonly keepAlive?: boolean
}

/** Answers every request in the same way. */
export function answers(status: number, options: AnswerOptions = {}): Step {
  return answersWith(() => ({ status, ...options }))
}

/** Answers as the function says, which sees the request and the number of earlier effects. */
export function answersWith(answer: (request: WireRequest) => AnswerOptions & { readonly status: number }): Step {
  return {
    request: (socket, request, act) => {
      const { status, headers = {}, body = '', lateMs = 0, acts = status < 400, breaksOff, keepAlive } = answer(request)
      if (acts) act()
      const head = [
        `HTTP/1.1 ${status} Answer`,
        ...(status === 204 || status === 304 ? [] : [`content-length: ${Buffer.byteLength(body)}`]),
        ...(keepAlive ? [] : ['connection: close']),
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ]
      const sent = request.method === 'HEAD' ? '' : body.slice(0, breaksOff?.afterBytes)
      const send = () => {
        socket.write(`${head.join('\r\n')}\r\n\r\n${sent}`)
        if (breaksOff === undefined) return void (keepAlive || socket.end())
        // The pause lets the client see the answer's head first.
        if (breaksOff.by !== 'silence') {
          setTimeout(() => (breaksOff.by === 'reset' ? socket.resetAndDestroy() : socket.end()), 30)
        }
      }
      if (lateMs > 0) setTimeout(send, lateMs).unref()
      else send()
    },
  }
}

function parseRequest(bytes: Buffer): { request: WireRequest; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const [method = '', path = ''] = first.split(' ')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  const start = end + 4
  if (headers['transfer-encoding'] === 'chunked') {
    const last = bytes.indexOf('\r\n0\r\n\r\n', start - 2)
    if (last < 0) return undefined
    return { request: { method, path, headers, body: dechunk(bytes.subarray(start, last + 2)) }, length: last + 7 }
  }
  const length = start + Number(headers['content-length'] ?? 0)
  if (bytes.length < length) return undefined
  return { request: { method, path, headers, body: bytes.toString('utf8', start, length) }, length }
}

function dechunk(bytes: Buffer): string {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) break
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
  return Buffer.concat(parts).toString()
}
