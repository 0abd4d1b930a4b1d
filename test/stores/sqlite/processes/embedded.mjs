// The embedded default on whatever Node runs this: prints the driver's module and what the store did with it.

import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [bundle = '', file = ''] = process.argv.slice(2)
const { sqliteSignsOf, sqlite } = await import(pathToFileURL(`${bundle}/index.js`).href)
const { parseKey, scope } = await import(pathToFileURL(`${bundle}/identity.js`).href)
const key = { scope: scope('test'), key: parseKey('a-key-of-this-test') }

let driver = 'node:sqlite'
try {
  createRequire(import.meta.url)('node:sqlite')
} catch {
  driver = 'libsql'
}
console.log(driver)

const db = sqlite({ name: 'items', file })
const report = []
report.push(await db.migrate(), await db.doctor())
await db.transact((/** @type {any} */ tx) => {
  tx.db.exec('CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT UNIQUE, bytes BLOB, flag INTEGER)')
})
const body = async (/** @type {any} */ tx) => {
  const { row } = await tx.insertOnce('item', { note: 'a', bytes: new Uint8Array([1, 2]), flag: true }, ['note'])
  const returned = tx.db.prepare("INSERT INTO item (note) VALUES ('b') RETURNING id").run()
  const statement = tx.db.prepare('SELECT note, ? AS value FROM item WHERE id = ?')
  const rows = [
    statement.all('x', 1),
    statement.get(null, 2),
    statement.raw().get('y', 1),
    statement.pluck().all('z', 1),
  ]
  const big = tx.db
    .prepare('SELECT ? AS big')
    .safeIntegers()
    .get(2n ** 60n)
  const every = [row, rows[0][0], rows[1], big, ...(await tx.query('SELECT note FROM item')).rows]
  const plain = every.every((each) => Object.getPrototypeOf(each) === Object.prototype)
  return { id: row.id, bytes: [...row.bytes], flag: row.flag, returned, rows, big: String(big.big), plain }
}
const keyed = { key, content: 'none' }
report.push(await db.transact(body, keyed), await db.transact(body, keyed))
const failures = [
  (/** @type {any} */ tx) => tx.query("INSERT INTO item (note) VALUES ('a')"),
  (/** @type {any} */ tx) => tx.query("INSERT OR ROLLBACK INTO item (note) VALUES ('a')"),
  (/** @type {any} */ tx) => tx.query('SELECT * FROM nothing'),
  (/** @type {any} */ tx) => tx.db.exec('COMMIT'),
]
for (const failure of failures) {
  report.push(await db.transact(failure).then(() => 'done', sqliteSignsOf))
}
const write = (/** @type {any} */ tx) => tx.query("INSERT INTO item (note) VALUES ('c')")
report.push(await db.transact(write, { readOnly: true }).then(() => 'done', sqliteSignsOf))
await db.transact(async (/** @type {any} */ tx) => {
  await tx.savepoint(() => tx.query("INSERT INTO item (note) VALUES ('a')")).catch(() => {})
  await tx.query("INSERT INTO item (note) VALUES ('d')")
})
report.push(await db.transact(async (/** @type {any} */ tx) => (await tx.query('SELECT note FROM item')).rows))
await db.close()
console.log(JSON.stringify(report))
