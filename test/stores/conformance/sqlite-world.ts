// SQLite under the conformance suite, with any driver that opens a file.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pepperOf } from '../../../src/identity/index.js'
import type { Clock } from '../../../src/kernel/index.js'
import { recordValues } from '../../../src/stores/sql/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import type { OpenWorld } from './store-under-test.js'
import { makeTables, outboxDoor, putRecordText } from './tables.js'

// Their bodies wait for the test: they would leave the others and run again, which the test takes for one more call.
const waiting: ReadonlySet<string> = new Set([
  'store.transaction.15',
  'store.rows.08',
  'store.operation.claim.06',
  'store.operation.claim.07',
])

/** Whether a case can run in company. */
export function isSociable({ id }: { readonly id: string }): boolean {
  return !waiting.has(id)
}

/**
 * A fresh file of SQLite, opened by the given driver.
 *
 * @param options With a pepper, if that is wanted; and whether others write at the same time, so that what is under test shares its COMMIT with them.
 *   Default false.
 */
export async function sqliteWorld(
  open: (file: string) => SqliteHandle,
  { pepper, inCompany = false }: { readonly pepper?: string; readonly inCompany?: boolean } = {},
): Promise<OpenWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-conformance-'))
  const file = join(folder, 'store.db')
  const pepperOption = pepper === undefined ? {} : { pepper }
  const marker = pepper === undefined ? 'reprise_marker' : `reprise_marker_${pepperOf(pepper).id}`
  const domain = (defaults: { readonly clock?: Clock } = {}) =>
    sqlite({ name: 'sqlite', open: () => open(file), ...pepperOption, ...defaults })
  const db = domain()
  const others: ReturnType<typeof domain>[] = []
  await db.migrate()
  const raw = open(file)
  raw.exec(makeTables)
  const company = inCompany ? accompany(db) : undefined
  return {
    db,
    connections: 1,
    async second(defaults) {
      const other = domain(defaults)
      others.push(other)
      return other
    },
    async effect(tx, intent) {
      await (tx as Parameters<Parameters<typeof db.transact>[0]>[0]).query('insert into effects values (?)', [intent])
    },
    async offend(tx) {
      await (tx as Parameters<Parameters<typeof db.transact>[0]>[0]).query('select * from nowhere')
    },
    effectsOf: async (intent) =>
      Number(
        (raw.prepare('select count(*) as n from effects where intent = ?').get(intent as never) as { n: number }).n,
      ),
    async putRecord(id, record) {
      await company?.()
      raw.prepare(putRecordText(() => '?', marker)).run(...([id, ...recordValues(record)] as never[]))
    },
    item: async (id) =>
      raw.prepare('select * from items where id = ?').get(id as never) as Record<string, unknown> | undefined,
    async putItem({ id, state = 'new', amount = 0 }) {
      await company?.()
      raw
        .prepare('insert into items (id, state, amount, version) values (?, ?, ?, 0)')
        .run(...([id, state, amount] as never[]))
    },
    ...outboxDoor(
      async (text, values) => {
        await company?.()
        const statement = raw.prepare(text)
        if (text.startsWith('select')) return statement.all(...(values as never[])) as unknown[]
        statement.run(...(values as never[]))
        return []
      },
      () => '?',
    ),
    async close() {
      await company?.()
      for (const domain of [db, ...others]) await domain.close()
      raw.close()
      await rm(folder, { recursive: true })
    },
  }
}

/**
 * From now on somebody begins to write just before each transaction and each call of an operation, which then wait for
 * it and join. What comes back waits for all of them.
 */
function accompany(db: ReturnType<typeof sqlite>): () => Promise<unknown> {
  const { transact, operation } = db
  const company = new Set<Promise<unknown>>()
  const begin = (): void => {
    const one = transact((tx) => tx.query("update items set state = state where id = 'nobody'")).catch(() => undefined)
    company.add(one)
    void one.then(() => company.delete(one))
  }
  Object.assign(db, {
    transact: (...values: Parameters<typeof transact>) => {
      begin()
      return transact(...values)
    },
    operation: (...[name, options]: Parameters<typeof operation>) => {
      // It is asked for its key at the beginning of each call.
      const key = (...given: Parameters<NonNullable<typeof options.key>>) => {
        begin()
        return options.key?.(...given)
      }
      return operation(name, options.key === undefined ? options : ({ ...options, key } as typeof options))
    },
  })
  return () => Promise.all(company)
}
