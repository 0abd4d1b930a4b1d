import { expect, it } from 'vitest'
import { fileFinding } from './sqlite.js'

// The rest is tested on files, beside the store in SQLite and behind a callback.

it.each([
  [['SQLITE_CANTOPEN'], 'FILE_UNOPENED'],
  [['SQLITE_READONLY_DBMOVED', 'SQLITE_READONLY'], 'FILE_READ_ONLY'],
  [['SQLITE_NOTADB'], 'FILE_CORRUPT'],
  [['SQLITE_BUSY'], undefined],
  [[], undefined],
])('an error with the signs %j is %s', (signs, code) => {
  expect(fileFinding(signs)?.code).toBe(code)
})
