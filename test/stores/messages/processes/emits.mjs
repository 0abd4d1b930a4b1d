// Carries out one intent in its own process, with the fault points that the environment arms: an effect and three
// messages. Prints the run that has the effect. With LOST the answer to COMMIT of SQLite is lost; with TOGETHER others
// commit at the same time.

import { randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import Database from 'libsql'
import pg from 'pg'

const [bundle = '', place = '', key = '', intent = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { armFromEnvironment } = await load('testing')
const { parseKey, scope } = await load('identity')

const patient = { name: 'shop', deadline: '60s', connectionWait: '20s', bodyLimit: '30s', lockWait: '20s' }
const pool = place.startsWith('postgres') ? new pg.Pool({ connectionString: place, max: 4 }) : undefined

let isLost = process.env['LOST'] !== undefined
function openFile() {
  const handle = new Database(place)
  const exec = handle.exec.bind(handle)
  const losing = (/** @type {string} */ text) => {
    exec(text)
    if (text !== 'COMMIT' || !isLost) return
    isLost = false
    throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
  }
  return Object.assign(handle, { exec: losing })
}

const db =
  pool === undefined
    ? (await load('sqlite')).sqlite({ open: openFile, ...patient })
    : (await load('postgres')).postgres({ pool, ...patient })
const insert = `insert into ledger (intent, run) values (${pool === undefined ? '?, ?' : '$1, $2'})`
armFromEnvironment()
const body = async (/** @type {any} */ tx) => {
  const run = randomUUID()
  await tx.emit({ type: 'begun', subject: intent, data: { run } })
  await tx.query(insert, [intent, run])
  await tx.emit([
    { type: 'done', subject: intent, data: { run } },
    { type: 'noted', key: `${intent} beside`, data: { run } },
  ])
  return run
}
const others =
  process.env['TOGETHER'] === undefined
    ? []
    : [1, 2, 3].map((n) => db.transact((/** @type {any} */ tx) => tx.query(insert, [`other ${n}`, intent])))
const [run] = await Promise.all([
  db.transact(body, { key: { scope: scope('tests'), key: parseKey(key) }, content: 'none' }),
  ...others,
])
console.log(run)
await db.close()
await pool?.end()
