// Operations in SQLite against the bare transaction, and replays against one look into the index.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import Database from 'libsql'
import { sqlite } from '../dist/stores/sqlite/index.js'
import { bareOnSqlite, byHandOnSqlite, insertEntry } from './by-hand.mjs'
import { check, effort, fresh, here, inTurn, paying, replaying } from './operation-work.mjs'
import { ownProcessorUs } from './processor-time.mjs'

const ours = 'operation'
const bare = 'bare BEGIN, INSERT, COMMIT'
const bareOnce = 'bare BEGIN, INSERT, COMMIT, prepared once'
const byHand = 'by hand: BEGIN, key, INSERT, outcome, COMMIT'
const sameStatements = 'bare, with the statements of an operation, prepared once'
const replayed = 'replay'
const select = 'one indexed SELECT'
const selectOnce = 'one indexed SELECT, prepared once'

/**
 * @param {import('./harness.mjs').Subject} flushes
 * @param {string} folder
 */
export async function* sqliteCases(flushes, folder) {
  const db = sqlite({ name: 'bench', open: () => new Database(join(folder, 'ours.db')) })
  const table = 'CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL)'
  await db.migrate()
  await db.transact((tx) => tx.query(table))
  const handle = new Database(join(folder, 'bare.db'))
  const same = new Database(join(folder, 'ours.db'))
  const noted = await statementsOf(join(folder, 'statements.db'), table)
  const statements = new Database(join(folder, 'statements.db'))
  const shared = { rates: true, meters: [{ name: here, read: ownProcessorUs }], effort }
  try {
    // As Reprise opens its own.
    for (const one of [handle, same, statements]) {
      one.exec('PRAGMA journal_mode = WAL')
      one.exec('PRAGMA synchronous = FULL')
    }
    handle.exec(table)
    const first = await firstWays(db, handle, underOtherNames(statements, noted))
    for (const atOnce of [1, 16]) {
      const limits = atOnce === 1 ? { [bare]: 0.6, [byHand]: 1 } : { [bare]: 1.8, [byHand]: 2.5 }
      yield {
        ...shared,
        name: `operation around one insert, SQLite (libsql), WAL, synchronous FULL, ${atOnce} waiting`,
        subjects: [...first.map((subject) => (subject.waits ? { ...subject, atOnce } : subject)), { ...flushes }],
        targets: Object.entries(limits).map(([against, limit]) => ({ against, limit })),
        notes: (/** @type {import('./harness.mjs').Used} */ used) => [
          atOnce === 1
            ? 'limit: one flush of the log, then the processor time of this thread'
            : 'limit: the processor time of this thread; those who wait share a flush',
          `  claim and outcome (two writes to one row, its two indexes, their pages in the log and again in the file): ${(used(sameStatements, here) - used(bareOnce, here)).toFixed(0)} us`,
          `  its own steps, beside the same statements: ${(used(ours, here) - used(sameStatements, here)).toFixed(0)} us`,
        ],
      }
    }
    yield {
      ...shared,
      effort: { ...effort, turnMs: 20, warmUpMs: 1500 },
      name: 'replay, SQLite (libsql)',
      subjects: await replayWays(db, same),
      targets: [select, selectOnce].map((against) => ({ against, limit: 0.8 })),
      notes: (/** @type {import('./harness.mjs').Used} */ used) => [
        'limit: the processor time of this thread; a look into a file that is in memory is some ten microseconds without a promise',
        `  what a replay does beside it (identity, queue, connection, a whole record, comparison): ${(used(replayed, here) - used(selectOnce, here)).toFixed(0)} us`,
      ],
    }
  } finally {
    statements.close()
    same.close()
    handle.close()
    await db.close()
  }
}

/** @typedef {{ text: string, values: any[] }} Noted */

/**
 * What an operation runs beside BEGIN and COMMIT, in a file of its own.
 * @param {string} file
 * @param {string} table
 */
