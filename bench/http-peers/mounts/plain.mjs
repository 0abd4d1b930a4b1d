// No layer at all: what the cases say of handlers that know nothing of keys. Arguments: the folder of the ledger, the
// framework.

import { listening } from '../listening.mjs'
import { onExpress } from '../on-express.mjs'
import { onHono } from '../on-hono.mjs'

const [folder = '', framework] = process.argv.slice(2)
listening(
  framework === 'hono'
    ? onHono(folder, () => (_context, next) => next())
    : await onExpress(folder, { guard: async () => [] }),
)
