// Every HTTP case on the forms for handlers that exist, each on both stores. Leased routes have no such form.

import { startSubject } from '../subject/subject.js'
import { dropInColumns, playMatrix } from './matrix.js'

playMatrix(
  'drop-in forms, one process',
  async ({ adapter, database, sink }) => {
    const { url, close } = await startSubject(adapter, database, { sink })
    return { urls: [url], close }
  },
  dropInColumns,
)
