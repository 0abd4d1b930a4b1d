// Keyed transactions that share a COMMIT, in a process that dies by kill -9 in the end. Failures of the log come from
// outside (strace); the last argument names a fault point to be killed at, and how often it is passed before.
//
// Prints one line for each: its number and what it was told, and how many bodies ran and shared.

import { subscribe } from 'node:diagnostics_channel'
import { pathToFileURL } from 'node:url'
import Database from 'libsql'

const [bundle = '', file = '', count = '0', point = '', passes = '0'] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { sqlite } = await load('index')
const { armFaultPoints, systemClock } = await load('kernel')
const { parseKey, scope } = await load('identity')

// The milliseconds that a shared COMMIT stays open are never over.
const clock = { ...systemClock, monotonicMs: () => 1_000 }
const db = sqlite({ name: 'items', open: () => new Database(file), clock })
if (count === '0') {
  await db.migrate()
  await db.transact((/** @type {any} */ tx) => tx.query('CREATE TABLE item (note TEXT)'))
  process.kill(process.pid, 'SIGKILL')
}
// Keeps the log from being emptied when the others are closed, as another process would.
const foreign = new Database(file)
foreign.prepare('SELECT count(*) FROM item').all([])

/** @type {number[]} */
const shared = []
subscribe('reprise.transaction.shared', (event) => shared.push(/** @type {any} */ (event).members))
if (point !== '') {
  let left = Number(passes)
  armFaultPoints((/** @type {string} */ reached) => {
    if (reached !== point) return
    if (left === 0) process.kill(process.pid, 'SIGKILL')
    left -= 1
  })
}
let bodies = 0
const told = await Promise.allSettled(
  Array.from({ length: Number(count) }, (_, number) =>
    db.transact(
      async (/** @type {any} */ tx) => {
        bodies += 1
        await tx.query('INSERT INTO item (note) VALUES (?)', [`note ${number}`])
        return number
      },
      { key: { scope: scope('test'), key: parseKey(`member-${number}`) }, content: 'none' },
    ),
  ),
)
const wrong = told.filter((one, number) => one.status !== 'fulfilled' || one.value !== number).length
console.log(`wrong ${wrong}`)
console.log(`bodies ${bodies}`)
console.log(`shared ${shared.join(' ')}`)
process.kill(process.pid, 'SIGKILL')
