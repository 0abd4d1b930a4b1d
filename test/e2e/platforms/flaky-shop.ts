// A service that honours keys, and loses the answer to its first request.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A running service. */
export interface FlakyShop {
  readonly url: string
  /** The keys of the requests that came. */
  readonly keys: readonly string[]
  close(): Promise<void>
}

/** Opens a service. */
export async function openFlakyShop(): Promise<FlakyShop> {
  const keys: string[] = []
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(204).end()
    const key = String(request.headers['idempotency-key'])
    keys.push(key)
    request.resume().on('end', () => {
      if (keys.length === 1) return void request.socket.destroy()
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ key }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
