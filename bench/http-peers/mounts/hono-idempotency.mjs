// hono-idempotency by its quick start, with the prefix that its documentation asks for. Arguments: the folder of the
// ledger, the mark.

import { idempotency } from 'hono-idempotency'
import { memoryStore } from 'hono-idempotency/stores/memory'
import { listening } from '../listening.mjs'
import { onHono } from '../on-hono.mjs'

const [folder = '', mark] = process.argv.slice(2)
const store = memoryStore()

const listener = onHono(folder, ({ key, method }) => {
  if (key === 'strict' || key === 'waiting') return undefined
  return idempotency({
    store,
    maxKeyLength: 255,
    required: key === 'required',
    cacheKeyPrefix: (context) => context.get('user'),
    ...(method === 'PUT' && { methods: ['PUT'] }),
  })
})
listening(listener, mark)
