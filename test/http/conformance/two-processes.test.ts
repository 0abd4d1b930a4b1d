// Every HTTP case on every adapter, each served by two processes on one store that take turns: no request can rely on
// the memory of one. `npm test` plays each adapter on one of the stores, `npm run test:matrix -- long` on the other.

import { afterAll, beforeAll } from 'vitest'
import { type SubjectProgram, subjectProgram } from '../subject/process.js'
import { type Cell, halfOfColumns, type Played, playMatrix } from './matrix.js'

let program: SubjectProgram
beforeAll(async () => {
  program = await subjectProgram()
})
afterAll(() => program.close())

async function serveTwice({ adapter, database, sink }: Cell): Promise<Played> {
  // One after the other: the first makes the tables.
  const first = await program.start(adapter, database, { sink })
  const second = await program.start(adapter, database, { sink })
  return {
    urls: [first.url, second.url],
    close: async () => void (await Promise.all([first.kill(), second.kill()])),
  }
}

playMatrix('two processes', serveTwice, halfOfColumns)
