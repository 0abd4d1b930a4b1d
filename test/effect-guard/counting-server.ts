// A server that counts what arrives: by path for HTTP, by connection for a plain socket.

import { createServer, type Server } from 'node:http'
import net, { type AddressInfo } from 'node:net'

/** A server of HTTP, and the paths that arrived in order. */
export interface CountingServer {
  readonly origin: string
  readonly arrived: string[]
  close(): Promise<void>
}

/** Starts a server that answers everything, and `/moved` with a redirect. */
export async function countingServer(): Promise<CountingServer> {
  const arrived: string[] = []
  const server = createServer((request, response) => {
    arrived.push(request.url ?? '')
    if (request.url === '/moved') response.writeHead(302, { location: '/after' }).end()
    else request.resume().on('end', () => response.end('ok'))
  })
  const port = await listening(server)
  return {
    origin: `http://127.0.0.1:${port}`,
    arrived,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A listener of TCP that answers each connection with a line and ends it. */
export interface CountingListener {
  readonly port: number
  readonly connections: () => number
  close(): Promise<void>
}

/** Starts a listener. */
export async function countingListener(): Promise<CountingListener> {
  let connections = 0
  const server = net.createServer((socket) => {
    connections += 1
    socket
      .on('error', () => {})
      .resume()
      .end('hello\n')
  })
  const port = await listening(server)
  return { port, connections: () => connections, close: () => new Promise((resolve) => server.close(() => resolve())) }
}

async function listening(server: Server | net.Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
