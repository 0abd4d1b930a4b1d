// The proxy on a real server: test/faults/postgres-proxy.test.ts. Here is what needs none.

import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type PostgresProxy, postgresProxy } from './proxy.js'

describe('a proxy', () => {
  let sink: Server
  let proxy: PostgresProxy
  const arrived: Socket[] = []

  beforeEach(async () => {
    sink = createServer((socket) => arrived.push(socket.on('error', () => undefined)))
    await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
    const address = sink.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    proxy = await postgresProxy({ upstream: { host: '127.0.0.1', port } })
  })
  afterEach(async () => {
    await proxy.close()
    for (const socket of arrived) socket.destroy()
    await new Promise((resolve) => sink.close(resolve))
  })
  const client = (): Promise<Socket> =>
    new Promise((resolve) => {
      const socket = connect(proxy.port, proxy.host, () => resolve(socket.on('error', () => undefined)))
    })
  const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.on('close', () => resolve()))

  it('ends a connection that does not speak the protocol', async () => {
    const socket = await client()
    const end = closed(socket)
    socket.resume().write('GET / HTTP/1.1\r\n\r\n') // its first four bytes are a length beyond all limits
    await end
    expect(proxy.fired).toEqual([])
  })

  it('closes with clients that have sent nothing, and then refuses others', async () => {
    const waiting = await Promise.all([client(), client()])
    const ends = waiting.map(closed)
    for (const socket of waiting) socket.resume()
    await proxy.close()
    await Promise.all(ends)
    expect(proxy.connections).toEqual([])
    const refused = await new Promise((resolve) => connect(proxy.port, proxy.host).on('error', resolve))
    expect(refused).toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('refuses faults that make no sense', () => {
    const fault = { statement: () => true, at: 'after-forward', action: 'fin' } as const
    for (const wrong of [{ nth: 0 }, { times: 1.5 }, { statement: 0 }, { delayMs: -1 }, { delayMs: Number.NaN }]) {
      expect(() => proxy.arm({ ...fault, ...wrong })).toThrow(/from 1|at least 0/)
    }
    expect(() => proxy.arm({ ...fault, action: 'late' })).toThrow('late')
  })

  it('tells who holds its port', async () => {
    const again = postgresProxy({ upstream: { host: '127.0.0.1', port: 1 }, port: proxy.port })
    await expect(again).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})
