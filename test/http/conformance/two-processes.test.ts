// Every HTTP case on every adapter and store, each served by two processes on one store that take turns: no request can rely on the memory of one.

import { afterAll, beforeAll } from 'vitest'
import { type SubjectProgram, subjectProgram } from '../subject/process.js'
import { playMatrix } from './matrix.js'

let program: SubjectProgram
beforeAll(async () => {
  program = await subjectProgram()
})
afterAll(() => program.close())

playMatrix('two processes', async ({ adapter, database, sink }) => {
  // One after the other: the first makes the tables.
  const first = await program.start(adapter, database, { sink })
  const second = await program.start(adapter, database, { sink })
  return {
    urls: [first.url, second.url],
    close: async () => void (await Promise.all([first.kill(), second.kill()])),
  }
})
