// The world outside: a receiver on a loopback port that counts calls and effects, and can be asked what happened.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { LedgerEffect } from '../../../src/testing/index.js'

/** What the receiver knows of an intent. */
interface Received {
  /** How many calls came. */
  calls: number
  /** How often it was asked what happened. */
  asks: number
  /** The keys that came with calls, each once. */
  readonly keys: Set<string>
  /** The results of effects, in order. */
  readonly effects: string[]
}

/** A receiver. */
export interface Sink {
  readonly url: string
  /** What came about an intent. */
  of(intent: string): Received
  /** All effects, as the checker reads them. */
  effects(): LedgerEffect[]
  close(): Promise<void>
}

/** Whether calls with a key that is known are answered with the first one's result, or have an effect each. */
export type Receiver = 'honours-keys' | 'ignores-keys'

/**
 * Starts a receiver: `POST /<receiver>/<intent>/<key>` has an effect, with `?hang-up` its answer is lost; `GET` tells
 * the state of the key.
 */
export async function openSink(): Promise<Sink> {
  const intents = new Map<string, Received>()
  const results = new Map<string, string>()
  const of = (intent: string): Received => {
    const known = intents.get(intent) ?? { calls: 0, asks: 0, keys: new Set(), effects: [] }
    intents.set(intent, known)
    return known
  }
  const charge = (receiver: string, intent: string, key: string): string => {
    const received = of(intent)
    received.calls += 1
    received.keys.add(key)
    const known = results.get(key)
    if (known !== undefined && receiver === 'honours-keys') return known
    const result = randomUUID()
    received.effects.push(result)
    results.set(key, result)
    return result
  }
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://sink')
    const [, receiver = '', intent = '', key = ''] = pathname.split('/').map(decodeURIComponent)
    if (request.method === 'GET') {
      of(intent).asks += 1
      const result = results.get(key)
      response.writeHead(result === undefined ? 404 : 200).end(result)
      return
    }
    const result = charge(receiver, intent, key)
    if (searchParams.has('hang-up')) request.socket.destroy()
    else response.end(result)
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { readonly port: number }).port))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    of,
    effects: () => [...intents].flatMap(([intent, { effects }]) => effects.map((result) => ({ intent, result }))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
