// The commands about a store, on a real server.

import { expect, it } from 'vitest'
import { runCommandLine } from '../../../src/cli/index.js'
import { hold, leased } from '../../../src/idempotency/index.js'
import { type Key, scope } from '../../../src/identity/index.js'
import { consume } from '../../../src/messaging/index.js'
import { ioInMemory, type Seen } from '../../cli/io-in-memory.js'
import { freshDatabase } from '../../servers/fresh-database.js'
import { newestMigration } from '../newest-migration.js'
import { postgresWorld } from './world.js'

const newest = newestMigration.postgres

async function run(url: string, words: readonly string[]): Promise<Seen> {
  const io = ioInMemory()
  io.environment = (name) => (name === 'DATABASE_URL' ? url : undefined)
  await runCommandLine(words, io)
  return io
}

it('migrate, under names of one’s own, once', async () => {
  const { url } = await freshDatabase()
  const own = ['--prefix', 'own_']
  expect(await run(url, ['inspect', ...own])).toMatchObject({ code: 1, out: '' })
  expect((await run(url, ['inspect', ...own])).err).toMatch(/\[MIGRATION_MISSING\]\n$/)
  expect(await run(url, ['migrate', ...own])).toMatchObject({ out: `migrated from 0 to ${newest}\n`, err: '', code: 0 })
  expect(await run(url, ['migrate', ...own])).toMatchObject({ out: `up to date, at migration ${newest}\n`, code: 0 })
  expect(await run(url, ['inspect', ...own])).toMatchObject({ out: 'no records\n', code: 0 })
  expect(await run(url, ['inspect'])).toMatchObject({ code: 1 })
})

it('doctor, with what is broken and what is a risk', async () => {
  const { url } = await freshDatabase()
  const { out, code } = await run(url, ['doctor'])
  expect(out).toMatch(/^broken MIGRATIONS_MISSING\n {2}.*\n {2}fix: /m)
  expect(code).toBe(1)
  await run(url, ['migrate'])
  const healed = await run(url, ['doctor', '--json'])
  const { engine, findings } = JSON.parse(healed.out) as {
    readonly engine: string
    readonly findings: readonly { readonly severity: string; readonly code: string }[]
  }
  expect(engine).toBe('PostgreSQL')
  // The server of these tests does not sync.
  expect(findings.filter(({ severity }) => severity === 'broken').map((finding) => finding.code)).toEqual(['FSYNC_OFF'])
  expect(healed.code).toBe(1)
})

it('inspect, settle and purge, as the operation sees them', async () => {
  const { url, db } = await postgresWorld()
  const charge = leased('charge', {
    store: db,
    scope: () => scope('tenant-7'),
    key: (key: string) => key as Key,
    window: '1h',
    lease: '1s',
    recover: hold(),
    run: (lease): Promise<{ receipt: string }> =>
      lease.effect('capture', () => Promise.reject(new Error('the answer got lost'))),
  })
  await expect(charge('k-1')).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
  const which = ['--operation', 'charge', '--scope', 'tenant-7', '--key', 'k-1']
  expect((await run(url, ['inspect', '--state', 'unknown'])).out).toMatch(
    /^sha256:\S+ {2}unknown {4}charge {2}claimed /,
  )
  const decision = ['--as', 'succeeded', '--value', '{"receipt":"r-81"}', '--reason', 'listed', '--actor', 'pat']
  const settled = await run(url, ['settle', ...which, ...decision, '--window', '1ms'])
  expect(settled).toMatchObject({ out: 'settled: succeeded\n', err: '', code: 0 })
  const shown = JSON.parse((await run(url, ['inspect', ...which, '--values', '--json'])).out)
  expect(shown).toMatchObject({
    record: { state: 'succeeded', value: '{"receipt":"r-81"}', because: 'settled' },
    notes: [{ action: 'settled', actor: 'pat', reason: 'listed', from: 'unknown', to: 'succeeded' }],
  })
  // The same decision again is no other one; another one comes too late.
  expect(await run(url, ['settle', ...which, ...decision])).toMatchObject({ out: 'settled: succeeded\n', code: 0 })
  const other = ['--as', 'released', '--reason', 'not listed', '--actor', 'pat']
  expect(await run(url, ['settle', ...which, ...other])).toMatchObject({ out: '', code: 3 })
  const purged = await run(url, ['purge', '--json'])
  expect(JSON.parse(purged.out)).toMatchObject({
    finished: 1,
    unknown: 0,
    audit: 0,
    markers: 0,
    unconfirmed: 0,
    interrupted: false,
  })
  const gone = await run(url, ['inspect', ...which])
  expect(gone.out).toMatch(/^there is no such record\nnote \S+ settled by pat: /)
  expect(gone.code).toBe(3)
})

it('a wrong password fails, and is not shown', async () => {
  const { url } = await freshDatabase()
  const wrong = new URL(url)
  wrong.username = 'nobody-here'
  wrong.password = 's3cret'
  const { out, err, code } = await run(wrong.href, ['inspect'])
  expect(code).toBe(1)
  expect(err).toMatch(/^reprise: .+\n$/)
  expect(out + err).not.toContain('s3cret')
})

it('a server that is not up is named by its option, with what the driver said', async () => {
  const { url } = await freshDatabase()
  const nobody = new URL(url)
  // Nobody may listen there.
  nobody.port = '1'
  const { out, err, code } = await run(nobody.href, ['inspect'])
  expect([out, code]).toEqual(['', 1])
  expect(err).toMatch(
    /^reprise: The store behind --url could not be reached: .*ECONNREFUSED.* \[STORE_UNREACHABLE\]\n$/,
  )
})

it('why, with the messages of an operation and where they are', async () => {
  const { url, db } = await postgresWorld()
  const receipts = consume(db, { name: 'receipts', from: db, handle: () => undefined })
  await receipts.drain()
  const place = db.operation('place', {
    scope: () => scope('tenant-7'),
    key: (key: string) => key as Key,
    window: '1h',
    run: async (tx) => void (await tx.emit({ id: 'm-1', type: 'order.placed', key: 'order', data: {} })),
  })
  await place('k-1')
  const which = ['k-1', '--operation', 'place', '--scope', 'tenant-7']
  const before = await run(url, ['why', ...which])
  expect(before.out).toContain('order.placed m-1 (key order) is before consumer receipts: does it run?')
  await receipts.drain()
  const { out, code } = await run(url, ['why', ...which, '--json'])
  expect(JSON.parse(out)).toMatchObject({
    record: { state: 'succeeded' },
    messages: [{ id: 'm-1', readers: [{ reader: 'receipts', state: 'done' }], letters: [] }],
  })
  expect(code).toBe(0)
  expect((await run(url, ['why', 'k-2', '--operation', 'place', '--scope', 'tenant-7'])).code).toBe(3)
})
