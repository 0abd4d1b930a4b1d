// A service of the server bench, in its own process: one framework, one store, one way to answer POST /payments.

import { frameworks } from './http-frameworks.mjs'
import { stores } from './http-stores.mjs'

const { framework, store, way, ...place } = JSON.parse(/** @type {string} */ (process.argv[2]))
const kept = await stores[store](place, way)
const { server, stop } = await frameworks[framework](way, kept)

process.on('message', async (question) => {
  if (question === 'effects') process.send?.(await kept.effects())
  if (question === 'OFF' || question === 'FULL') {
    for (const handle of kept.handles) handle.exec(`PRAGMA synchronous = ${question}`)
    process.send?.(question)
  }
  if (question === 'stop') {
    await stop()
    await kept.close()
    process.exit(0)
  }
})
// A bench that was stopped leaves nothing behind.
process.on('disconnect', () => process.exit(1))
process.send?.({ port: server.address().port, backends: kept.backends })
