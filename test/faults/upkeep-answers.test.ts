// A purge and a settlement whose answers are cut off, after the server has carried them out.

import pg from 'pg'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { runCommandLine } from '../../src/cli/index.js'
import { happened, hold, type Lease, leased, operationId } from '../../src/idempotency/index.js'
import { mintKey, type StoredKey } from '../../src/identity/index.js'
import type { Duration } from '../../src/kernel/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import type { ProxyFault } from '../../src/testing/index.js'
import { ioInMemory, type Seen } from '../cli/io-in-memory.js'
import { until } from '../servers/server-process.js'
import { type Lane, type Lanes, openLanes, tests } from './lanes.js'

const rows = 1_200
let world: Lanes
let lane: Lane
let url: string
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1, { deadline: '60s', connectionWait: '20s', bodyLimit: '30s' })
  lane = world.lanes[0] as Lane
  const through = new URL(world.url)
  through.host = `${lane.proxy.host}:${lane.proxy.port}`
  url = through.href
})

async function command(words: readonly string[]): Promise<Seen> {
  const io = ioInMemory()
  await runCommandLine([words[0] ?? '', '--url', url, ...words.slice(1)], io)
  return io
}

const count = async (where: string): Promise<number> =>
  Number((await world.raw.query(`select count(*) from reprise_marker where ${where}`)).rows[0].count)

// The server has answered, so the statement is committed, and nobody hears of it.
const lostAnswer = (statement: (text: string) => boolean, action: ProxyFault['action']): ProxyFault => ({
  statement,
  at: 'before-answer',
  action,
})
const purges = (text: string): boolean => text.includes('finished AS') && text.includes('DELETE')
const settles = (text: string): boolean => text.startsWith('WITH') && text.includes('UPDATE') && text.includes('noted')

async function makeFinished(): Promise<void> {
  const note = lane.db.operation(`note.${mintKey()}`, {
    scope: () => tests,
    key: () => mintKey(),
    content: 'none',
    window: '1h',
    run: () => 'done',
  })
  await note(undefined)
  const copied = "jsonb_populate_record(m, jsonb_build_object('id', m.id || n, 'expires_at_ms', 1))"
  const source = `reprise_marker m, generate_series(1, ${rows}) n where m.state = 'succeeded'`
  await world.raw.query(`insert into reprise_marker select (${copied}).* from ${source}`)
}

it('a purge whose answer was lost says that more may have been forgotten than it counted', async () => {
  await makeFinished()
  const armed = lane.proxy.arm(lostAnswer(purges, 'rst'))
  const left = armed.first.then(() => count('expires_at_ms = 1'))
  const { out, err, code } = await command(['purge', '--batch', '5000', '--json'])
  expect({ fired: armed.fired.length, left: await left }).toEqual({ fired: 1, left: 0 })
  expect(JSON.parse(out)).toMatchObject({ finished: 0, unconfirmed: 1, interrupted: false })
  expect({ err, code }).toEqual({ err: '', code: 0 })
  const again = await command(['purge'])
  expect(again.out.split('\n')).toEqual([
    'forgotten: 0 finished, 0 unknown, 0 keys of transactions, 0 notes',
    'of messages: 0 sent, 0 processed, 0 keys without messages, 0 closed dead letters',
    '',
  ])
})

it('a settlement that was written succeeds, though nobody heard the answer', async () => {
  const charge = leased('charge', {
    store: lane.db,
    scope: () => tests,
    key: () => key,
    content: 'none',
    window: '1h',
    lease: '10s',
    recover: hold(),
    run: (lease): Promise<string> => lease.effect('capture', () => Promise.reject(new Error('the answer got lost'))),
  })
  const key = mintKey()
  await charge(undefined).catch(() => undefined)
  const id = operationId('charge', tests, key)
  const armed = lane.proxy.arm(lostAnswer(settles, 'black-hole'))
  const settling = lane.db.settle({ id }, happened('r-81'), { reason: 'listed', actor: 'pat', deadline: '5s' })
  const settled = settling.then(
    () => 'settled',
    (error) => error,
  )
  await until(() => armed.fired.length > 0, 'the answer is cut off')
  // Written already, while the caller waits.
  expect(await count(`id = '${id}' and state = 'succeeded' and because = 'settled'`)).toBe(1)
  expect(await settled).toBe('settled')
  const { notes } = await lane.db.lookup({ id })
  expect(notes).toHaveLength(1)
  await lane.proxy.heal()
})

