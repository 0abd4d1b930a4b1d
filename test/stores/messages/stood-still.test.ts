// A process that stands still while it looks a message up is late for its own deadline, which says nothing about the
// message: it is not acknowledged, and comes again.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { systemClock } from '../../../src/kernel/index.js'
import { consume, deadLetters } from '../../../src/messaging/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { messageOf, ScriptedSource } from '../../messaging/consumer/scripted-source.js'

it('has every message handled in the order of its key, and makes no dead letter', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-stood-still-'))
  const db = sqlite({ name: 'shop', file: join(folder, 'store.db') })
  await db.migrate()
  const { arrive } = db.messages
  let stood = 0
  const messages = {
    ...db.messages,
    arrive: async (...given: Parameters<typeof arrive>) => {
      const arrived = await arrive(...given)
      const endMs = systemClock.monotonicMs() + 1_100
      if (stood++ < 2) while (systemClock.monotonicMs() < endMs) {}
      return arrived
    },
  }
  const source = new ScriptedSource()
  await db.transact((tx) => tx.query('create table effect (id text primary key)'))
  const effects = async () =>
    (await db.transact((tx) => tx.query('select id from effect order by rowid'))).rows.map(({ id }) => id)
  const consumer = consume({ ...db, messages } as typeof db, {
    name: 'receipts',
    from: source,
    deadline: '1s',
    handle: (tx, { id }) => tx.query('insert into effect (id) values (?)', [id]),
  })
  const stop = new AbortController()
  const running = consumer.run({ signal: stop.signal })
  try {
    source.send(messageOf('1', 'a'), messageOf('2', 'a'))
    await expect.poll(effects, { timeout: 30_000 }).toEqual(['1', '2'])
    expect(stood).toBeGreaterThan(2)
    expect(await deadLetters(db).list()).toEqual([])
    expect(consumer.counts.parked).toBe(0)
  } finally {
    stop.abort()
    await running
    await db.close()
    rmSync(folder, { recursive: true })
  }
})
