// What people write in place of an operation: the key, the effect and the outcome in one transaction, each statement
// awaited. It forgets nothing, and does not know what to do about a lost COMMIT. And less than that: the effect alone, in
// the driver's own transaction, which every bench compares with.

import { response, text } from './operation-work.mjs'

/** The effect, by the placeholders of the engine. */
export const insertEntry = {
  postgres: 'INSERT INTO entry (text) VALUES ($1)',
  sqlite: 'INSERT INTO entry (text) VALUES (?)',
}

/**
 * The effect alone: three round trips of `pg`.
 * @param {import('pg').Pool} pool
 * @param {{ begin?: string, commit?: string, value?: string }} [sent] Texts in place of BEGIN and COMMIT, and of the row.
 */
export async function bareOnPostgres(pool, { begin = 'BEGIN', commit = 'COMMIT', value = text } = {}) {
  const client = await pool.connect()
  try {
    await client.query(begin)
    await client.query(insertEntry.postgres, [value])
    await client.query(commit)
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/**
 * The effect alone.
 * @param {import('libsql').Database} handle
 * @param {{ run(text: string): unknown }} statement {@link insertEntry}, prepared.
 */
export function bareOnSqlite(handle, statement, value = text) {
  handle.exec('BEGIN IMMEDIATE')
  try {
    statement.run(value)
    handle.exec('COMMIT')
  } catch (error) {
    handle.exec('ROLLBACK')
    throw error
  }
}

/** @param {import('pg').Pool} pool */
export async function prepareByHand(pool) {
  await pool.query('CREATE TABLE IF NOT EXISTS seen (id text PRIMARY KEY, content text NOT NULL, outcome text)')
}

/**
 * Carries the request out, or answers what the first one stored.
 * @param {import('pg').Pool} pool
 * @param {{ key: string }} input
 * @param {unknown} [outcome] What is stored and answered.
 */
export async function payByHand(pool, input, outcome = response) {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const claim = 'INSERT INTO seen (id, content) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING'
    const { rowCount } = await client.query(claim, [input.key, JSON.stringify(input)])
    if (rowCount === 0) {
      const { rows } = await client.query('SELECT content, outcome FROM seen WHERE id = $1', [input.key])
      await client.query('COMMIT')
      if (rows[0].content !== JSON.stringify(input)) throw new Error('the key was used for another request')
      return JSON.parse(rows[0].outcome)
    }
    await client.query(insertEntry.postgres, [text])
    await client.query('UPDATE seen SET outcome = $2 WHERE id = $1', [input.key, JSON.stringify(outcome)])
    await client.query('COMMIT')
    return outcome
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/**
 * The same on SQLite, one transaction after the other, since they share a connection.
 * @param {import('libsql').Database} handle
 */
export function byHandOnSqlite(handle) {
  handle.exec('CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY, content TEXT NOT NULL, outcome TEXT)')
  const run = async (/** @type {string} */ sent, /** @type {any[]} */ ...values) => handle.prepare(sent).run(values)
  let before = Promise.resolve()
  const pay = async (/** @type {{ key: string }} */ input) => {
    await run('BEGIN IMMEDIATE')
    try {
      const content = JSON.stringify(input)
      const { changes } = await run('INSERT OR IGNORE INTO seen (id, content) VALUES (?, ?)', input.key, content)
      if (changes === 0) {
        const row = await handle.prepare('SELECT content, outcome FROM seen WHERE id = ?').get(input.key)
        if (row.content !== content) throw new Error('the key was used for another request')
        await run('COMMIT')
        return JSON.parse(row.outcome)
      }
      await run(insertEntry.sqlite, text)
      await run('UPDATE seen SET outcome = ? WHERE id = ?', JSON.stringify(response), input.key)
      await run('COMMIT')
    } catch (error) {
      await run('ROLLBACK')
      throw error
    }
    return response
  }
  return (/** @type {{ key: string }} */ input) => {
    const turn = before.then(() => pay(input))
    before = turn.then(
      () => undefined,
      () => undefined,
    )
    return turn
  }
}
