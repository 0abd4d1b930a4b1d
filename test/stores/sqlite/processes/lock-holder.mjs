// Holds the lock of a file in a process of its own: prints `held`, and ends its transaction at the first line it is
// sent.

import { createInterface } from 'node:readline'
import Database from 'libsql'

const [file = '', statement = ''] = process.argv.slice(2)
const handle = new Database(file)
handle.exec('BEGIN IMMEDIATE')
if (statement !== '') handle.exec(statement)
console.log('held')
createInterface({ input: process.stdin }).once('line', (line) => {
  handle.exec(line)
  handle.close()
  console.log('ended')
  process.exit(0)
})
