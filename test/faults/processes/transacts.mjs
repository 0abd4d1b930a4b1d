// Carries out one intent in its own process, with the fault points that the environment arms, and prints its result.

import { pathToFileURL } from 'node:url'
import pg from 'pg'

const [bundle = '', url = '', key = '', intent = '', dies = ''] = process.argv.slice(2)
const { postgres } = await import(pathToFileURL(`${bundle}/postgres.js`).href)
const { parseKey, scope } = await import(pathToFileURL(`${bundle}/identity.js`).href)
const { armFromEnvironment } = await import(pathToFileURL(`${bundle}/testing.js`).href)

armFromEnvironment()
const pool = new pg.Pool({ connectionString: url })
if (dies === 'dies-when-commit-is-written') {
  pool.on('connect', (client) => {
    const { connection } = /** @type {any} */ (client)
    const query = connection.query.bind(connection)
    connection.query = (/** @type {string} */ text) => {
      query(text)
      if (text.endsWith('COMMIT')) process.kill(process.pid, 'SIGKILL')
    }
  })
}
const db = postgres({
  pool,
  name: 'process',
  deadline: '60s',
  connectionWait: '20s',
  bodyLimit: '30s',
  lockWait: '20s',
})
const body = async (/** @type {any} */ tx) => {
  const result = `by ${process.pid}`
  for (const part of ['debit', 'credit'])
    await tx.query('insert into ledger (intent, part, result) values ($1, $2, $3)', [intent, part, result])
  return result
}
console.log(await db.transact(body, { key: { scope: scope('tests'), key: parseKey(key) }, content: 'none' }))
await pool.end()
