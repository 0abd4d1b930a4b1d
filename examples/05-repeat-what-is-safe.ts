// A payment service charges and then loses its answer. Without a key the outcome is honestly unknown; with a key that
// the service honours, the request is repeated and the effect is not.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isRepriseError } from 'reprise'
import { httpClient } from 'reprise/http/client'
import { historyOf } from 'reprise/retry'

const charged = new Set<string>()
let charges = 0
let requests = 0
const service = createServer((request, response) => {
  requests += 1
  const key = String(request.headers['idempotency-key'])
  if (!charged.has(key)) charges += 1
  charged.add(key)
  if (requests % 2 === 1)
    request.socket.destroy() // it happened, and nobody hears of it
  else response.end('charged')
})
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`

try {
  await httpClient().fetch(`${origin}/payments`, { method: 'POST', body: '{"order":4711}' })
} catch (error) {
  if (isRepriseError(error, 'UNKNOWN_OUTCOME')) console.log(`no guard:  ${error.code}, ${historyOf(error)?.stop}`)
}
console.log(`           ${requests} request, ${charges} charge, and nobody knows but the service`)

requests = 0
charges = 0
const client = httpClient({ honoursKeys: [origin] })
const response = await client.fetch(`${origin}/payments`, { method: 'POST', body: '{"order":4712}' })
console.log(`with key:  ${await response.text()}`)
console.log(`           ${requests} requests, ${charges} charge`)
service.close()
service.closeAllConnections()
