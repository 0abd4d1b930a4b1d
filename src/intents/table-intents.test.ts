import { describe, expect, it } from 'vitest'
import { memory } from '../stores/memory/index.js'
import { intents } from './intents.js'
import { tableIntents } from './table-intents.js'

function table() {
  const db = memory({ name: 'keys' })
  db.table('intents', { unique: [['id']] } as never)
  return { db, storage: tableIntents(db, 'intents') }
}

describe('keys in a table', () => {
  it('are kept, ended and begun anew in one row', async () => {
    const { db, storage } = table()
    expect(await storage.keep('id', 'one')).toBe('one')
    expect(await storage.keep('id', 'two')).toBe('one')
    await storage.forget('id', 'two')
    expect(await storage.keep('id', 'two')).toBe('one')
    await storage.forget('id', 'one')
    await storage.forget('id', 'one')
    expect(db.rows('intents')).toMatchObject([{ id: 'id', state: 'ended' }])
    expect(await storage.keep('id', 'three')).toBe('three')
    await storage.forget('id', 'one')
    expect(db.rows('intents')).toMatchObject([{ id: 'id', state: 'three' }])
    await storage.forget('nobody', 'one')
    expect(db.rows('intents')).toHaveLength(1)
  })

  it('of many who come at once, one is first, also after an end', async () => {
    const { storage } = table()
    for (let round = 0; round < 3; round += 1) {
      const opened = await Promise.all(Array.from({ length: 10 }, () => intents({ storage }).open('nightly', 1)))
      expect(new Set(opened.map(({ key }) => key)).size).toBe(1)
      await opened[0]?.end()
    }
  })
})
