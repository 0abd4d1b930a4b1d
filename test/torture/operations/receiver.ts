// The world outside: a receiver on a loopback port that logs effects and only adds to its log. It honours keys, or
// compares fences; the first keeps repeats from a second effect, the second what a stale owner sends too late.

import { randomUUID } from 'node:crypto'
import { createServer, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** A charge, as it is sent. */
export interface Charge {
  readonly key: string
  readonly fence: number
  readonly intent: string
  readonly call: string
  readonly honours: 'keys' | 'fences'
}

/** An effect in the log. */
interface Logged {
  readonly intent: string
  readonly call: string
  readonly key: string
  readonly receipt: string
}

/** The receiver, as a worker sees it. */
export interface Receiver {
  charge(charge: Charge, how: { readonly hangsUp: boolean; readonly signal: AbortSignal }): Promise<string>
  /** The receipt of a key; undefined: there is none, and no claim below this fence gets one any more. */
  ask(key: string, fence: number): Promise<string | undefined>
}

/** The receiver, where it is. */
export interface OpenReceiver {
  readonly url: string
  readonly log: readonly Logged[]
  /** The receipt of an intent. */
  of(intent: string): string | undefined
  close(): Promise<void>
}

interface Known {
  fence: number
  receipt?: string
}

/** Starts a receiver. */
export async function openReceiver(): Promise<OpenReceiver> {
  const log: Logged[] = []
  const keys = new Map<string, Known>()
  const receipts = new Map<string, string>()
  const charge = ({ key, fence, intent, call, honours }: Charge): string | undefined => {
    const known: Known = keys.get(key) ?? { fence }
    if (honours === 'keys' && known.receipt !== undefined) return known.receipt
    if (honours === 'fences' && fence < known.fence) return undefined
    const receipt = randomUUID()
    log.push({ intent, call, key, receipt })
    receipts.set(intent, receipt)
    keys.set(key, { fence: Math.max(fence, known.fence), receipt })
    return receipt
  }
  const ask = (key: string, fence: number): string | undefined => {
    const known: Known = keys.get(key) ?? { fence }
    keys.set(key, { ...known, fence: Math.max(fence, known.fence) })
    return known.receipt
  }
  const server = createServer(async (incoming, outgoing) => {
    const sent = JSON.parse(await text(incoming)) as Charge & { readonly hangsUp?: boolean; readonly asks?: boolean }
    const receipt = sent.asks === true ? ask(sent.key, sent.fence) : charge(sent)
    if (sent.hangsUp === true) incoming.socket.destroy()
    else outgoing.writeHead(receipt === undefined ? 404 : 200).end(receipt)
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { readonly port: number }).port))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    log,
    of: (intent) => receipts.get(intent),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A receiver at an address. */
export function receiverAt(url: string): Receiver {
  const send = (sent: object, signal?: AbortSignal) =>
    new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
      const options = { method: 'POST', agent: false as const, ...(signal === undefined ? {} : { signal }) }
      const outgoing = request(url, options, (answer) => {
        text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject)
      })
      outgoing.on('error', reject)
      outgoing.end(JSON.stringify(sent))
    })
  return {
    async charge(charge, { hangsUp, signal }) {
      const { status, body } = await send({ ...charge, hangsUp }, signal)
      if (status === 200) return body
      throw new Error('The receiver has seen a later claim.')
    },
    async ask(key, fence) {
      const { status, body } = await send({ key, fence, asks: true })
      return status === 200 ? body : undefined
    },
  }
}
