// A relay in its own process, with the fault points that the environment arms. Its broker is a file, to which it writes
// a line for each message. It ends when nothing is left to publish.

import { appendFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import pg from 'pg'

const [bundle = '', place = '', brokerFile = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { relay } = await load('messaging')
const { memoryBroker } = await load('broker')
const { armFromEnvironment } = await load('testing')
const { deadlineAfter } = await load('kernel')

armFromEnvironment()
const pool = place.startsWith('postgres') ? new pg.Pool({ connectionString: place, max: 3 }) : undefined
const db =
  pool === undefined
    ? (await load('sqlite')).sqlite({ name: 'shop', file: place, connectionWait: '60s' })
    : (await load('postgres')).postgres({ name: 'shop', pool, connectionWait: '60s' })
/** @param {readonly { key: string, data: unknown, id: string }[]} messages */
const publish = async (messages) => {
  appendFileSync(brokerFile, messages.map(({ key, data, id }) => `${key} ${data} ${id}\n`).join(''))
  return messages.map(() => ({ is: 'confirmed' }))
}
const to = { manifest: memoryBroker().manifest, publish }
const out = relay(db, {
  name: 'out',
  to,
  batch: 20,
  poll: '50ms',
  deadline: '500ms',
  storeLimit: '2s',
  lease: '4600ms',
})
const stop = new AbortController()
const running = out.run({ signal: stop.signal })
// Until every message is done, by whichever relay.
for (let isDone = false; !isDone; ) {
  await new Promise((resolve) => setTimeout(resolve, 100))
  const readers = await db.messages.readers({ deadline: deadlineAfter('60s') })
  isDone = readers.some(
    (/** @type {{ name: string, depth: number }} */ { name, depth }) => name === 'out' && depth === 0,
  )
}
stop.abort()
console.log(JSON.stringify(await running))
await db.close()
await pool?.end()
