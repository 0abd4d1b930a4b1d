// node-idempotency by the quick start of its Express package. Arguments: the folder of the ledger.

import { idempotencyAsMiddleware, StorageAdapterEnum } from '@node-idempotency/express'
import { listening } from '../listening.mjs'
import { onExpress } from '../on-express.mjs'

const [folder = ''] = process.argv.slice(2)

const app = await onExpress(folder, {
  guard: async ({ key }) => {
    if (key === 'strict') return undefined
    return idempotencyAsMiddleware({
      storage: { adapter: StorageAdapterEnum.memory },
      keyMaxLength: 255,
      enforceIdempotency: key !== 'optional',
      ...(key === 'waiting' && { inProgressStrategy: { wait: true, maxWaitMs: 2000 } }),
    })
  },
})
listening(app)
