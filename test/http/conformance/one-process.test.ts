// Every HTTP case on every adapter, each served by one process: this one. `npm test` plays each adapter on the store on
// which it is not played in two processes, `npm run test:matrix -- long` on the other.

import { startSubject } from '../subject/subject.js'
import { otherHalfOfColumns, playMatrix } from './matrix.js'

playMatrix(
  'one process',
  async ({ adapter, database, sink }) => {
    const { url, close } = await startSubject(adapter, database, { sink })
    return { urls: [url], close }
  },
  otherHalfOfColumns,
)
