// Requests by hand, to see what really is on the wire.

import { connect, type Socket } from 'node:net'

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number
  /** The lines of the head, without the first one. */
  readonly head: readonly string[]
  /** What came after the head, as Latin-1. */
  readonly rest: string
}

/** Opens a connection. */
export function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** The text of a request; it asks for the connection to be closed. */
export function requestText(method: string, target: string, fields: readonly string[], body = ''): string {
  const length = method === 'POST' ? [`Content-Length: ${Buffer.byteLength(body)}`] : []
  return [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...length, ...fields, '', body].join(
    '\r\n',
  )
}

/** Sends a request, and reads until the server closes. */
export async function exchange(url: string, text: string): Promise<RawAnswer> {
  const socket = await open(url)
  const parts: Buffer[] = []
  const closed = new Promise<void>((resolve, reject) => socket.once('close', () => resolve()).once('error', reject))
  socket.on('data', (part: Buffer) => parts.push(part))
  socket.write(text)
  await closed
  const all = Buffer.concat(parts).toString('latin1')
  const end = all.indexOf('\r\n\r\n')
  const [first = '', ...head] = all.slice(0, end).split('\r\n')
  return { status: Number(first.split(' ')[1]), head, rest: all.slice(end + 4) }
}

/** The values of a field. */
export function valuesOf({ head }: RawAnswer, name: string): string[] {
  return head
    .filter((line) => line.toLowerCase().startsWith(`${name}:`))
    .map((line) => line.slice(name.length + 1).trim())
}
