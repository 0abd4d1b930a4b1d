// Every HTTP case on every adapter and store, each served by one process: this one.

import { startSubject } from '../subject/subject.js'
import { playMatrix } from './matrix.js'

playMatrix('one process', async ({ adapter, database, sink }) => {
  const { url, close } = await startSubject(adapter, database, { sink })
  return { urls: [url], close }
})
