// What a reader of PostgreSQL's log sees of the outbox: inserts alone, with every column that the page about Debezium
// maps.

import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { memoryBroker } from '../../../src/brokers/memory/index.js'
import { consume, deadLetters, purgeMessages, relay } from '../../../src/messaging/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { fences, root } from '../../markdown.js'
import { type Postgres, startPostgres } from '../../servers/postgres.js'

const page = 'docs/reference/debezium.md'
let server: Postgres
let pool: pg.Pool
beforeAll(async () => {
  server = await startPostgres({ fsync: false, settings: { wal_level: 'logical' } })
  pool = new pg.Pool({ connectionString: server.url, max: 5 })
})
afterAll(async () => {
  await pool?.end()
  await server?.dispose()
})

/** The options that the page shows. */
function shownOptions(): ReadonlyMap<string, string> {
  const [block] = fences(page)
  const lines = (block?.text ?? '').trim().split('\n')
  return new Map(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]))
}

/** The columns of our table that the options name. */
function mappedColumns(options: ReadonlyMap<string, string>): readonly string[] {
  const router = 'transforms.outbox.'
  const fields = ['id', 'key', 'payload', 'timestamp'].map((name) => options.get(`${router}table.field.event.${name}`))
  const placed = options.get(`${router}table.fields.additional.placement`)?.split(',') ?? []
  const names = [...fields, options.get(`${router}route.by.field`), ...placed.map((one) => one.split(':')[0])]
  return [...new Set(names.map(String))]
}

/** One change of our table, as the slot tells it. */
interface Change {
  readonly what: string
  readonly columns: ReadonlyMap<string, string>
}

async function changes(): Promise<readonly Change[]> {
  const { rows } = await pool.query<{ data: string }>(
    `select data from pg_logical_slot_get_changes('outbox', null, null)`,
  )
  return rows.flatMap(({ data }) => {
    const [, what, text] = /^table public\.reprise_message: (\w+): (.*)$/s.exec(data) ?? []
    if (what === undefined || text === undefined) return []
    const cells = text.matchAll(/(?:^| )"?(\w+)"?\[[^\]]+\]:(null|-?\d+|'(?:[^']|'')*')/g)
    return [{ what, columns: new Map([...cells].map(([, name = '', value = '']) => [name, value])) }]
  })
}

it('sees messages inserted, never updated, with the columns that the page maps', async () => {
  const db = postgres({ name: 'shop', pool, connectionWait: '60s' })
  await db.migrate()
  await pool.query(`select pg_create_logical_replication_slot('outbox', 'test_decoding')`)
  const broker = memoryBroker()
  const out = relay(db, { name: 'out', to: broker.publisher('shop'), attempts: 1 })
  const receipts = consume(db, { name: 'receipts', from: db, handle: () => undefined })
  await out.drain()
  await receipts.drain()
  broker.faults.refuses = ({ id }) => (id === 'm-2' ? 'not this one' : undefined)
  await db.transact((tx) =>
    tx.emit([
      { id: 'm-1', type: 'order.placed', subject: 'order/1', version: 1, data: { total: 12 }, schema: 'urn:order' },
      { id: 'm-2', type: 'order.paid', subject: 'order/1', version: 2, data: { total: 12 } },
    ]),
  )
  expect(await out.drain()).toMatchObject({ published: 1, parked: 1 })
  broker.faults.refuses = undefined
  await deadLetters(db).redrive({ reader: 'out' }, { actor: 'ada', over: 0 })
  expect(await out.drain()).toMatchObject({ published: 2 })
  expect(await receipts.drain()).toMatchObject({ handled: 2 })
  const seen = await changes()
  expect(seen.map(({ what, columns }) => [what, columns.get('id')])).toEqual([
    ['INSERT', "'m-1'"],
    ['INSERT', "'m-2'"],
  ])
  const options = shownOptions()
  const mapped = mappedColumns(options)
  expect(mapped.length).toBeGreaterThan(10)
  for (const name of mapped) expect([...(seen[0]?.columns.keys() ?? [])], `the column ${name}`).toContain(name)
  const [first] = seen
  expect(Object.fromEntries(first?.columns ?? [])).toMatchObject({
    source: "'/shop'",
    type: "'order.placed'",
    key: "'order/1'",
    subject: "'order/1'",
    number: '1',
    version: '1',
    schema: "'urn:order'",
    data: `'{"total":12}'`,
    intent: 'null',
  })
  expect(options.get('table.include.list')).toBe('public.reprise_message')
  // The purge deletes, which the router passes over; nothing else is ever told of the table.
  await expect.poll(async () => (await purgeMessages({ store: db, sentAfter: 0 })).messages).toBe(2)
  expect((await changes()).map(({ what }) => what)).toEqual(['DELETE', 'DELETE'])
  await db.close()
})

it('names every attribute of a message that the page maps', () => {
  const text = readFileSync(`${root}/${page}`, 'utf8')
  const rows = [...text.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, cells = '']) =>
    [...cells.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  )
  expect(new Set(rows)).toEqual(new Set(mappedColumns(shownOptions())))
})
