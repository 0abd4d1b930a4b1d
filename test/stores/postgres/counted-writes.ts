// What leaves a connection of pg, write by write: a write is a trip to the server.

import type { Socket } from 'node:net'
import type pg from 'pg'

/** Everything that is written to the socket of a connection from now on, one entry for each write. */
export function writesOf(connected: pg.PoolClient): Buffer[] {
  const client = connected as pg.PoolClient & { connection: { stream: Socket } }
  const writes: Buffer[] = []
  const { stream } = client.connection
  // Corked writes go out by `_writev`, others by `_write`: one call of either is one write to the socket.
  const inner = stream as unknown as Record<'_write' | '_writev', (first: unknown, ...rest: unknown[]) => void>
  const { _write, _writev } = inner
  inner._write = (chunk, ...rest) => {
    writes.push(chunk as Buffer)
    return _write.call(stream, chunk, ...rest)
  }
  inner._writev = (chunks, ...rest) => {
    writes.push(Buffer.concat((chunks as { chunk: Buffer }[]).map(({ chunk }) => chunk)))
    return _writev.call(stream, chunks, ...rest)
  }
  return writes
}
