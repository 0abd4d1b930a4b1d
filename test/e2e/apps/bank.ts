// A bank that the payouts of a script go to. It honours keys, and has its bad moments on request.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What becomes of the answer to the first transfer. */
export type FirstAnswer = (answer: { send(): void; lose(): void }) => void

/** A running bank. */
export interface Bank {
  readonly url: string
  /** How many transfers were made. */
  transfers(): number
  /** How many requests came. */
  requests(): number
  close(): Promise<void>
}

/** Opens a bank. A request under a key that it knows gets the receipt of the first one; one without is a transfer. */
export async function openBank(firstAnswer: FirstAnswer): Promise<Bank> {
  const receipts = new Map<string, string>()
  let [transfers, requests] = [0, 0]
  const receiptFor = (key: string | undefined): string => {
    const known = key === undefined ? undefined : receipts.get(key)
    if (known !== undefined) return known
    transfers += 1
    const receipt = `receipt ${transfers}`
    if (key !== undefined) receipts.set(key, receipt)
    return receipt
  }
  const server = createServer((request, response: ServerResponse) => {
    requests += 1
    const isFirst = requests === 1
    request.resume().on('end', () => {
      const field = request.headers['idempotency-key']
      const receipt = receiptFor(field === undefined ? undefined : String(field))
      const send = (): void => void response.end(JSON.stringify({ receipt }))
      if (isFirst) firstAnswer({ send, lose: () => void request.socket.destroy() })
      else send()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    transfers: () => transfers,
    requests: () => requests,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
