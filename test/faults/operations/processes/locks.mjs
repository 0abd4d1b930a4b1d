// Holds the lock of a file of SQLite: waits for it, prints `held`, and lets go at the first line it is sent.

import { createInterface } from 'node:readline'
import Database from 'libsql'

const [file = '', lock = ''] = process.argv.slice(2)
const handle = new Database(file)
handle.exec('PRAGMA busy_timeout = 10000')
handle.exec(`BEGIN ${lock}`)
console.log('held')
createInterface({ input: process.stdin }).once('line', () => {
  handle.exec('COMMIT')
  handle.close()
  process.exit(0)
})
