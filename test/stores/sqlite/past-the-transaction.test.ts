// A write past the open transaction, by another connection to the same file: the lock of the file stops it.

import Database from 'libsql'
import { expect, it } from 'vitest'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { freshFile } from './files.js'

it('is refused by SQLite itself while the transaction writes, so that nothing survives a rollback', async () => {
  const file = freshFile()
  const db = sqlite({ name: 'file', open: () => new Database(file) })
  await db.transact((tx) => tx.query('CREATE TABLE item (id TEXT PRIMARY KEY)'))
  const global = new Database(file)
  global.exec('PRAGMA busy_timeout = 0')
  let refusal: unknown
  const work = db.transact(async () => {
    try {
      global.exec("INSERT INTO item VALUES ('past')")
    } catch (error) {
      refusal = error
    }
    throw new Error('rolled back')
  })
  await expect(work).rejects.toThrow('rolled back')
  expect(refusal).toMatchObject({ code: 'SQLITE_BUSY' })
  expect(global.prepare('SELECT count(*) AS count FROM item').get()).toMatchObject({ count: 0 })
  global.close()
  await db.close()
})
