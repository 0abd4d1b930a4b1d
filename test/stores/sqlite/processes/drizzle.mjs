// Drizzle by its own entry point for better-sqlite3, bound to transactions in both ways that it takes a client: prints what it
// saw, and what is in the file.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [bundle = '', folder = '', file = ''] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(join(bundle, `${name}.js`)).href)
const { sqlite } = await load('sqlite')
const { drizzle } = await load('drizzle')
const { integer, sqliteTable, text } = await load('tables')
const { eq } = await load('conditions')
const Database = createRequire(join(folder, 'package.json'))('better-sqlite3')

const item = sqliteTable('item', { id: integer('id').primaryKey(), note: text('note').unique(), state: text('state') })
const open = () => new Database(file)
const ways = [(/** @type {any} */ client) => drizzle(client), (/** @type {any} */ client) => drizzle({ client })]
const report = []

for (const [way, bind] of ways.entries()) {
  const db = sqlite({ name: 'drizzle', open, bind })
  await db.migrate()
  await db.transact((/** @type {any} */ tx) => {
    tx.db.run('CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, note TEXT UNIQUE, state TEXT)')
  })
  const seen = await db.transact(async (/** @type {any} */ tx) => {
    const note = (/** @type {string} */ name) => `${name}${way}`
    tx.db
      .insert(item)
      .values({ note: note('a') })
      .run()
    const returned = await tx.db
      .insert(item)
      .values({ note: note('b') })
      .returning({ note: item.note })
    tx.db
      .update(item)
      .set({ state: 'seen' })
      .where(eq(item.note, note('a')))
      .run()
    const found = tx.db
      .select({ note: item.note, state: item.state })
      .from(item)
      .where(eq(item.note, note('a')))
      .all()
    let refused = ''
    try {
      tx.db.transaction((/** @type {any} */ nested) => {
        nested
          .insert(item)
          .values({ note: note('c') })
          .run()
        nested
          .insert(item)
          .values({ note: note('a') })
          .run()
      })
    } catch (error) {
      const { cause, code } = /** @type {any} */ (error)
      refused = code ?? cause?.code
    }
    const add = (/** @type {any} */ on, /** @type {string} */ name) =>
      on
        .insert(item)
        .values({ note: note(name) })
        .run()
    tx.db.transaction((/** @type {any} */ nested) => add(nested, 'd'))
    // Drizzle calls the inner ones sp1 both, and leaves the one that failed open.
    tx.db.transaction((/** @type {any} */ nested) => {
      try {
        nested.transaction((/** @type {any} */ inner) => {
          add(inner, 'e')
          add(inner, 'a')
        })
      } catch {
        add(nested, 'f')
      }
      nested.transaction((/** @type {any} */ inner) => {
        add(inner, 'g')
        inner.transaction((/** @type {any} */ innermost) => add(innermost, 'h'))
      })
    })
    await tx.query('SELECT 1')
    return { returned, found, refused }
  })
  const undone = db.transact((/** @type {any} */ tx) => {
    tx.db.insert(item).values({ note: 'undone' }).run()
    throw new Error('no')
  })
  report.push(seen, await undone.catch((/** @type {Error} */ error) => error.message))
  await db.close()
}
const handle = open()
report.push(handle.prepare('SELECT note FROM item ORDER BY note').pluck().all())
handle.close()
console.log(JSON.stringify(report))
