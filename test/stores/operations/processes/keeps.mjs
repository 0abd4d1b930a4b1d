// A process that does the upkeep of its store until its input ends. It says what each part did, and at its end what it
// has done in all.

import { subscribe } from 'node:diagnostics_channel'
import { pathToFileURL } from 'node:url'

const [bundle = '', engine = '', place = '', options = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const say = (/** @type {unknown} */ line) => console.log(JSON.stringify(line))

const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' }

/** @type {any} */
let db
/** @type {() => Promise<void>} */
let close
if (engine === 'PostgreSQL') {
  const { default: pg } = await import('pg')
  const { postgres } = await load('postgres')
  const pool = new pg.Pool({ connectionString: place, max: 4 })
  db = postgres({ name: 'operations', pool, ...patient })
  close = () => pool.end()
} else {
  const { default: Database } = await import('libsql')
  const { sqlite } = await load('sqlite')
  db = sqlite({ name: 'operations', open: () => new Database(place), ...patient })
  close = () => db.close()
}

subscribe('reprise.operation.upkeep', (message) => {
  const { part, counts, error } = /** @type {any} */ (message)
  say({ part, counts, error: error?.code })
})
const ending = new AbortController()
const upkeep = db.upkeep({ signal: ending.signal, ...JSON.parse(options) })
process.stdin.on('end', async () => {
  ending.abort()
  say({ report: await upkeep })
  await close()
})
process.stdin.resume()