describe('a settlement on a connection that falls silent', () => {
  const reads = (text: string): boolean => /^SELECT .*now_ms.*marker/s.test(text)
  const asksWhichServer = (text: string): boolean => text.startsWith("SELECT '' AS xid")

  async function unknownCharge(): Promise<StoredKey> {
    const [name, key] = [`charge.${mintKey()}`, mintKey()]
    const lost = (lease: Lease): Promise<string> => lease.effect('capture', () => Promise.reject(new Error('lost')))
    const scoped = { store: lane.db, scope: () => tests, key: () => key, content: 'none', window: '1h' } as const
    await leased(name, { ...scoped, lease: '10s', recover: hold(), run: lost })(undefined).catch(() => undefined)
    return operationId(name, tests, key)
  }

  const settle = (id: StoredKey, deadline: Duration, db: Pick<Lane['db'], 'settle'> = lane.db): Promise<string> =>
    db.settle({ id }, happened('r-81'), { reason: 'listed', actor: 'pat', deadline }).then(
      () => 'settled',
      (error) => error.code,
    )

  it.each([
    ['its read is silent', 'before-forward'],
    ['its write goes into the silence', 'after-answers'],
  ] as const)('%s: it is asked again on another one, and settles', async (_what, at) => {
    const id = await unknownCharge()
    const armed = lane.proxy.arm({ statement: reads, at, action: 'black-hole' })
    // One try of the store is cut after 5 s in any case; here it is the deadline that has to leave time for another.
    expect(await settle(id, '8s')).toBe('settled')
    expect(armed.fired).toHaveLength(1)
    expect((await lane.db.lookup({ id })).notes).toHaveLength(1)
    await lane.proxy.heal()
  })

  it.each(['which server it is', 'who was left behind'])(
    'is a definite failure where nothing was sent that writes: silent at %s',
    async (asked) => {
      const id = await unknownCharge()
      // Each statement on a connection of its own: the read is answered, and every further connection is silent when it is
      // asked which server it is, before the write is sent.
      const pool = new pg.Pool({ connectionString: url, maxUses: 1 })
      pool.on('error', () => undefined)
      const silent = Array.from({ length: 40 }, (_, index) =>
        lane.proxy.arm({ statement: asksWhichServer, nth: index + 2, at: 'before-forward', action: 'black-hole' }),
      )
      // Before that, a connection is asked whether those that were left behind before it are gone.
      if (asked === 'who was left behind')
        silent.push(
          lane.proxy.arm({
            statement: (text) => text.includes('pid = ANY'),
            nth: 1,
            at: 'before-forward',
            action: 'black-hole',
          }),
        )
      expect(['DEADLINE_EXCEEDED', 'CONNECT_TIMEOUT', 'POOL_EXHAUSTED', 'COMMITS_UNANSWERED']).toContain(
        await settle(id, '4s', postgres({ pool, name: 'single' })),
      )
      expect((asked === 'who was left behind' ? silent.slice(-1) : silent).some(({ fired }) => fired.length > 0)).toBe(
        true,
      )
      for (const armed of silent) armed.disarm()
      await lane.proxy.heal()
      await pool.end()
      expect(await lane.db.lookup({ id })).toMatchObject({ state: 'unknown', notes: [] })
      expect(await settle(id, '60s')).toBe('settled')
    },
  )
})
