// Finding out what became of a transaction that another process may have left behind.

import { expect, it } from 'vitest'
import { mintKey, scope, storedKey } from '../../../src/identity/index.js'
import { printResolveToken } from '../../../src/transaction/run/resolve-token.js'
import { freshFile, itemStore, rowsIn } from './files.js'

it('writes to the log before it says what became of a transaction: what is dead must not come back', async () => {
  const file = freshFile()
  const db = await itemStore(file)
  const { scope: tenant, key } = { scope: scope('test'), key: mintKey() }
  const token = printResolveToken('items', { id: storedKey(tenant, key) })
  expect(await db.resolve(token)).toEqual({ outcome: 'aborted' })
  expect(rowsIn(file, 'SELECT name, value FROM reprise_meta')).toEqual([['heals', '1']])
  await db.transact(async () => 'stored', { content: 'none', key: { scope: tenant, key } })
  expect(await db.resolve(token)).toEqual({ outcome: 'committed', value: 'stored' })
})