async function statementsOf(file, table) {
  /** @type {Noted[]} */
  const noted = []
  const open = () => {
    const handle = new Database(file)
    const prepare = handle.prepare.bind(handle)
    return Object.assign(handle, {
      prepare: (/** @type {string} */ prepared) => {
        const statement = prepare(prepared)
        const run = statement.run.bind(statement)
        return Object.assign(statement, {
          run: (/** @type {any[]} */ values) => {
            noted.push({ text: prepared, values })
            return run(values)
          },
        })
      },
    })
  }
  const db = sqlite({ name: 'noted', open })
  await db.migrate()
  await db.transact((tx) => tx.query(table))
  const pay = paying(db, insertEntry.sqlite)
  await pay()
  noted.length = 0
  await pay()
  await db.close()
  assert.deepEqual(
    noted.map(({ text: sent }) => sent.split(' ', 1)[0]),
    ['INSERT', 'INSERT', 'UPDATE'],
  )
  return noted
}

/**
 * The same statements, each time under another name.
 * @param {InstanceType<typeof Database>} handle
 * @param {Noted[]} noted
 */
function underOtherNames(handle, noted) {
  const name = noted[0]?.values[0]
  const prepared = noted.map(({ text: sent, values }) => ({ statement: handle.prepare(sent), values }))
  return () => {
    const other = `sha256:${randomBytes(32).toString('base64url')}`
    handle.exec('BEGIN IMMEDIATE')
    for (const { statement, values } of prepared) statement.run(values.map((value) => (value === name ? other : value)))
    handle.exec('COMMIT')
  }
}

/**
 * @param {import('../dist/stores/sqlite/index.js').SqliteDomain<any>} db
 * @param {InstanceType<typeof Database>} handle
 * @param {() => void} sameWay
 */
async function firstWays(db, handle, sameWay) {
  const prepared = handle.prepare(insertEntry.sqlite)
  const counted = 'SELECT count(*) AS count FROM entry'
  const ourWays = { [ours]: paying(db, insertEntry.sqlite) }
  const bareWays = {
    [bare]: () => bareOnSqlite(handle, handle.prepare(insertEntry.sqlite)),
    [bareOnce]: () => bareOnSqlite(handle, prepared),
  }
  await check(ourWays, () => db.transact(async (tx) => /** @type {any} */ ((await tx.query(counted)).rows[0]).count), 1)
  await check(bareWays, () => handle.prepare(counted).get().count, 1)
  const payByHand = byHandOnSqlite(handle)
  const next = fresh()
  const handWays = { [byHand]: () => payByHand(next()) }
  await check(handWays, () => handle.prepare(counted).get().count, 1)
  Object.assign(bareWays, { [sameStatements]: sameWay })
  return [
    ...Object.entries({ ...ourWays, ...handWays }).map(([name, run]) => ({ name, run, waits: true })),
    ...Object.entries(bareWays).map(([name, run]) => ({ name, run })),
  ]
}

/**
 * @param {import('../dist/stores/sqlite/index.js').SqliteDomain<any>} db
 * @param {InstanceType<typeof Database>} handle On the same file.
 */
async function replayWays(db, handle) {
  const { replay, agree } = await replaying(db)
  const ids = handle.prepare("SELECT id FROM reprise_marker WHERE operation = 'replayed'").all()
  const id = inTurn(ids.map((/** @type {{ id: string }} */ row) => row.id))
  const plain = 'SELECT value FROM reprise_marker WHERE id = ?'
  const prepared = handle.prepare(plain)
  /** @type {Record<string, () => any>} */
  const ways = {
    [replayed]: replay,
    [select]: () => JSON.parse(handle.prepare(plain).get(id()).value),
    [selectOnce]: () => JSON.parse(prepared.get(id()).value),
  }
  await agree(ways)
  return Object.entries(ways).map(([name, run]) => ({ name, run, waits: name === replayed }))
}
