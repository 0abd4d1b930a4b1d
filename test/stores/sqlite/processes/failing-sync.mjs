// A COMMIT whose sync fails, in a process that dies by kill -9 afterwards. The failure comes from outside (strace).
//
// What happens between the failure and the end is the argument: `nothing`, `discard` the connections, `heal` them by
// taking the next one, or `transact`: all of it by the runner, with a key. `setup` only makes the tables.

import { pathToFileURL } from 'node:url'
import Database from 'libsql'

const [bundle = '', file = '', then = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { SqliteEngine } = await load('engine')
const { sqlite } = await load('index')
const { systemClock, systemRandom } = await load('kernel')
const { parseKey, scope } = await load('identity')

const open = () => new Database(file)
if (then === 'setup') {
  const db = sqlite({ name: 'items', open })
  await db.migrate()
  await db.transact((/** @type {any} */ tx) => tx.query('CREATE TABLE item (note TEXT)'))
  process.kill(process.pid, 'SIGKILL')
}
// Keeps the log from being emptied when the others are closed, as another process would.
const foreign = open()
foreign.prepare('SELECT count(*) FROM item').all([])

const insert = "INSERT INTO item (note) VALUES ('ghost')"
const writing = { isolation: 'serializable', readOnly: false, idleMs: 1, lockWaitMs: 1_000 }
const controls = { attempt: 1, signal: new AbortController().signal, deadline: { expiresAtMs: 1e12 }, afterCommit() {} }
const waiting = { waitMs: 1_000, readOnly: false }

if (then === 'transact') {
  let bodies = 0
  const key = { scope: scope('test'), key: parseKey('a-key-of-this-test') }
  const db = sqlite({ name: 'items', open })
  await db.transact(
    async (/** @type {any} */ tx) => {
      bodies += 1
      await tx.query(insert)
    },
    { key, content: 'none' },
  )
  console.log(`bodies ${bodies}`)
} else {
  const engine = new SqliteEngine({
    name: 'items',
    open,
    bind: (/** @type {unknown} */ client) => client,
    clock: systemClock,
    random: systemRandom,
  })
  const session = await engine.acquire(waiting)
  const tx = await session.begin(writing, controls)
  await tx.query(insert)
  try {
    await session.commit()
    console.log('committed')
  } catch (error) {
    console.log(engine.classify(error, 'committing').sign, engine.classify(error, 'committing').outcome)
    if (then !== 'nothing') session.release('discard')
    if (then === 'heal') (await engine.acquire(waiting)).release('keep')
  }
}
console.log('seen', JSON.stringify(foreign.prepare('SELECT count(*) FROM item').raw().all([])))
process.kill(process.pid, 'SIGKILL')
