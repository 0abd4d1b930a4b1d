// idempot-js by the quick start of its Express package. Arguments: the folder of the ledger, the mark, the path of the
// store.

import { idempotency } from '@idempot/express-middleware'
import { SqliteIdempotencyStore } from '@idempot/sqlite-store'
import { listening } from '../listening.mjs'
import { onExpress } from '../on-express.mjs'

const [folder = '', mark, path = ':memory:'] = process.argv.slice(2)
const store = new SqliteIdempotencyStore({ path })

const app = await onExpress(folder, {
  guard: async ({ key }) => {
    if (key === 'waiting') return undefined
    return [idempotency({ store, excludeFields: ['clientTimestamp'], required: key !== 'optional' })]
  },
})
listening(app, mark)
