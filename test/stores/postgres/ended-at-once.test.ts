// A server that ends a connection in the very moment in which it is ready: what pg tells of both comes out of one read,
// before anybody who waits for the connection can listen to it.

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import pg from 'pg'
import { expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'

function message(type: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : part)))
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const ready = [message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]
const ended = message(
  'E',
  'SFATAL',
  'VFATAL',
  'C57P01',
  'Mterminating connection due to unexpected postmaster exit',
  '',
)

it('fails the transaction, and not the process', async () => {
  let connections = 0
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      connections += 1
      socket.end(Buffer.concat([...ready, ended]))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'any', database: 'any', max: 1 })
  const db = postgres({ pool, name: 'shop', deadline: '2s' })
  const thrown: unknown[] = []
  const hear = (error: unknown): void => void thrown.push(error)
  process.on('uncaughtException', hear)
  try {
    await expect(db.transact((tx) => tx.query('select 1'))).rejects.toThrow()
    expect(connections).toBeGreaterThan(0)
    expect(thrown).toEqual([])
  } finally {
    process.off('uncaughtException', hear)
    await db.close()
    await pool.end()
    await new Promise((resolve) => server.close(resolve))
  }
})
