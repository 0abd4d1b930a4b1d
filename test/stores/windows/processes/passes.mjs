// Passes one id through a window in its own process, with the fault points that the environment arms. The sink writes a
// line to a file. Told to wait, it prints `in the sink` there, and goes on when it is told to.

import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import pg from 'pg'

const [bundle = '', place = '', sinkFile = '', id = '', waits = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { dedupeWindow } = await load('messaging')
const { armFromEnvironment } = await load('testing')

armFromEnvironment()
const pool = place.startsWith('postgres') ? new pg.Pool({ connectionString: place }) : undefined
const store = await opened()
const window = dedupeWindow({
  within: '1h',
  most: 100,
  storeLimit: '60s',
  ...(store === undefined ? {} : { name: 'orders', store }),
})
const sink = async () => {
  if (waits === 'waits') {
    console.log('in the sink')
    await once(process.stdin, 'data')
  }
  appendFileSync(sinkFile, `${id}\n`)
}
const passed = await window.pass(id, sink, { deadline: '240s' })
console.log(passed.accepted ? `accepted, remembered by ${passed.remembered}` : 'duplicate')
await store?.close()
await pool?.end()
process.stdin.destroy()

async function opened() {
  if (place === 'none') return undefined
  if (pool !== undefined) return (await load('postgres')).postgres({ name: 'shop', pool, connectionWait: '60s' })
  return (await load('sqlite')).sqlite({ name: 'shop', file: place, connectionWait: '60s' })
}
