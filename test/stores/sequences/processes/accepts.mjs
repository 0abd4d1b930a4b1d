// Accepts the numbers that it is given, each with an effect, and prints what became of each and when it was at it.

import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [bundle = '', engine = '', place = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { armFromEnvironment } = await load('testing')

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
  const pool = new pg.Pool({ connectionString: place, max: 2 })
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

const orders = db.sequence('orders')
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const at = JSON.parse(line)
  const began = process.hrtime.bigint()
  // From the first number on, so that nothing before it reaches a fault point.
  armFromEnvironment()
  const answer = await db
    .transact((/** @type {any} */ tx) =>
      orders.accept(tx, at, async () => {
        await tx.query(insert, [`${at.producer}/${at.epoch}/${at.number}`, String(process.pid)])
        // Long enough for the other process to come.
        await new Promise((resolve) => setImmediate(resolve))
        return { by: process.pid }
      }),
    )
    .catch((/** @type {any} */ error) => ({ result: error.code }))
  // One clock for all processes of the machine.
  console.log(JSON.stringify({ ...answer, began: String(began), ended: String(process.hrtime.bigint()) }))
}
await close()
