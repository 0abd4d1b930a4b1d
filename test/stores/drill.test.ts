// Duplicates on purpose on real stores: an operation, routes of Express and consumers agree, and each of the mistakes
// that a repeat of a client or a broker would meet is found, without a second effect.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express, { type RequestHandler } from 'express'
import Database from 'libsql'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { memoryBroker } from '../../src/brokers/memory/index.js'
import { type Drill, type DrilledCall, type DrillViolationEvent, drill } from '../../src/drill/index.js'
import { invalid } from '../../src/http/core/index.js'
import { idempotency, idempotent, reply } from '../../src/http/express/index.js'
import { leased, rerunKeyed } from '../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import { consume, once, relay } from '../../src/messaging/index.js'
import { transient } from '../../src/retry/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../src/stores/sqlite/index.js'
import { createDatabase } from '../servers/fresh-database.js'

const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' } as const

/** What both engines have in common here: statements with `$1`, or with `?`. */
interface Opened {
  readonly db: ReturnType<typeof onSqlite>['db'] & { operation: unknown }
  /** Runs a statement in a transaction of the domain. */
  sql(tx: unknown, text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>
  close(): Promise<void>
}

function onSqlite(drilled: Drill) {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-drill-'))
  const open = () => new Database(join(folder, 'shop.db')) as unknown as SqliteHandle
  const db = sqlite({ name: 'shop', open, drill: drilled, ...patient })
  type Tx = Parameters<Parameters<typeof db.transact>[0]>[0]
  return {
    db,
    sql: (tx: unknown, text: string, values: readonly unknown[] = []) =>
      (tx as Tx).query(text.replaceAll(/\$\d/g, '?'), [...values]),
    close: async () => {
      await db.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function onPostgres(drilled: Drill): Promise<Opened> {
  const database = await createDatabase(inject('postgresUrl'))
  const pool = new pg.Pool({ connectionString: database.url, max: 10 })
  const db = postgres({ name: 'shop', pool, drill: drilled, ...patient })
  type Tx = Parameters<Parameters<typeof db.transact>[0]>[0]
  return {
    db: db as never,
    sql: (tx, text, values = []) => (tx as Tx).query(text, [...values]),
    close: async () => {
      await db.close()
      await pool.end()
      await database.drop()
    },
  }
}

describe.each([
  ['SQLite', async (drilled: Drill): Promise<Opened> => onSqlite(drilled)],
  ['PostgreSQL', onPostgres],
] as const)('on %s', (_engine, open) => {
  let violations: (DrillViolationEvent & { readonly input: unknown })[] = []
  let effects: ((call: DrilledCall) => Promise<number>) | undefined
  const drilled = drill({
    oneIn: 1,
    after: '5ms',
    atOnce: 100,
    effects: async (call) => (await effects?.(call)) ?? 0,
    onViolation: (violation, { input }) => violations.push({ ...violation, input }),
  })
  let opened: Opened
  let before = drilled.counts
  beforeAll(async () => {
    opened = await open(drilled)
    await opened.db.migrate()
    await opened.db.transact((tx) => opened.sql(tx, 'create table effect (id text not null)'))
  })
  afterAll(() => opened.close())
  afterEach(async () => {
    before = await drilled.settled()
    violations = []
    effects = undefined
  })

  const write = (tx: unknown, id: string) => opened.sql(tx, 'insert into effect (id) values ($1)', [id])
  const count = async (id: string): Promise<number> =>
    (await opened.db.transact((tx) => opened.sql(tx, 'select id from effect where id = $1', [id]))).rows.length
  /** What the drill came to in this test. */
  const came = async () => {
    const { agreed, violations: found } = await drilled.settled()
    return {
      agreed: agreed - before.agreed,
      codes: violations.map(({ code }) => code),
      found: found - before.violations,
    }
  }

  describe('an operation', () => {
    interface Order {
      readonly id: string
    }
    const identity = { scope: () => scope('shop'), key: ({ id }: Order) => id as Key, window: '24h' } as const
    const paying = (name: string, more: object = {}) =>
      opened.db.operation(name, {
        ...identity,
        run: async (tx, { id }: Order) => {
          await write(tx, id)
          return { paid: id }
        },
        ...more,
      })

    it('agrees, and so do its effects', async () => {
      effects = ({ input }) => count((input as Order).id)
      const pay = paying('pay')
      const ids = Array.from({ length: 20 }, () => randomUUID())
      await Promise.all(ids.map((id) => pay({ id })))
      expect(await came()).toEqual({ agreed: 20, codes: [], found: 0 })
      for (const id of ids) expect(await count(id)).toBe(1)
    })

    it.each([
      ['a scope that is minted', { scope: () => scope(randomUUID()) }, 'DRILL_EXECUTED'],
      ['a key that is minted', { key: () => mintKey() }, 'DRILL_EXECUTED'],
      [
        'content with the time in it',
        { content: () => ({ value: process.hrtime.bigint().toString() }) },
        'DRILL_REFUSED',
      ],
    ])('with %s is found, and nothing happens twice', async (mistake, more, code) => {
      const id = randomUUID()
      await paying(`pay with ${mistake}`.replaceAll(' ', '-'), more)({ id })
      expect(await came()).toEqual({ agreed: 0, codes: [code], found: 1 })
      expect(await count(id)).toBe(1)
    })

    it('with leases agrees, or is found', async () => {
      const sent: string[] = []
      const charging = (name: string, more: object = {}) =>
        leased(name, {
          ...identity,
          store: opened.db,
          lease: '30s',
          recover: rerunKeyed('24h'),
          run: (lease, { id }) => lease.effect('capture', async () => sent.push(id)),
          ...more,
        })
      await charging('charge')({ id: 'a' })
      await charging('charge-minted', { key: () => mintKey() })({ id: 'b' })
      expect(await came()).toEqual({ agreed: 1, codes: ['DRILL_EXECUTED'], found: 1 })
      expect(sent).toEqual(['a', 'b'])
    })
  })

  describe('a route of Express', () => {
    const servers: Server[] = []
    afterEach(async () => {
      for (const server of servers.splice(0)) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    })
    const posted = async (...handlers: RequestHandler[]) => {
      const server = express()
        .post('/orders', ...handlers)
        .listen(0, '127.0.0.1')
      servers.push(server)
      await new Promise((resolve) => server.once('listening', resolve))
      const id = randomUUID()
      const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `"${randomUUID()}"`, 'x-user': 'ada' },
        body: JSON.stringify({ id }),
      })
      return { id, status: answer.status, body: await answer.json() }
    }
    const principal = (request: express.Request) => request.header('x-user')
    const dropIn = (name: string, more: object = {}): RequestHandler[] => [
      express.json(),
      idempotency(opened.db, { name, principal, ...more }),
      async (request, response) => {
        await write(request.tx, request.body.id)
        // What the handler does to its request is no difference to the repeat.
        const { id } = request.body
        request.body.id = 'changed'
        response.status(201).location(`/orders/${id}`).json({ id })
      },
    ]
    const wrapped = (name: string, more: object = {}): RequestHandler[] => [
      idempotent(opened.db, { name, principal, ...more }, async ({ tx, request }) => {
        const { id } = request.json() as { id: string }
        await write(tx, id)
        return reply(201, { id }, { location: `/orders/${id}`, 'set-cookie': 'seen=1' })
      }),
    ]
    let names = 0
    const forms = [
      ['drop-in', (more?: object) => dropIn(`drop-in-${++names}`, more)],
      ['wrapper', (more?: object) => wrapped(`wrapper-${++names}`, more)],
    ] as const

    it.each(forms)('as a %s agrees, byte by byte', async (_form, mount) => {
      const inputs: unknown[] = []
      effects = async ({ input }) => {
        inputs.push((input as { principal: unknown }).principal)
        return count(((input as { request: { json(): { id: string } } }).request.json() as { id: string }).id)
      }
      const { id, status, body } = await posted(...mount())
      expect([status, body]).toEqual([201, { id }])
      expect(await came()).toEqual({ agreed: 1, codes: [], found: 0 })
      expect([await count(id), inputs]).toEqual([1, [['ada'], ['ada']]])
    })

    it.each(
      forms.flatMap(([form, mount]) => [
        [form, mount, 'whose principal is minted', { principal: () => randomUUID() }, 'DRILL_EXECUTED'] as const,
        [
          form,
          mount,
          'whose parse refuses what is there already',
          {
            parse: async (request: { json(): unknown }) => {
              const { id } = request.json() as { id: string }
              if ((await count(id)) > 0) throw invalid(409, 'It is there already.')
              return { id }
            },
          },
          'DRILL_REFUSED',
        ] as const,
      ]),
    )('as a %s $2 is found, and nothing happens twice', async (_form, mount, _mistake, more, code) => {
      const { id, status } = await posted(...mount(more))
      expect(status).toBe(201)
      expect(await came()).toEqual({ agreed: 0, codes: [code], found: 1 })
      expect(violations[0]).toMatchObject({ kind: 'route', domain: 'shop' })
      expect(await count(id)).toBe(1)
    })
  })

  describe('a consumer', () => {
    /** Emits messages, and relays them to a broker: its source. */
    const delivered = async (topic: string, ids: readonly string[]) => {
      const broker = memoryBroker()
      await opened.db.transact((tx) => tx.emit(ids.map((id) => ({ id, type: topic, key: 'a', data: { id } }))))
      await relay(opened.db, { name: `relay-${topic}`, to: broker.publisher(topic), types: [topic] }).drain()
      return broker.source(topic)
    }
    const ids = (topic: string) => [1, 2, 3].map((number) => `${topic}-${number}`)

    it.each(['key', 'none'] as const)('of a source, with order %s, agrees', async (order) => {
      effects = ({ input }) => count((input as { id: string }).id)
      const name = `ordered-${order}`
      const from = await delivered(name, ids(name))
      const consumer = consume(opened.db, { name, from, order, handle: (tx, { id }) => write(tx, id) })
      await consumer.drain()
      expect(await came()).toEqual({ agreed: 3, codes: [], found: 0 })
      expect(consumer.counts).toMatchObject({ handled: 3, duplicates: 0 })
    })

    it('of the outbox agrees', async () => {
      await opened.db.transact((tx) => tx.emit(ids('outbox').map((id) => ({ id, type: 'outbox', key: 'a', data: {} }))))
      const handled: string[] = []
      const consumer = consume(opened.db, {
        name: 'outbox',
        from: opened.db,
        handle: (_tx, { id, type }) => void (type === 'outbox' && handled.push(id)),
      })
      const { handled: all } = await consumer.drain()
      expect(await came()).toEqual({ agreed: all, codes: [], found: 0 })
      expect(handled).toEqual(ids('outbox'))
    })

    it('whose loop somebody else owns agrees', async () => {
      await once(opened.db, { consumer: 'jobs', id: 'job-1' })((tx) => write(tx, 'job-1'))
      expect(await came()).toEqual({ agreed: 1, codes: [], found: 0 })
      expect(await count('job-1')).toBe(1)
    })

    it('whose memory somebody tidies away is found, and nothing happens twice', async () => {
      const from = await delivered('tidied', ['tidied-1'])
      const consumer = consume(opened.db, {
        name: 'tidied',
        from,
        order: 'none',
        handle: async (tx, { id }) => {
          await write(tx, id)
          await opened.sql(tx, 'delete from reprise_processed where reader = $1', ['tidied'])
        },
      })
      await consumer.drain()
      expect(await came()).toEqual({ agreed: 0, codes: ['DRILL_EXECUTED'], found: 1 })
      expect(violations[0]).toMatchObject({ kind: 'consumer', name: 'tidied' })
      expect(await count('tidied-1')).toBe(1)
    })

    it('whose effect is outside of its transaction is found by its count', async () => {
      const mails: string[] = []
      effects = async ({ input }) => mails.filter((id) => id === (input as { id: string }).id).length
      const from = await delivered('mailed', ids('mailed'))
      const consumer = consume(opened.db, {
        name: 'mailed',
        from,
        backoff: { data: { kind: 'constant', baseMs: 1, capMs: 1 }, delayMs: () => 1 },
        classify: () => transient('busy', 'no'),
        handle: (_tx, { id }) => {
          mails.push(id)
          if (mails.length === 1) throw new Error('busy')
        },
      })
      while (consumer.counts.handled < 3) await consumer.drain()
      expect(await came()).toEqual({ agreed: 2, codes: ['DRILL_EFFECTS'], found: 1 })
      expect(violations[0]).toMatchObject({ effects: { before: 2, after: 2 }, input: { id: 'mailed-1' } })
    })
  })
})
