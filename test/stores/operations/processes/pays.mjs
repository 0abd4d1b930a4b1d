// Pays an order for each key that it is given, by several calls at once, and prints what each call was told and when it
// was made and answered.

import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [bundle = '', engine = '', place = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { scope } = await load('identity')

const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' }

/** @type {any} */
let db
/** @type {() => Promise<void>} */
let close
/** @type {string} */
let insert
if (engine === 'PostgreSQL') {
  const { default: pg } = await import('pg')
  const { postgres } = await load('postgres')
  const pool = new pg.Pool({ connectionString: place, max: 4 })
  db = postgres({ name: 'operations', pool, ...patient })
  close = () => pool.end()
  insert = 'insert into ledger (intent, number) values ($1, $2)'
} else {
  const { default: Database } = await import('libsql')
  const { sqlite } = await load('sqlite')
  db = sqlite({ name: 'operations', open: () => new Database(place), ...patient })
  close = () => db.close()
  insert = 'insert into ledger (intent, number) values (?, ?)'
}

const shop = scope('operations')
const pay = db.operation('pay', {
  scope: () => shop,
  key: (/** @type {{ key: string }} */ { key }) => key,
  window: '24h',
  wait: '100s',
  attempts: 50,
  run: async (/** @type {any} */ tx, /** @type {{ key: string }} */ { key }) => {
    await tx.query(insert, [key, String(process.pid)])
    // Long enough for the other process to come.
    await new Promise((resolve) => setImmediate(resolve))
    return { by: process.pid }
  },
})

console.log('ready')
for await (const key of createInterface({ input: process.stdin })) {
  const began = process.hrtime.bigint()
  const calls = Array.from({ length: 3 }, () => pay.outcome({ key, amount: 5 }, { deadline: '120s' }))
  const told = await Promise.all(calls)
  // One clock for all processes of the machine.
  const times = { began: String(began), ended: String(process.hrtime.bigint()) }
  console.log(JSON.stringify({ key, ...times, told: told.map(({ value, replayed }) => ({ by: value.by, replayed })) }))
}
await close()
