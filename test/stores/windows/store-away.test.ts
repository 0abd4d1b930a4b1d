// A store that is away, or cannot be written to: what a window refuses, lets through, and makes up for.

import Libsql from 'libsql'
import pg from 'pg'
import { expect, inject, it } from 'vitest'
import { type DedupeWindow, dedupeWindow } from '../../../src/messaging/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { postgresProxy } from '../../../src/testing/index.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { worlds } from './worlds.js'

const bounds = { name: 'orders', within: '1h', most: 100 } as const
const isDuplicate = { accepted: false, because: 'duplicate' }

/** Passes one id after the other: marks leave in their order, so what came before is in the store when one is. */
function nextOf(window: DedupeWindow): () => Promise<unknown> {
  let number = 0
  return () => {
    number += 1
    return window.pass(['next', `${number}`], () => number, { deadline: '5m' })
  }
}

it('PostgreSQL away: refused before the sink, or let through by what the process knows; then made up for', async () => {
  const database = await createDatabase(inject('postgresUrl'))
  const direct = new pg.Pool({ connectionString: database.url })
  const target = new URL(database.url)
  const upstream = { host: target.hostname, port: Number(target.port) }
  let proxy = await postgresProxy({ upstream })
  const { port } = proxy
  target.port = String(port)
  const pool = new pg.Pool({ connectionString: target.href })
  pool.on('error', () => undefined)
  try {
    await postgres({ name: 'direct', pool: direct }).migrate()
    const store = postgres({ name: 'shop', pool })
    const stops = dedupeWindow({ ...bounds, store })
    const passes = dedupeWindow({ ...bounds, store, storeAway: 'pass' })
    await proxy.close()
    await expect(stops.pass('a', () => expect.unreachable(), { deadline: '5m' })).rejects.toMatchObject({
      code: 'WINDOW_STORE_AWAY',
      cause: expect.anything(),
    })
    expect(stops.counts).toMatchObject({ unchecked: 1, accepted: 0, failed: 0 })
    expect(await passes.pass('a', () => 1, { deadline: '5m' })).toEqual({
      accepted: true,
      value: 1,
      remembered: 'process',
    })
    expect(await passes.pass('a', () => 2)).toEqual(isDuplicate)
    expect(passes.counts).toMatchObject({ unchecked: 1, unremembered: 1, accepted: 1, duplicates: 1 })
    proxy = await postgresProxy({ upstream, port })
    await expect.poll(nextOf(passes)).toMatchObject({ remembered: 'store' })
    const after = dedupeWindow({ ...bounds, store: postgres({ name: 'shop', pool: direct }), storeLimit: '1m' })
    expect(await after.pass('a', () => expect.unreachable(), { deadline: '5m' })).toEqual(isDuplicate)
    // What was refused is with the producer, which repeats it.
    expect(await stops.pass('c', () => 1, { deadline: '5m' })).toMatchObject({ accepted: true })
  } finally {
    await pool.end()
    await direct.end()
    await proxy.close()
    await database.drop()
  }
})

const [, [, onSqlite] = expect.unreachable('SQLite is among the worlds')] = worlds

it('SQLite locked by another process: accepted, remembered by the process, and marked with the next', () =>
  onSqlite(async ({ maker, open, place }) => {
    await (await maker()).migrate()
    // The look needs no lock, and has to come through within this time on a busy machine.
    const window = dedupeWindow({ ...bounds, store: await open(), storeLimit: '2s' })
    const stranger = new Libsql(place)
    try {
      stranger.exec('BEGIN IMMEDIATE')
      expect(await window.pass('a', () => 1, { deadline: '5m' })).toMatchObject({ remembered: 'process' })
      expect(window.counts).toMatchObject({ unremembered: 1, unchecked: 0 })
    } finally {
      stranger.exec('ROLLBACK')
      stranger.close()
    }
    await expect.poll(nextOf(window)).toMatchObject({ remembered: 'store' })
    const after = dedupeWindow({ ...bounds, store: await open(), storeLimit: '1m' })
    expect(await after.pass('a', () => expect.unreachable(), { deadline: '5m' })).toEqual(isDuplicate)
  }))
