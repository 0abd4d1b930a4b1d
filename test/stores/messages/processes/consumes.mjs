// A consumer in a process of its own. It reads the outbox, or takes what it is given as lines and prints what it
// acknowledges. Its effect counts what its key has so far, so that the order is seen in the ledger; with LEASED its
// effect is a line in the file of that name.

import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [bundle = '', engine = '', place = '', from = '', lease = '30s'] = process.argv.slice(2)
const load = (/** @type {string} */ name) => import(pathToFileURL(`${bundle}/${name}.js`).href)
const { armFromEnvironment } = await load('testing')
const { consume, consumeLeased } = await load('messaging')
const { hold, rerunKeyed } = await load('idempotency')
const { transient, when } = await load('retry')

const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' }

/** @type {any} */
let db
/** @type {() => Promise<void>} */
let close
/** @type {string[]} */
let sql
if (engine === 'PostgreSQL') {
  const { default: pg } = await import('pg')
  const { postgres } = await load('postgres')
  const pool = new pg.Pool({ connectionString: place, max: 8 })
  db = postgres({ name: 'operations', pool, ...patient })
  close = () => pool.end()
  sql = ['select count(*) as n from ledger where intent like $1', 'insert into ledger (intent, number) values ($1, $2)']
} else {
  const { default: Database } = await import('libsql')
  const { sqlite } = await load('sqlite')
  db = sqlite({ name: 'operations', open: () => new Database(place), ...patient })
  close = () => db.close()
  sql = ['select count(*) as n from ledger where intent like ?', 'insert into ledger (intent, number) values (?, ?)']
}

/** @type {(delivery: any) => Promise<void>} */
let receive = async () => {}
const source = {
  manifest: {
    broker: 'lines',
    order: 'key',
    confirm: 'none',
    delay: false,
    deliveryCount: 'exact',
    dedupeMs: 0,
    redeliveryMs: 60_000,
    because: {},
  },
  open: async (/** @type {any} */ taking) => {
    receive = taking
    console.log('open')
    return { pause() {}, resume() {}, drain: async () => {}, ended: new Promise(() => {}) }
  },
}

const stop = new AbortController()
const file = process.env['LEASED']
const common = {
  name: process.env['CONSUMER'] ?? 'receipts',
  from: from === 'outbox' ? db : source,
  lease,
  deadline: '60s',
  storeLimit: '60s',
  poll: '50ms',
  backoff: { data: { kind: 'constant', baseMs: 10, capMs: 10 }, delayMs: () => 10 },
  classify: when((/** @type {any} */ error) => error.message === 'busy', transient('busy', 'no')),
}
const ledger = {
  ...common,
  handle: async (/** @type {any} */ tx, /** @type {any} */ message) => {
    const [{ n }] = (await tx.query(sql[0], [`${message.key}/%`])).rows
    await tx.query(sql[1], [`${message.key}/${message.id}`, String(n)])
    console.log(`begun ${message.id}`)
    if (process.env['POISON'] === message.id) {
      process.kill(process.pid, 'SIGKILL')
      await new Promise(() => {})
    }
    const slowMs = Number(process.env['SLOW_MS'] ?? 0)
    if (slowMs > 0) await new Promise((resolve) => setTimeout(resolve, slowMs))
    if (process.env['FAILS'] !== undefined) throw new Error('busy')
  },
}
const outside = {
  ...common,
  recover: process.env['RECOVER'] === 'hold' ? hold() : rerunKeyed('1d'),
  handle: (/** @type {any} */ lease, /** @type {any} */ { id }) =>
    lease.effect('send', (/** @type {any} */ { key }) => appendFileSync(String(file), `${id} ${key}\n`)),
}
const consumer = file === undefined ? consume(db, ledger) : consumeLeased(db, outside)
armFromEnvironment()
const running = consumer.run({ signal: stop.signal })
running.catch((/** @type {unknown} */ error) => {
  console.log(`broke ${error}`)
})
if (from === 'outbox') console.log('open')
for await (const line of createInterface({ input: process.stdin })) {
  const { content, count } = JSON.parse(line)
  const none = async () => {}
  const ack = async () => console.log(`acked ${content.id}`)
  void receive({ content, count, ack, again: none, refuse: none, extend: none })
}
stop.abort()
console.log(`counts ${JSON.stringify(await running)}`)
await close()
