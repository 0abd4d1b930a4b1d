// express-idempotency by its quick start. Arguments: the folder of the ledger.

import { getSharedIdempotencyService, idempotency } from 'express-idempotency'
import { listening } from '../listening.mjs'
import { onExpress } from '../on-express.mjs'

const [folder = ''] = process.argv.slice(2)
const layer = idempotency()

const app = await onExpress(folder, {
  guard: async ({ key }) => (key === 'strict' || key === 'waiting' ? undefined : [layer]),
  isAnswered: (request) => getSharedIdempotencyService().isHit(request),
  notSent: (request) => getSharedIdempotencyService().reportError(request),
})
listening(app)
