// A service in a process of its own: each request is passed on to the sink by a client that makes three attempts.
// It believes the header about ownership, since all its callers are trusted here. Prints its address, then each event.

import diagnostics from 'node:diagnostics_channel'
import { createServer } from 'node:http'
import { httpClient } from 'reprise/http/client'
import { retryOwnerHeader } from 'reprise/identity'
import { constantDelay, ownedByCaller } from 'reprise/retry'

const sink = process.argv[2]
const client = httpClient({ budget: false, policy: { attempts: 3, backoff: constantDelay(1) } })
diagnostics.subscribe('reprise.retry.layers', (event) => console.log(JSON.stringify(event)))

const server = createServer((request, response) => {
  const passOn = () => client.fetch(/** @type {string} */ (sink))
  const owned = retryOwnerHeader.read(request.headers['reprise-retry-owner']) === 'caller'
  const work = owned ? ownedByCaller(passOn, 3) : passOn()
  work.then(
    ({ status }) => response.writeHead(status).end(),
    () => response.writeHead(502).end(),
  )
})
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`http://127.0.0.1:${port}/`)
})
process.stdin.on('end', () => process.exit(0)).resume()
