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
    const query = /** @type {any} */ (client.query.bind(client))
    const watched = (/** @type {any} */ config, /** @type {any[]} */ ...rest) => {
      const answer = query(config, ...rest)
      if ((config.text ?? config).endsWith('COMMIT')) process.kill(process.pid, 'SIGKILL')
      return answer
    }
    Object.assign(client, { query: watched })
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
